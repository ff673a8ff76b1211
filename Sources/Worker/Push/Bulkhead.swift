import Wire

/// Whether the requests that come by the lanes for one provider go to the hold queues of their applications, so that others pass them.
///
/// Open until the provider is in trouble, or requests wait too long for it beside those of others. Closed until the provider takes what is
/// sent and the hold queue is as good as empty.
struct Bulkhead {
  /// Seconds that the oldest request may wait while applications share the worker.
  static let longestWait = 0.3

  private(set) var isClosed = false
  /// Since when the provider has been in trouble; nil while it is not.
  private(set) var troubledSince: MonotonicTime?

  /// - Parameters:
  ///   - isInTrouble: the provider serves nothing at present.
  ///   - grace: seconds of trouble in which nothing follows: nobody else is held up.
  ///   - waitingSince: since when the oldest request waits that came by a lane; nil where none does, or where nobody else is held up.
  mutating func note(isInTrouble: Bool, grace: Double, waitingSince: MonotonicTime?, at now: MonotonicTime) {
    if isInTrouble {
      let since = troubledSince ?? now
      troubledSince = since
      if now.seconds(since: since) >= grace { isClosed = true }
    } else {
      troubledSince = nil
      if let waitingSince, now.seconds(since: waitingSince) > Self.longestWait { isClosed = true }
    }
  }

  /// What is held is as good as nothing.
  mutating func emptied() { if troubledSince == nil { isClosed = false } }
}
