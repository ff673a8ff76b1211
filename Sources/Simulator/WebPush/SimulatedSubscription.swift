import PushCore
import TLS
import Wire

/// A browser's subscription at the simulator. It depends only on the address, so a file of subscriptions outlives the simulator.
public struct SimulatedSubscription: Sendable {
  public let endpoint: [UInt8]
  public let publicKey: [UInt8]
  public let auth: [UInt8]

  /// - Parameters:
  ///   - path: such as `/wpush/v2/abc`.
  ///   - origin: the simulator's, such as `https://localhost:8445`.
  public init(path: String, origin: String) throws(CredentialError) {
    let keys = try SubscriptionKeys(path: Array(path.utf8))
    endpoint = Array((origin + path).utf8)
    publicKey = keys.pair.publicPoint
    auth = keys.auth
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
