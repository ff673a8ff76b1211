import Broker
import DeviceRegistry
import PushCore

/// Requests of applications and credentials that an operator has paused wait in the application's hold queue. No attempt is counted.
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

  /// Moves what waits in the lanes of paused applications to their hold queues. Pushes without an answer are not affected.
  func takeOutPaused(for handler: some DispatchHandler) {
    let paused = controls.pausedApps.reduce(into: Set<Int>()) { $0.formUnion(apps[$1].pools) }
    for pool in paused.sorted() where !pools[pool].isEmpty && !outbox.isFull {
      takeOut(of: pool, withHeld: true, for: handler) { entry, _ in
        guard let app = entry.identity.app, controls.isPaused(app) else { return nil }
        if entry.attempt.isLast { return .fail(.unavailable, Self.pausedReason) }
        return holds.isPresent(app) ? .hold(Self.pausedReason) : .park(pausedDelay(app), Self.pausedReason)
      }
    }
  }

  /// Declares the hold queues of paused applications and credentials, so that the first request needs no detour.
  func declareHoldQueues() {
    for app in controls.pausedApps { _ = holds.isPresent(app) }
    for pool in controls.pausedPools where pools[pool].usesHoldQueue {
      for app in apps.users(of: pool) { _ = holds.isPresent(app) }
    }
  }

  static let pausedReason = "an operator has paused the application"

  // MARK: credentials

  package static let pausedCredential = "an operator has paused the credential"

  /// The reason why requests for the pools go to the hold queue.
  func holdReason(of pools: [Int]) -> String {
    pools.contains(where: controls.isCredentialPaused) ? Self.pausedCredential : Self.holdReason
  }

  /// The way of a request for a paused credential without a hold queue: browsers have none, and others until it is declared.
  func exitOfPaused(_ entry: InFlight, _ pool: Int) -> Exit {
    if entry.attempt.isLast { return .fail(.unavailable, Self.pausedCredential) }
    let wait = pools[pool].bulkhead.troubledSince.map { Int64(time.now.seconds(since: $0) * 1_000) } ?? 0
    return .park(Self.delay(after: wait), Self.pausedCredential)
  }

  /// Milliseconds on the ladder until the hold queue is declared. If that isn't possible, the delay grows.
  func pausedDelay(_ app: Int?) -> Int64 { Self.delay(after: app.map(controls.pausedFor) ?? 0) }

  private static func delay(after wait: Int64) -> Int64 { min(max(wait, 1_000), 60_000) }
}
