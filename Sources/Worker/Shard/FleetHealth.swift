import Wire

/// The process's health, for supervisors that restart it or wait for it.
struct FleetHealth {
  /// Seconds without a turn after which a shard's loop counts as hanging. An idle loop turns about once a second.
  static let silence = 10.0

  var hanging: [Int] = []
  /// Shards that don't both publish and consume.
  var unready: [Int] = []
  var isDraining = false
  var isReloadRefused = false

  /// False if a restart would help; broker and providers have no influence.
  var isAlive: Bool { hanging.isEmpty }
  var isReady: Bool { hanging.isEmpty && unready.isEmpty && !isDraining }

  /// The liveness problem, or "ok".
  var liveness: String {
    isAlive ? "ok" : "hanging for more than \(Int(Self.silence)) s: \(Self.names(hanging))"
  }

  /// The readiness problem, or "ok".
  var readiness: String {
    if !isAlive { return liveness }
    if isDraining { return "draining" }
    return unready.isEmpty ? "ok" : "not publishing and consuming: \(Self.names(unready))"
  }

  private static func names(_ shards: [Int]) -> String { shards.map { "shard \($0)" }.joined(separator: ", ") }
}
