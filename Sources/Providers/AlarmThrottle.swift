import Wire

/// Limits alarms to one for each reason and interval, and counts the suppressed ones.
struct AlarmThrottle {
  /// Seconds.
  static let interval = 300.0
  /// The number of distinguished reasons: a provider may invent any number.
  static let mostReasons = 50

  private struct Entry {
    var saidAt: MonotonicTime
    var count = 0
  }

  private var entries: [String: Entry] = [:]

  /// Returns the number of alarms since the last reported one, including this one; nil if this one is suppressed.
  mutating func raised(_ reason: String, at now: MonotonicTime) -> Int? {
    let reason = entries[reason] == nil && entries.count >= Self.mostReasons ? "" : reason
    guard var entry = entries[reason] else {
      entries[reason] = Entry(saidAt: now)
      return 1
    }
    entry.count += 1
    defer { entries[reason] = entry }
    guard now.seconds(since: entry.saidAt) >= Self.interval else { return nil }
    let count = entry.count
    entry = Entry(saidAt: now)
    return count
  }
}
