import DeviceRegistry
import Providers
import PushCore
import Settings

/// What a shard knows of a configured application.
package struct Application {
  package var id: [UInt8]
  /// What `restricted_package_name` may say.
  var packages: [[UInt8]]
  package var rights = AppRights()
  /// Names in a request that aren't known are left out, and what old senders write is taken.
  var ignoresUnknownNames = false
  /// Its library acknowledges pushes by their object `mps`.
  var isUPMC = false
  /// A request without a badge counts as one with `auto`.
  var countsBadges = false
  /// Of requests that don't say it.
  var unknownOutcome = UnknownOutcome.retry
  package var routes: SenderRoutes
  package var senders: [[UInt8]: SenderRoutes] = [:]
  /// Of senders that were removed: requests that were here before may still go by them.
  var formerSenders: [SenderRoutes] = []
  /// False once it is removed.
  var isConfigured = true
  /// The pools that reach its devices.
  package var pools: [Int] = []
}

/// The pools that reach an application's devices for one sender, by index. Shared by the requests that take them; changed when
/// credentials or settings are.
package final class SenderRoutes {
  /// For tokens whose environment isn't known.
  var apns: APNsRoute? { didSet { listPools() } }
  var production: APNsRoute? { didSet { listPools() } }
  var sandbox: APNsRoute? { didSet { listPools() } }
  /// Where broadcasts to channels go, if that is elsewhere than pushes to devices.
  var broadcasts: [APNsConfiguration.Environment: APNsRoute] = [:] { didSet { listPools() } }
  var fcm: Int? { didSet { listPools() } }
  /// All of these; may name one twice.
  package private(set) var pools: [Int] = []
  var fcmSettings = FCMSettings()
  /// Devices acknowledge pushes by what the registry keeps of their messages.
  var isUPMC = false
  /// What requests that were here before a change may still go by.
  var former: [APNsRoute] = []

  private func listPools() {
    pools = [apns?.pool, production?.pool, sandbox?.pool, fcm].compactMap(\.self) + broadcasts.values.map(\.pool)
  }
}

package struct APNsRoute {
  var pool: Int
  package var settings: APNsSettings
}

extension SenderRoutes {
  /// The pool that reaches a device of the registry.
  func pool(of platform: Platform, _ environment: DeviceEnvironment) -> Int? {
    switch (platform, environment) {
    case (.fcm, _): fcm
    case (.apns, .production): production?.pool
    case (.apns, .sandbox): sandbox?.pool
    case (.apns, .unspecified): apns?.pool
    }
  }

  /// Of tokens that came with a request.
  func apnsRoute(_ environment: APNsConfiguration.Environment?) -> APNsRoute? {
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

  /// Broadcasts go to the same service as tokens do.
  func ofChannels(_ environment: APNsConfiguration.Environment?) -> APNsRoute? {
    guard let route = apnsRoute(environment) else { return nil }
    return broadcasts[environment ?? (route.pool == production?.pool ? .production : .sandbox)] ?? route
  }

  /// Which of Apple's services a pool sends to; nil for a pool of another's, or of another setup's.
  func environment(of pool: Int) -> String? {
    if let production, production.pool == pool { return DeviceEnvironment.production.name }
    if let sandbox, sandbox.pool == pool { return DeviceEnvironment.sandbox.name }
    return nil
  }

  /// Leads nowhere.
  var isEmpty: Bool { pools.isEmpty && former.isEmpty }

  /// Leads to the pool no longer; its other ways stay.
  func remove(_ pool: Int) {
    if apns?.pool == pool { apns = nil }
    if production?.pool == pool { production = nil }
    if sandbox?.pool == pool { sandbox = nil }
    if fcm == pool { fcm = nil }
    broadcasts = broadcasts.filter { $0.value.pool != pool }
    former.removeAll { $0.pool == pool }
  }
}

extension Application {
  /// It has no FCM, whoever sends: what looks like a token of FCM's for want of another form is another sender's, or none.
  var lacksFCM: Bool { routes.fcm == nil && senders.values.allSatisfy { $0.fcm == nil } }
}
