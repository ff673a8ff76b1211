import Broker
import Wire

/// Whether the requests that come by the lanes for one provider go to the hold queues of their applications, so that others pass them.
///
/// Open until the provider is in trouble, or requests wait too long for it. Closed until the provider takes what is sent and the hold queue
/// is as good as empty; to the high lane only as long as its own requests wait, so that it passes what is held.
package struct Bulkhead {
  /// Of the requests of a lane for their provider.
  enum Wait { case none, short, overdue }

  private(set) var isClosed = false
  private(set) var isClosedToHigh = false
  /// Since when the provider has been in trouble; nil while it is not.
  package private(set) var troubledSince: MonotonicTime?

  /// - Parameters:
  ///   - isInTrouble: the provider serves nothing at present.
  ///   - grace: seconds of trouble in which nothing follows: nobody else is held up.
  ///   - isOverdue: a request that came by a lane other than the high one, or a page, has waited too long.
  ///   - high: what came by the high lane waits, or has waited too long.
  mutating func note(isInTrouble: Bool, grace: Double, isOverdue: Bool, high: Wait, at now: MonotonicTime) {
    if isInTrouble {
      let since = troubledSince ?? now
      troubledSince = since
      guard now.seconds(since: since) >= grace else { return }
      isClosed = true
      isClosedToHigh = true
    } else {
      if troubledSince != nil || high == .none { isClosedToHigh = false }
      troubledSince = nil
      if isOverdue || high == .overdue { isClosed = true }
      if high == .overdue { isClosedToHigh = true }
    }
  }

  /// What is held is as good as nothing.
  mutating func emptied() {
    guard troubledSince == nil else { return }
    isClosed = false
    isClosedToHigh = false
  }

  func isClosed(to queue: WorkQueue) -> Bool { queue == .sendHigh ? isClosedToHigh : isClosed }
}
