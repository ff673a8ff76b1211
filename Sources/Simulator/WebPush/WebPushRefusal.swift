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

  /// The status of most vendors, and the sender's mistake, for the journal; nil if a sender can't know it.
  var usual: (status: Int, violation: String?) {
    switch self {
    case .wrongMethod: (405, "a push service takes POST only")
    case .unknownSubscription: (410, nil)
    case .missingToken: (401, "the VAPID token is missing")
    case .badToken(let fault): (401, "the VAPID token: \(fault)")
    case .badKey: (401, "the VAPID key is no point of P-256 in unpadded Base64")
    case .otherKey: (403, nil)
    case .missingTTL: (400, "TTL is missing")
    case .badTTL: (400, "TTL is not what the service accepts")
    case .badUrgency: (400, "Urgency is not one of very-low, low, normal, high")
    case .badTopic: (400, "Topic is not what the service accepts")
    case .badEncoding: (400, "Content-Encoding is not aes128gcm, or there is no content")
    case .tooLarge: (413, "the body has more than 4096 bytes")
    case .undecryptable: (400, "the body can't be decrypted with the subscription's keys")
    }
  }
}
