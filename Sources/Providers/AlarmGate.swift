import Wire

/// Lets through one alarm for each reason in a while, and counts those that it holds back.
struct AlarmGate {
  /// Seconds.
  static let interval = 300.0
  /// Reasons that are distinguished; a provider may invent any number of them.
  static let mostReasons = 50

  private struct Entry {
    var saidAt: MonotonicTime
    var count = 0
  }

  private var entries: [String: Entry] = [:]

  /// How many there were since one was let through, this one included; nil when this one is held back.
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
