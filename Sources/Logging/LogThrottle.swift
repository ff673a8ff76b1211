import Wire

/// Allows one log line a minute for each subject, with bounded memory for any number of subjects.
package struct LogThrottle {
  static let capacity = 1_000
  private static let pause = 60.0

  private var lines: [[UInt8]: (until: MonotonicTime, omitted: Int)] = [:]

  package init() {}

  /// - Returns: the number of lines about the subject omitted since its last one; nil if this line is to be omitted.
  package mutating func admit(_ subject: [UInt8], at now: MonotonicTime) -> Int? {
    if lines.count >= Self.capacity, lines[subject] == nil { lines = lines.filter { $0.value.until > now } }
    // Beyond the capacity, all further subjects share one entry.
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
