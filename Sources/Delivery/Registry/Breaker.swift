import Wire

/// Opens when providers refuse an abnormal share of an application's tokens as dead or suspect. A wrong environment, topic or
/// registry is then more likely than so many uninstalled apps. While the breaker is open, no token is marked and campaigns are
/// held. It opens if, within a minute, more than `share` of at least `sample` answers refuse the token. It closes when an
/// operator resumes a campaign, or when at least `sample` later answers, over at least a minute, keep within the share.
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
  /// Wall-clock time, because operators' actions have it too.
  private var openedAt: Int64 = 0

  package init(share: Double, sample: Int) {
    self.share = share
    self.sample = sample
  }

  /// - Parameters:
  ///   - isRefused: true if the token is dead or suspect; false if the provider accepted the push.
  ///   - now: monotonic time, so that a minute has 60 seconds.
  ///   - wallClock: unix milliseconds.
  /// - Returns: true if this answer opened the breaker.
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

  /// An operator resumed a stopped campaign at `time` and has seen every reason before it. A breaker that opened later stays
  /// open.
  /// - Returns: true if this closed the breaker.
  mutating func resumed(at time: Int64) -> Bool {
    guard isOpen, openedAt <= time else { return false }
    isOpen = false
    answers = 0
    refused = 0
    return true
  }

  private var isAbnormal: Bool { Double(refused) > share * Double(answers) }

  var percent: Int { answers == 0 ? 0 : refused * 100 / answers }
}
