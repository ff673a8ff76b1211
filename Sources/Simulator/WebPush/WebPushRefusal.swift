/// Why a push service refuses a push.
enum WebPushRefusal: Error, Equatable {
  case wrongMethod
  case unknownSubscription
  case missingToken
  case badToken(String)
  case badKey
  /// The subscription is bound to another VAPID key.
  case otherKey
  case missingTTL
  case badTTL
  case badUrgency
  case badTopic
  case badEncoding
  case tooLarge
  case undecryptable

  /// The status of most vendors.
  var usualStatus: Int {
    switch self {
    case .missingToken, .badToken, .badKey: 401
    case .otherKey: 403
    case .wrongMethod: 405
    case .unknownSubscription: 410
    case .tooLarge: 413
    case .missingTTL, .badTTL, .badUrgency, .badTopic, .badEncoding, .undecryptable: 400
    }
  }

  /// The sender's mistake, for the journal; nil if a sender can't know it.
  var violation: String? {
    switch self {
    case .unknownSubscription, .otherKey: nil
    case .wrongMethod: "a push service takes POST only"
    case .missingToken: "the VAPID token is missing"
    case .badToken(let fault): "the VAPID token: \(fault)"
    case .badKey: "the VAPID key is no point of P-256 in unpadded Base64"
    case .missingTTL: "TTL is missing"
    case .badTTL: "TTL is not what the service accepts"
    case .badUrgency: "Urgency is not one of very-low, low, normal, high"
    case .badTopic: "Topic is not what the service accepts"
    case .badEncoding: "Content-Encoding is not aes128gcm, or there is no content"
    case .tooLarge: "the body has more than 4096 bytes"
    case .undecryptable: "the body can't be decrypted with the subscription's keys"
    }
  }
}
