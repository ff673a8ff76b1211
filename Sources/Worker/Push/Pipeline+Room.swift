import PushCore

/// Requests for which there is no room wait on the ladder, so that those of other applications behind them come through; that costs
/// no attempt.
extension Pipeline {
  func hasRoom(for entry: InFlight) -> Bool {
    guard let app = entry.identity.app, bodies.keep(entry.delivery.weight, for: app) else { return false }
    entry.source.keptFor = app
    return true
  }

  /// Later and later, for nothing calls it back when there is room.
  func waitForRoom(_ entry: InFlight) {
    let delay = min(1_000 << (2 * min(max(entry.attempt.round, 0), 3)), Self.longestWait)
    logCrowded(entry.identity.app)
    // A broadcast may have been begun before.
    if let audience = entry.parsed?.audience { entry.broadcast.work = AudienceWork(audience) }
    putOff(entry, by: Int64(delay), "the application's requests fill what it may hold of a worker")
  }

  /// In milliseconds.
  private static let longestWait = 60_000

  private func logCrowded(_ app: Int?) {
    guard let app, crowdedSince[app].map({ time.now.seconds(since: $0) >= 60 }) ?? true else { return }
    crowdedSince[app] = time.now
    log.warning(
      "an application's requests fill what it may hold: what comes waits on the ladder",
      ["app": String(decoding: apps[app].id, as: UTF8.self)])
  }
}
