import Wire

/// Lets one line a minute through about each of many things whose number others decide.
package struct LogThrottle {
  static let capacity = 1_000
  private static let pause = 60.0

  private var lines: [[UInt8]: (until: MonotonicTime, omitted: Int)] = [:]

  package init() {}

  /// - Returns: how many lines about the same were left out before this one; nil when this one is left out as well.
  package mutating func admit(_ subject: [UInt8], at now: MonotonicTime) -> Int? {
    if lines.count >= Self.capacity, lines[subject] == nil { lines = lines.filter { $0.value.until > now } }
    // Beyond that many at once they are all one.
    let key = lines.count < Self.capacity || lines[subject] != nil ? subject : []
    if let line = lines[key], line.until > now {
      lines[key] = (line.until, line.omitted + 1)
      return nil
    }
    let omitted = lines[key]?.omitted ?? 0
    lines[key] = (now.advanced(bySeconds: Self.pause), 0)
    return omitted
  }
}
