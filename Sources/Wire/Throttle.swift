/// Admits one event for each key and interval, and counts the others.
public struct Throttle<Key: Hashable> {
  private let seconds: Double
  private let most: Int
  private var entries: [Key?: (until: MonotonicTime, omitted: Int)] = [:]

  /// - Parameters:
  ///   - seconds: the interval.
  ///   - most: the number of distinguished keys. All further keys share one entry.
  public init(seconds: Double, most: Int) { (self.seconds, self.most) = (seconds, most) }

  /// - Returns: the number of the key's events omitted since the last admitted one; nil if this one is to be omitted.
  public mutating func admit(_ key: Key, at now: MonotonicTime) -> Int? {
    if entries.count >= most, entries[key] == nil { entries = entries.filter { $0.value.until > now } }
    let key = entries.count < most || entries[key] != nil ? key : nil
    let omitted = entries[key]?.omitted ?? 0
    if let until = entries[key]?.until, until > now {
      entries[key] = (until, omitted + 1)
      return nil
    }
    entries[key] = (now.advanced(bySeconds: seconds), 0)
    return omitted
  }
}
