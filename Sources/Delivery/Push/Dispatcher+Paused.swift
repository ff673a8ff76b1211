import Broker
import DeviceRegistry
import PushCore

/// Requests of applications that an operator has paused wait in the hold queue, those for paused credentials on the retry ladder: in the
/// hold queue they would be in front of requests for the application's other credentials. No attempt is counted.
extension Dispatcher {
  /// Whether the request has to wait until an operator resumes its application.
  func isPaused(_ entry: InFlight) -> Bool {
    controls.isPaused(entry.identity.app) && entry.parsed?.isDryRun == false
  }

  /// The refusal of a new request to an application that accepts no more of them.
  /// - Parameter isNew: no worker has written a note on it.
  func refusalOfDrained(_ entry: InFlight, isNew: Bool, isRedelivered: Bool) -> Rejection? {
    guard isNew, !isRedelivered, entry.source.hold == nil, !entry.isPage,
      let since = controls.drained(entry.identity.app)
    else { return nil }
    // It waited in the lane before. Producers' timestamps have whole seconds.
    if entry.identity.isDated, entry.identity.published < since { return nil }
    return Rejection(.unavailable, "an operator drains the application: it accepts no new requests")
  }

  /// Moves waiting pushes of paused applications to their hold queues, and dry runs to the ladder, after which they end
  /// without FCM's answer. Pushes without an answer are not affected.
  func takeOutPaused(for handler: some DispatchHandler) {
    let paused = controls.pausedApps
    // The first request needs no detour then.
    for app in paused { _ = holds.isPresent(app) }
    for pool in paused.reduce(into: Set<Int>(), { $0.formUnion(apps[$1].pools) }).sorted()
    where !pools[pool].isEmpty && !outbox.isFull {
      takeOut(of: pool, withHeld: true, for: handler) { entry, _ in
        guard let app = entry.identity.app, controls.isPaused(app) else { return nil }
        if entry.attempt.isLast { return .fail(.unavailable, Self.pausedReason) }
        let isDryRun = entry.parsed?.isDryRun == true
        return holds.isPresent(app) && !isDryRun
          ? .hold(Self.pausedReason) : .park(pausedDelay(app), Self.pausedReason)
      }
    }
  }

  static let pausedReason = "an operator has paused the application"

  /// Moves what waits for a paused credential to the ladder. To be called before each dispatch of the pool.
  func takeOutPaused(of pool: Int, for handler: some DispatchHandler) {
    guard !pools[pool].isEmpty, !outbox.isFull else { return }
    takeOut(of: pool, withHeld: true, for: handler) { entry, _ in
      guard let since = controls.pausedSince(pool, of: entry.identity.app) else { return nil }
      if entry.attempt.isLast { return .fail(.unavailable, Self.pausedCredential) }
      return .park(Self.delay(after: time.wallClock - since), Self.pausedCredential)
    }
  }

  package static let pausedCredential = "an operator has paused the credential"

  /// Milliseconds on the ladder until the hold queue is declared. If that isn't possible, the delay grows.
  func pausedDelay(_ app: Int?) -> Int64 { Self.delay(after: app.map(controls.pausedFor) ?? 0) }

  private static func delay(after wait: Int64) -> Int64 { min(max(wait, 1_000), 60_000) }
}
