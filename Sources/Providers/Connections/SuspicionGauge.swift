import Wire

/// Notices when so many tokens are refused that our own configuration is the likelier culprit: the wrong environment answers
/// BadDeviceToken for every device, and pruning on it would empty the registry.
struct SuspicionGauge {
  /// Answers about tokens are counted in windows of so many seconds.
  static let window = 300.0
  /// Fewer answers than this say nothing.
  static let least = 50
  /// The share of suspect tokens above which they are not believed.
  static let share = 0.5

  private var windowStart = MonotonicTime(nanoseconds: .min / 2)
  private var good = 0
  private var suspect = 0
  private(set) var isRaised = false

  /// Gives the share in percent when this answer raised the alarm.
  mutating func counted(isSuspect: Bool, at now: MonotonicTime) -> Int? {
    if now.seconds(since: windowStart) >= Self.window {
      // A window that ends without reason for the alarm ends the alarm; an empty one says nothing.
      if good + suspect >= Self.least { isRaised = isOverShare }
      windowStart = now
      good = 0
      suspect = 0
    }
    if isSuspect { suspect += 1 } else { good += 1 }
    guard !isRaised, good + suspect >= Self.least, isOverShare else { return nil }
    isRaised = true
    return suspect * 100 / (good + suspect)
  }

  private var isOverShare: Bool { Double(suspect) > Self.share * Double(good + suspect) }
}
