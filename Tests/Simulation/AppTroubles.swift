import PushCore

/// An application's way to one provider.
struct AppRoute: Hashable {
  var app: Int
  var platform: Platform
}

/// Trouble that some applications have with their providers while the others have none.
struct AppTrouble {
  var kind: Affliction
  var apps: Set<Int>
  var platforms: Set<Platform>
  /// Seconds since the beginning.
  var from: Double
  var to: Double
  /// Seconds after its end within which a push goes out where one is held.
  var recovery: Double
}

/// All of a fleet's trouble with single applications' providers.
struct AppTroubles {
  /// Something of an application was held when its trouble ended: a push goes out soon, by the first of the providers that are back.
  struct Return {
    var app: Int
    var platforms: Set<Platform>
    var kind: Affliction
    /// Seconds since the beginning.
    var at: Double
    var recovery: Double
  }

  var all: [AppTrouble] = []
  var returns: [Return] = []

  /// Seconds for which an application's trouble is felt after its end: by itself, as what is held of it comes back and its connections are made.
  private static let aftermath = 120.0

  /// Whether applications' trouble is under way, or was a moment ago, within so many seconds from a time.
  func areFelt(at time: Double, for seconds: Double) -> Bool { all.contains { Self.isFelt($0, at: time, for: seconds) } }

  func areFelt(by app: Int, at time: Double, for seconds: Double) -> Bool {
    all.contains { $0.apps.contains(app) && Self.isFelt($0, at: time, for: seconds) }
  }

  private static func isFelt(_ trouble: AppTrouble, at time: Double, for seconds: Double) -> Bool {
    trouble.from <= time + seconds && trouble.to + aftermath > time
  }

  /// Whether an application's credential, refused before a time, may still be stopped then.
  func mayBeStopped(_ app: Int, at time: Double, for seconds: Double) -> Bool {
    all.contains { $0.kind == .appForbidden && $0.apps.contains(app) && $0.from < time && $0.to + seconds > time }
  }

  /// Seconds until an application has recovered from what is over.
  func recovery(of app: Int, at time: Double) -> Double {
    all.filter { $0.apps.contains(app) && $0.to <= time }.map { $0.to + $0.recovery - time }.max() ?? 0
  }

  /// Whether an application has trouble with any provider within so many seconds after a time: what is held waits behind what that one's
  /// does.
  func hasTrouble(_ app: Int, after time: Double, for seconds: Double) -> Bool {
    all.contains { $0.apps.contains(app) && $0.from <= time + seconds && $0.to > time }
  }
}
