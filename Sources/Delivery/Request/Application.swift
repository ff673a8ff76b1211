import DeviceRegistry
import Providers
import PushCore
import Settings

package struct Application {
  package var id: [UInt8]
  /// The allowed values of `restricted_package_name`.
  var packages: [[UInt8]]
  package var rights = AppRights()
  /// Unknown names in a request are ignored, and the forms of old senders are accepted.
  var ignoresUnknownNames = false
  /// The app's library acknowledges pushes by their object `mps`.
  var isUPMC = false
  var countsBadges = false
  /// The default for requests that don't say it.
  var unknownOutcome = UnknownOutcome.retry
  /// The places of the credentials and senders that operators can pause, by name.
  var pausable: [String: [CredentialPlace]] = [:]
  package var routes: SenderRoutes
  package var senders: [[UInt8]: SenderRoutes] = [:]
  /// Removed senders. Earlier requests may still use their routes.
  var formerSenders: [SenderRoutes] = []
  var isConfigured = true
  package var pools: [Int] = []
}

/// A sender's pools for an application's devices, by index. Requests share this object, and changes of credentials or settings
/// update it.
package final class SenderRoutes {
  /// For tokens with an unknown environment.
  var apns: APNsRoute? { didSet { listPools() } }
  var production: APNsRoute? { didSet { listPools() } }
  var sandbox: APNsRoute? { didSet { listPools() } }
  /// Routes for broadcasts to channels, if they differ from those for devices.
  var broadcasts: [APNsConfiguration.Environment: APNsRoute] = [:] { didSet { listPools() } }
  var fcm: Int? { didSet { listPools() } }
  package var webpush: WebPushRoute? { didSet { listPools() } }
  /// All of these, perhaps with repetitions.
  package private(set) var pools: [Int] = []
  var fcmSettings = FCMSettings()
  /// For requests to browsers that name no priority.
  var webPushPriority = Priority.normal
  /// Web push is configured.
  var hasWebPush = false
  /// Devices acknowledge pushes by the message's key, which the registry stores.
  var isUPMC = false
  /// Routes that requests from before a change may still use.
  var former: [APNsRoute] = []

  package func listPools() {
    pools =
      [apns?.pool, production?.pool, sandbox?.pool, fcm].compactMap(\.self) + broadcasts.values.map(\.pool)
      + (webpush?.pools ?? [])
  }
}

package struct APNsRoute {
  var pool: Int
  package var settings: APNsSettings
}

extension SenderRoutes {
  /// The pool for a registered device.
  func pool(of platform: Platform, _ environment: DeviceEnvironment) -> Int? {
    switch (platform, environment) {
    case (.fcm, _): fcm
    case (.apns, .production): production?.pool
    case (.apns, .sandbox): sandbox?.pool
    case (.apns, .unspecified): apns?.pool
    // The pool depends on the device's push service.
    case (.webpush, _): nil
    }
  }

  /// The route for tokens in a request.
  @inline(__always) func apnsRoute(_ environment: APNsConfiguration.Environment?) -> APNsRoute? {
    switch environment {
    case nil: apns
    case .production?: production
    case .sandbox?: sandbox
    }
  }

  func apnsSettings(of pool: Int) -> APNsSettings? {
    if let apns, apns.pool == pool { return apns.settings }
    if let production, production.pool == pool { return production.settings }
    if let sandbox, sandbox.pool == pool { return sandbox.settings }
    return broadcasts.values.first { $0.pool == pool }?.settings ?? former.last { $0.pool == pool }?.settings
  }

  /// Broadcasts go to the same environment as tokens.
  func ofChannels(_ environment: APNsConfiguration.Environment?) -> APNsRoute? {
    guard let route = apnsRoute(environment) else { return nil }
    return broadcasts[environment ?? (route.pool == production?.pool ? .production : .sandbox)] ?? route
  }

  /// The APNs environment of a pool; nil if the pool isn't one of these.
  func environment(of pool: Int) -> String? {
    if let production, production.pool == pool { return DeviceEnvironment.production.name }
    if let sandbox, sandbox.pool == pool { return DeviceEnvironment.sandbox.name }
    return nil
  }

  var isEmpty: Bool { pools.isEmpty && former.isEmpty }

  func remove(_ pool: Int) {
    if apns?.pool == pool { apns = nil }
    if production?.pool == pool { production = nil }
    if sandbox?.pool == pool { sandbox = nil }
    if fcm == pool { fcm = nil }
    webpush?.remove(pool)
    broadcasts = broadcasts.filter { $0.value.pool != pool }
    former.removeAll { $0.pool == pool }
  }
}

extension Application {
  /// The application or one of its senders has web push.
  var hasWebPush: Bool { routes.webpush != nil || senders.values.contains { $0.webpush != nil } }

  /// The pools of a credential or sender that operators control, but for those that a sender shares with the application.
  /// - Parameter name: see ``CredentialPlace/controlNames``.
  func pools(of name: String) -> [Int] {
    pausable[name, default: []].flatMap { place in
      guard let sender = place.sender else { return routes.pools(of: place.reach) }
      return senders[Array(sender.utf8)]?.pools(of: place.reach).filter { !routes.pools.contains($0) } ?? []
    }
  }

  /// No sender of the application has FCM, so a text that could only be an FCM token is no usable token.
  var lacksFCM: Bool { routes.fcm == nil && senders.values.allSatisfy { $0.fcm == nil } }
}
