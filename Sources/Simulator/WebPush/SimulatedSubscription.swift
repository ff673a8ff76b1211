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
  public var json: [UInt8] {
    var json = JSONObjectWriter()
    json.set("endpoint", endpoint)
    json.set("expirationTime", raw: Array("null".utf8))
    json.set("keys") { json in
      json.set("p256dh", Base64URL.encode(publicKey))
      json.set("auth", Base64URL.encode(auth))
    }
    return json.closed()
  }

  /// The subscription as a change of the registry.
  /// - Parameter app: nil leaves the application out.
  public func registration(number: Int, app: String?) -> [UInt8] {
    var json = JSONObjectWriter()
    if let app {
      json.set("op", "register")
      json.set("app", app)
    }
    json.set("platform", Platform.webpush.word)
    json.set("subscription", raw: self.json)
    json.set("installation", "browser-\(number)")
    json.set("user", "user-\(number)")
    return json.closed()
  }
}
