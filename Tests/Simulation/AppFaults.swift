import PushCore

/// One application on one provider.
struct AppRoute: Hashable {
  var app: Int
  var platform: Platform
}

/// A fault of some applications' providers, or of a push service, while the others work.
struct AppFault {
  var kind: FaultKind
  /// Empty for a fault of a push service.
  var apps: Set<Int>
  var platforms: Set<Platform>
  /// Seconds since the beginning.
  var from: Double
  var to: Double
  /// Seconds after the end within which a held push is sent.
  var recovery: Double
  var service: PushService?
}

/// All faults of single applications' providers and of push services in a run.
struct AppFaults {
  /// An application had held requests when its fault ended: the first provider that is back must send a push soon.
  struct Return {
    var app: Int
    var platforms: Set<Platform>
    var kind: FaultKind
    var at: Double
    var recovery: Double
  }

  var all: [AppFault] = []
  var returns: [Return] = []

  /// Seconds for which a fault still affects its application: held requests return and connections are made again.
  private static let aftermath = 120.0

  /// True if any such fault is active, or has just ended, within this many seconds of a time.
  func areFelt(at time: Double, for seconds: Double) -> Bool { all.contains { Self.isFelt($0, at: time, for: seconds) } }

  func areFelt(by app: Int, at time: Double, for seconds: Double) -> Bool {
    all.contains { $0.apps.contains(app) && Self.isFelt($0, at: time, for: seconds) }
  }

  /// True if a device's push service has a fault. Without HTTP/2, it may be slow at any time.
  func areFelt(by token: String, at time: Double, for seconds: Double) -> Bool {
    guard let service = PushService(endpoint: token) else { return false }
    return service.hasOnlyHTTP1 || all.contains { $0.service == service && Self.isFelt($0, at: time, for: seconds) }
  }

  private static func isFelt(_ fault: AppFault, at time: Double, for seconds: Double) -> Bool {
    fault.from <= time + seconds && fault.to + aftermath > time
  }

  /// True if an application's credential, refused before a time, may still be stopped.
  func mayBeStopped(_ app: Int, at time: Double, for seconds: Double) -> Bool {
    all.contains { $0.kind == .appForbidden && $0.apps.contains(app) && $0.from < time && $0.to + seconds > time }
  }

  /// Seconds until an application has recovered from faults that are over.
  func recovery(of app: Int, at time: Double) -> Double {
    all.filter { $0.apps.contains(app) && $0.to <= time }.map { $0.to + $0.recovery - time }.max() ?? 0
  }

  /// True if an application has a fault with any provider within this many seconds. Held requests then also wait for that
  /// provider.
  func hasFault(_ app: Int, after time: Double, for seconds: Double) -> Bool {
    all.contains { $0.apps.contains(app) && $0.from <= time + seconds && $0.to > time }
  }
}
