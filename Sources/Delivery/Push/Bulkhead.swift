import Broker
import Wire

/// Decides whether the lanes' requests for a provider go to the hold queues of their applications, so that others can pass
/// them. It closes if the provider is in trouble or requests wait too long. It opens when the provider accepts pushes and the
/// hold queue is nearly empty. For the high lane it opens as soon as none of the lane's requests wait, so that they overtake
/// held ones.
package struct Bulkhead {
  /// How long a lane's requests wait for their provider.
  enum Wait { case none, short, overdue }

  private(set) var isClosed = false
  private(set) var isClosedToHigh = false
  /// The time when the provider's trouble began; nil if there is none.
  package private(set) var troubledSince: MonotonicTime?

  /// - Parameters:
  ///   - isInTrouble: the provider serves nothing at present.
  ///   - grace: seconds of trouble that are tolerated, because no other application is held up.
  ///   - isOverdue: a page, or a request of a lane other than the high one, has waited too long.
  ///   - high: the wait of the high lane's requests.
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

  mutating func emptied() {
    guard troubledSince == nil else { return }
    isClosed = false
    isClosedToHigh = false
  }

  func isClosed(to queue: WorkQueue) -> Bool { queue == .sendHigh ? isClosedToHigh : isClosed }
}
