import Wire

/// Notices that an abnormal share of an application's tokens is refused as dead or suspect, which is the mark of a wrong environment,
/// topic or registry rather than of so many uninstalled apps; while it is open nothing is marked in the registry and campaigns are held.
///
/// Closed until, within a minute, more than `share` of at least `sample` answers refuse the token. Open until an operator resumes a
/// campaign, or at least `sample` later answers, over at least a minute, keep within the share.
package struct Breaker {
  /// Between 0 and 1.
  let share: Double
  let sample: Int
  /// Seconds.
  static let window = 60.0

  private(set) var isOpen = false
  private var answers = 0
  private var refused = 0
  private var since = MonotonicTime(nanoseconds: 0)
  /// By the wall clock, as an operator's word is dated.
  private var openedAt: Int64 = 0

  package init(share: Double, sample: Int) {
    self.share = share
    self.sample = sample
  }

  /// - Parameters:
  ///   - isRefused: the token is dead or suspect; false when the provider took the push.
  ///   - now: of a clock that nobody sets, so that a minute is one.
  ///   - wallClock: unix milliseconds.
  /// - Returns: true when this answer opened it.
  mutating func note(isRefused: Bool, at now: MonotonicTime, wallClock: Int64) -> Bool {
    if now.seconds(since: since) > Self.window, !isOpen || answers >= sample {
      if isOpen, !isAbnormal { isOpen = false }
      since = now
      answers = 0
      refused = 0
    }
    answers += 1
    if isRefused { refused += 1 }
    guard !isOpen, answers >= sample, isAbnormal else { return false }
    isOpen = true
    openedAt = wallClock
    return true
  }

  /// A campaign that was stopped has been resumed at a time: an operator has looked at it. What opened the breaker later than that,
  /// the operator hasn't seen.
  /// - Returns: true when it closed now.
  mutating func resumed(at time: Int64) -> Bool {
    guard isOpen, openedAt <= time else { return false }
    isOpen = false
    answers = 0
    refused = 0
    return true
  }

  private var isAbnormal: Bool { Double(refused) > share * Double(answers) }

  /// Of the present window.
  var percent: Int { answers == 0 ? 0 : refused * 100 / answers }
}
