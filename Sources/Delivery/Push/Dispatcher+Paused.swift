import Broker
import DeviceRegistry
import PushCore

/// Requests of applications that an operator has paused wait in the hold queue. No attempt is counted.
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
    for app in controls.pausedApps {
      for pool in apps[app].pools where !pools[pool].isEmpty && !outbox.isFull {
        takeOut(of: pool, withHeld: true, for: handler) { entry, _ in
          guard entry.identity.app == app else { return nil }
          if entry.attempt.isLast { return .fail(.unavailable, Self.pausedReason) }
          return holds.isPresent(app) ? .hold : .park(Self.pausedDelay, Self.pausedReason)
        }
      }
    }
  }

  static let pausedReason = "an operator has paused the application"
  /// Milliseconds on the ladder until the hold queue is declared.
  static let pausedDelay: Int64 = 1_000
}
