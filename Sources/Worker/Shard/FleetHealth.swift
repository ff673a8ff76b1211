import Wire

/// How the process stands at a moment, for whoever decides whether it is to be restarted or waited for.
struct FleetHealth {
  /// Seconds within which every shard's loop has to turn; each turns about once a second when nothing happens.
  static let silence = 10.0

  /// Shards whose loop has not turned for that long.
  var hanging: [Int] = []
  /// Shards that don't both publish and consume.
  var unready: [Int] = []
  /// It takes nothing more.
  var isDraining = false

  /// A restart would not help: neither the broker nor a provider counts.
  var isAlive: Bool { hanging.isEmpty }
  /// It does its work.
  var isReady: Bool { hanging.isEmpty && unready.isEmpty && !isDraining }

  /// What is wrong with its life; "ok" when nothing is.
  var liveness: String {
    isAlive ? "ok" : "hanging for more than \(Int(Self.silence)) s: \(Self.names(hanging))"
  }

  /// What keeps it from its work; "ok" when nothing does.
  var readiness: String {
    if !isAlive { return liveness }
    if isDraining { return "draining" }
    return unready.isEmpty ? "ok" : "not publishing and consuming: \(Self.names(unready))"
  }

  private static func names(_ shards: [Int]) -> String { shards.map { "shard \($0)" }.joined(separator: ", ") }
}
