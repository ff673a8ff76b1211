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

  /// The refusal of a new request to an application or a lane that accepts no more of them. Broadcasts go to a lane of their own.
  func refusalOfDrained(_ entry: InFlight) -> Rejection? {
    let isBroadcast = entry.parsed?.audience?.isSmall == false
    let app = entry.identity.app
    let order =
      controls.drain(of: app, entry.source.queue) ?? (isBroadcast ? controls.drain(of: app, entry.source.queue.fanOut) : nil)
    guard let order, isNew(entry, since: order.since ?? 0) else { return nil }
    return Rejection(.unavailable, Self.drained(order.subject))
  }

  private static func drained(_ subject: ControlSubject) -> String {
    "an operator drains the \(subject.kind == "app" ? "application" : subject.kind): it accepts no new requests"
  }

  /// No worker has written a note on the request, and it didn't wait in its lane before the order.
  private func isNew(_ entry: InFlight, since order: Int64) -> Bool {
    entry.attempt.round == 0 && entry.source.hold == nil && !entry.delivery.redelivered && !entry.isPage
      // Producers' timestamps have whole seconds.
      && !(entry.identity.isDated && entry.identity.published < order)
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

  /// Moves what waits for a paused credential to the ladder, and refuses new pushes by a drained one. To be called before each
  /// dispatch of the pool.
  func takeOutOrdered(of pool: Int, for handler: some DispatchHandler) {
    guard !pools[pool].isEmpty, !outbox.isFull else { return }
    takeOut(of: pool, withHeld: true, for: handler) { entry, _ in
      guard let order = controls.order(for: pool, of: entry.identity.app) else { return nil }
      if order.mode == .draining {
        return isNew(entry, since: order.since ?? 0) ? .fail(.unavailable, Self.drained(order.subject)) : nil
      }
      if let discarded = order.discarded, entry.identity.published + (entry.identity.isDated ? 1_000 : 0) <= discarded {
        return .discard
      }
      if entry.attempt.isLast { return .fail(.unavailable, Self.pausedCredential) }
      let delay = Self.delay(after: time.wallClock - (order.since ?? 0))
      controls.waits(for: order.subject, delay)
      return .park(delay, Self.pausedCredential)
    }
  }

  package static let pausedCredential = "an operator has paused the credential"
  static let discarded = "an operator has discarded what waited for the credential"

  /// Milliseconds on the ladder until the hold queue is declared. If that isn't possible, the delay grows.
  func pausedDelay(_ app: Int?) -> Int64 { Self.delay(after: app.map(controls.pausedFor) ?? 0) }

  private static func delay(after wait: Int64) -> Int64 { min(max(wait, 1_000), 60_000) }
}
