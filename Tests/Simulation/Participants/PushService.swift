import PushCore
import Simulator
import Wire

/// A push service of browsers: one server for all applications, with its vendor's rules. A browser's token is its endpoint.
enum PushService: String, CaseIterable {
  case google, mozilla, apple, windows, ntfy

  var host: String {
    switch self {
    case .google: "fcm.googleapis.com"
    case .mozilla: "updates.push.services.mozilla.com"
    case .apple: "web.push.apple.com"
    case .windows: "wns2-sn3p.notify.windows.com"
    case .ntfy: "ntfy.sh"
    }
  }

  var address: String { "\(host):443" }
  var origin: String { "https://\(host)" }
  var hasOnlyHTTP1: Bool { self == .ntfy }

  private var folder: String {
    switch self {
    case .google: "/fcm/send/"
    case .mozilla: "/wpush/v2/"
    case .apple: "/apple/"
    case .windows: "/w/?token="
    case .ntfy: "/up/"
    }
  }

  func endpoint(_ id: String) -> String { origin + folder + id }

  /// Nil for the tokens of other platforms.
  init?(endpoint: String) {
    guard let service = Self.allCases.first(where: { endpoint.hasPrefix($0.origin + "/") }) else { return nil }
    self = service
  }

  /// The subscription that the simulator has at the endpoint.
  static func subscription(_ endpoint: String) -> SimulatedSubscription {
    guard let service = PushService(endpoint: endpoint),
      let subscription = try? SimulatedSubscription(
        path: String(endpoint.dropFirst(service.origin.count)), origin: service.origin)
    else { preconditionFailure("\(endpoint) is at no push service") }
    return subscription
  }

  /// The browser as the target of a request.
  static func target(_ endpoint: String) -> String {
    "webpush:" + String(decoding: Base64URL.encode(subscription(endpoint).json), as: UTF8.self)
  }

  /// - Parameter target: as a request or dead letter has it.
  static func endpoint(ofTarget target: String) -> String? {
    guard case .success(.webpush(let token)) = Target.classify(Array(target.utf8)) else { return nil }
    return String(decoding: WebPushSubscription.endpoint(of: token[...]), as: UTF8.self)
  }
}
