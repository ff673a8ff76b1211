import Broker
import DeviceRegistry
import PushCore

/// Requests of applications that an operator has paused wait in the hold queue, those for paused credentials on the retry ladder: in the
/// hold queue they would be in front of requests for the application's other credentials. No attempt is counted.
extension Dispatcher {
  /// Whether the request has to wait until an operator resumes its application.
  func isPaused(_ entry: InFlight) -> Bool {
    controls.isPaused(entry.identity.app) && entry.request?.isDryRun == false
  }

  /// The refusal of a new request to an application or a lane that accepts no more of them. Broadcasts go to a lane of their own.
  func refusalOfDrained(_ entry: InFlight) -> Rejection? {
    // It waited before: a worker has written a note on it, or it waited in its lane. Producers' timestamps have whole seconds.
    guard entry.attempt.round == 0, entry.source.hold == nil, !entry.delivery.redelivered, !entry.isPage else { return nil }
    let isBroadcast = entry.request?.audience?.isSmall == false
    let queues = isBroadcast ? [entry.source.queue, entry.source.queue.fanOut] : [entry.source.queue]
    let order = controls.drains(of: entry.identity.app, queues).first {
      !(entry.identity.isDated && entry.identity.published < $0.since ?? 0)
    }
    return order.map(Self.refusal)
  }

  /// The refusal of a push, because an operator drains its credential or has discarded what waited for it.
  func refusal(of entry: InFlight, by pool: Int) -> Rejection? {
    guard let order = controls.order(for: pool, of: entry.identity.app) else { return nil }
    let waited = entry.attempt.putOffAt
    if let waited, let discarded = order.discarded, waited <= discarded {
      return Rejection(.cancelled, "an operator has discarded what waited for the credential")
    }
    let since = order.since ?? 0
    guard order.mode(at: time.wallClock) == .draining, entry.identity.published >= since, waited ?? since >= since,
      entry.identity.isDated || !entry.delivery.redelivered
    else { return nil }
    return Self.refusal(order)
  }

  private static func refusal(_ drain: Control) -> Rejection {
    let kind = drain.subject.kind == "app" ? "application" : drain.subject.kind
    return Rejection(.unavailable, "an operator drains the \(kind): it accepts no new requests")
  }

  /// Moves waiting pushes of paused applications to their hold queues, and dry runs to the ladder, after which they end
  /// without FCM's answer. Pushes without an answer are not affected.
  func takeOutPaused(for pipeline: Pipeline) {
    let paused = controls.pausedApps
    // Declared early, because a new queue can be used only a second later.
    for app in paused { _ = holds.isPresent(app) }
    for pool in paused.reduce(into: Set<Int>(), { $0.formUnion(apps[$1].pools) }).sorted()
    where !pools[pool].isEmpty && !outbox.isFull {
      takeOut(of: pool, withHeld: true, for: pipeline) { entry, _ in
        guard let app = entry.identity.app, controls.isPaused(app) else { return nil }
        if entry.attempt.isLast { return .fail(.unavailable, Self.pausedReason) }
        let isDryRun = entry.request?.isDryRun == true
        return holds.isPresent(app) && !isDryRun
          ? .hold(Self.pausedReason) : .park(pausedDelay(app), Self.pausedReason)
      }
    }
  }

  static let pausedReason = "an operator has paused the application"

  /// Moves what waits for a paused credential to the ladder. To be called before each dispatch of the pool.
  func takeOutPaused(of pool: Int, for pipeline: Pipeline) {
    guard !pools[pool].isEmpty, !outbox.isFull else { return }
    takeOut(of: pool, withHeld: true, for: pipeline) { entry, _ in
      let now = time.wallClock
      guard let order = controls.order(for: pool, of: entry.identity.app), order.mode(at: now) == .paused else { return nil }
      if entry.attempt.isLast { return .fail(.unavailable, Self.pausedCredential) }
      let delay = Self.delay(after: now - (order.since ?? 0))
      controls.waits(for: order.subject, until: now + ladder.step(for: delay).delay)
      return .park(delay, Self.pausedCredential)
    }
  }

  /// Puts off the rest of the pages that are being sent for these campaigns.
  func takeOutStopped(_ campaigns: Set<[UInt8]>, for pipeline: Pipeline) {
    for pool in active where !pools[pool].isEmpty && !outbox.isFull {
      takeOut(of: pool, withHeld: true, for: pipeline) { entry, _ in
        guard !entry.attempt.isLast, let page = entry.broadcast.page, campaigns.contains(page.campaign) else { return nil }
        entry.attempt.isStopped = true
        return .park(Broadcasts.pausedDelay, "the campaign was paused, held or cancelled")
      }
    }
  }

  package static let pausedCredential = "an operator has paused the credential"

  /// Milliseconds on the ladder until the hold queue is declared. If that isn't possible, the delay grows.
  func pausedDelay(_ app: Int?) -> Int64 { Self.delay(after: app.map(controls.pausedFor) ?? 0) }

  private static func delay(after wait: Int64) -> Int64 { min(max(wait, 1_000), 60_000) }
}
