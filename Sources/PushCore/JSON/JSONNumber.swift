/// Why a node isn't an integer that fits.
public enum JSONNumberError: Error, Equatable, Sendable {
  /// The node isn't a number at all.
  case notNumber
  /// A number with a fraction that isn't zero.
  case notIntegral
  /// Integral, but outside of `Int64`.
  case outOfRange
}

extension JSONDocument {
  /// The value of a number that is an integer, however it is written: `600`, `600.0` and `6e2` are the same. `-0` is 0.
  public func integer(_ node: Int) throws(JSONNumberError) -> Int64 {
    guard nodes[node].kind == .number else { throw .notNumber }
    let range = source(node)
    if nodes[node].has(JSONNode.fractional) { return try Self.integral(bytes.span, range) }
    let negative = bytes[range.lowerBound] == UInt8(ascii: "-")
    var value: Int64 = 0
    for at in range.lowerBound + (negative ? 1 : 0)..<range.upperBound {
      value = try Self.shifted(value, bytes[at] &- UInt8(ascii: "0"), negative)
    }
    return value
  }

  /// A number as the nearest floating-point value (infinite when beyond its range); nil when `node` isn't a number.
  public func double(_ node: Int) -> Double? {
    guard nodes[node].kind == .number else { return nil }
    return Double(String(decoding: bytes[source(node)], as: UTF8.self))
  }

  /// A number with fraction or exponent: its digits without the point and without the zeros at the end, times a power of ten that
  /// must not be negative.
  private static func integral(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) throws(JSONNumberError) -> Int64 {
    let negative = bytes[range.lowerBound] == UInt8(ascii: "-")
    var exponent = 0
    var mantissaEnd = range.lowerBound
    while mantissaEnd < range.upperBound, bytes[mantissaEnd] | 0x20 != UInt8(ascii: "e") { mantissaEnd &+= 1 }
    if mantissaEnd < range.upperBound {
      var at = mantissaEnd &+ 1
      let down = bytes[at] == UInt8(ascii: "-")
      if down || bytes[at] == UInt8(ascii: "+") { at &+= 1 }
      while at < range.upperBound {
        // Clamped far above any length of a body: enough to tell too large from too small.
        exponent = min(exponent &* 10 &+ Int(bytes[at] &- UInt8(ascii: "0")), 1 << 40)
        at &+= 1
      }
      if down { exponent = -exponent }
    }
    var value: Int64 = 0
    var pendingZeros = 0
    var inFraction = false
    for at in range.lowerBound + (negative ? 1 : 0)..<mantissaEnd {
      if bytes[at] == UInt8(ascii: ".") {
        inFraction = true
        continue
      }
      if inFraction { exponent &-= 1 }
      let digit = bytes[at] &- UInt8(ascii: "0")
      if digit == 0 {
        pendingZeros &+= 1
        continue
      }
      if value != 0 { for _ in 0..<min(pendingZeros, 20) { value = try shifted(value, 0, negative) } }
      pendingZeros = 0
      value = try shifted(value, digit, negative)
    }
    if value == 0 { return 0 }
    exponent &+= pendingZeros
    guard exponent >= 0 else { throw .notIntegral }
    for _ in 0..<min(exponent, 20) { value = try shifted(value, 0, negative) }
    return value
  }

  private static func shifted(_ value: Int64, _ digit: UInt8, _ negative: Bool) throws(JSONNumberError) -> Int64 {
    let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) =
      negative ? tenfold.subtractingReportingOverflow(Int64(digit)) : tenfold.addingReportingOverflow(Int64(digit))
    guard !overflow, !carry else { throw .outOfRange }
    return sum
  }
}
