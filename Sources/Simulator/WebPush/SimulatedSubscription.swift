import PushCore
import TLS
import Wire

/// A browser's subscription at the simulator. Its keys depend only on the path of its endpoint, so a file of subscriptions outlives
/// the simulator, and a simulator that is started again knows all of them.
public struct SimulatedSubscription: Sendable {
  public let endpoint: [UInt8]
  let pair: KeyPair
  /// The authentication secret, 16 bytes.
  public let auth: [UInt8]
  public var publicKey: [UInt8] { pair.publicPoint }

  /// - Parameters:
  ///   - path: such as `/wpush/v2/abc`.
  ///   - origin: the simulator's, such as `https://localhost:8445`.
  public init(path: String, origin: String) throws(CredentialError) {
    let secret = Digest.sha256(Array("pushfleet simulator key \(path)".utf8))
    // One hash in 2³² is no private key.
    do { pair = try KeyPair(privateKey: secret) } catch { pair = try KeyPair(privateKey: Digest.sha256(secret)) }
    endpoint = Array((origin + path).utf8)
    auth = Array(Digest.sha256(Array("pushfleet simulator auth \(path)".utf8)).prefix(16))
  }

  /// The subscription with a number from 1. Successive numbers are at different vendors.
  public init(number: Int, origin: String) throws(CredentialError) {
    let place = WebPushTarget.newest[(number - 1) % WebPushTarget.newest.count]
    try self.init(path: place + Self.id(number), origin: origin)
  }

  /// The name of the subscription in scripts and journals.
  public static func id(_ number: Int) -> String { "subscription-\(number)" }

  /// A browser's `PushSubscription` as JSON.
  public var json: [UInt8] { object.line }

  private var object: JSONObject {
    let keys: JSONObject = ["p256dh": Base64URL.encode(publicKey), "auth": Base64URL.encode(auth)]
    return ["endpoint": endpoint, "expirationTime": nil as String?, "keys": keys]
  }

  /// The subscription as a change of the registry.
  /// - Parameter app: nil leaves the application out.
  public func registration(number: Int, app: String?) -> [UInt8] {
    let head: JSONObject = app.map { ["op": "register", "app": $0] } ?? [:]
    let device: JSONObject = [
      "platform": Platform.webpush.word, "subscription": object, "installation": "browser-\(number)", "user": "user-\(number)",
    ]
    return (head + device).line
  }
}
