/// `Retry-After` (RFC 9110 §10.2.3): seconds, or a date in any of the three forms of §5.6.7. What is neither is as if absent.
public enum RetryAfter {
  /// Seconds; a provider's figure outside is moved to the nearer end.
  public static let range = 1...3600

  /// `now` in Unix milliseconds; without it a date can't be understood and counts as absent.
  public static func seconds(_ field: [UInt8], now: Int64?) -> Int? {
    let text = trimmed(field)
    guard let first = text.first else { return nil }
    if isDigit(first) {
      var value = 0
      for byte in text {
        guard isDigit(byte) else { return nil }
        value = min(value * 10 + Int(byte &- 0x30), range.upperBound)
      }
      return max(value, range.lowerBound)
    }
    guard let now, let date = HTTPDate.seconds(text) else { return nil }
    // Never earlier than the date.
    let wait = date - now / 1000
    return Int(min(max(wait, Int64(range.lowerBound)), Int64(range.upperBound)))
  }

  private static func trimmed(_ field: [UInt8]) -> ArraySlice<UInt8> {
    var text = field[...]
    while let first = text.first, first == 0x20 || first == 0x09 { text = text.dropFirst() }
    while let last = text.last, last == 0x20 || last == 0x09 { text = text.dropLast() }
    return text
  }

  private static func isDigit(_ byte: UInt8) -> Bool { byte &- 0x30 < 10 }
}
