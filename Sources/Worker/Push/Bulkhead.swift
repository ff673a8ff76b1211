import Wire

/// Whether the requests that come by the lanes for one provider go to the hold queues of their applications, so that others pass them.
///
/// Open until the provider is in trouble, or requests wait too long for it. Closed until the provider takes what is sent and the hold queue
/// is as good as empty; to the high lane only until the provider takes what is sent, so that it passes what is held.
struct Bulkhead {
  private(set) var isClosed = false
  private(set) var isClosedToHigh = false
  /// Since when the provider has been in trouble; nil while it is not.
  private(set) var troubledSince: MonotonicTime?

  /// - Parameters:
  ///   - isInTrouble: the provider serves nothing at present.
  ///   - grace: seconds of trouble in which nothing follows: nobody else is held up.
  ///   - isOverdue: a request that came by a lane has waited too long.
  ///   - isHighOverdue: one that came by the high lane has.
  mutating func note(isInTrouble: Bool, grace: Double, isOverdue: Bool, isHighOverdue: Bool, at now: MonotonicTime) {
    if isInTrouble {
      let since = troubledSince ?? now
      troubledSince = since
      guard now.seconds(since: since) >= grace else { return }
      isClosed = true
      isClosedToHigh = true
    } else {
      if troubledSince != nil { isClosedToHigh = false }
      troubledSince = nil
      if isOverdue || isHighOverdue { isClosed = true }
      if isHighOverdue { isClosedToHigh = true }
    }
  }

  /// What is held is as good as nothing.
  mutating func emptied() {
    guard troubledSince == nil else { return }
    isClosed = false
    isClosedToHigh = false
  }

  func isClosed(to queue: WorkQueue) -> Bool { queue.isHigh ? isClosedToHigh : isClosed }
}
