/// Reads `Retry-After` (RFC 9110 §10.2.3): seconds, or a date in a form of §5.6.7. Anything else counts as absent.
public enum RetryAfter {
  /// The accepted seconds. Values outside are clamped.
  public static let range = 1...3600

  /// - Parameter now: Unix milliseconds; nil ignores dates.
  public static func seconds(_ field: [UInt8], now: Int64?) -> Int? {
    let text = trimmed(field)
    guard let first = text.first else { return nil }
    if Bytes.isDigit(first) {
      guard text.allSatisfy(Bytes.isDigit) else { return nil }
      let value = text.reduce(0) { min($0 * 10 + Int($1 &- 0x30), range.upperBound) }
      return max(value, range.lowerBound)
    }
    guard let now, let date = HTTPDate.seconds(text) else { return nil }
    // Rounds up, so that the wait never ends before the date.
    let wait = date - now / 1000
    return Int(min(max(wait, Int64(range.lowerBound)), Int64(range.upperBound)))
  }

  private static func trimmed(_ field: [UInt8]) -> ArraySlice<UInt8> {
    var text = field[...]
    while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
    while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
    return text
  }
}
