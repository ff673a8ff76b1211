extension JSONDocument {
  /// The value of an integral number in any notation: `600`, `600.0` and `6e2` are equal. `-0` is 0. Nil for other values and
  /// if out of range.
  public func integer(_ node: Int) -> Int64? {
    guard nodes[node].kind == .number else { return nil }
    let range = source(node)
    if nodes[node].has(JSONNode.fractional) { return Self.integral(bytes.span, range) }
    let negative = bytes[range.lowerBound] == UInt8(ascii: "-")
    var value: Int64 = 0
    for at in range.lowerBound + (negative ? 1 : 0)..<range.upperBound {
      guard Self.append(bytes[at] &- UInt8(ascii: "0"), to: &value, negative) else { return nil }
    }
    return value
  }

  /// The nearest floating-point value, infinite if out of range; nil if `node` isn't a number.
  public func double(_ node: Int) -> Double? {
    guard nodes[node].kind == .number else { return nil }
    return Double(String(decoding: bytes[source(node)], as: UTF8.self))
  }

  /// A number with a fraction or exponent. It is integral if its last nonzero digit has a power of ten of at least 0.
  private static func integral(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Int64? {
    let negative = bytes[range.lowerBound] == UInt8(ascii: "-")
    let start = range.lowerBound + (negative ? 1 : 0)
    var end = start
    var point: Int?
    var last: Int?
    while end < range.upperBound, bytes[end] | 0x20 != UInt8(ascii: "e") {
      if bytes[end] == UInt8(ascii: ".") {
        point = end
      } else if bytes[end] != UInt8(ascii: "0") {
        last = end
      }
      end &+= 1
    }
    guard let last else { return 0 }
    let unit = point ?? end
    let power = exponent(bytes, end..<range.upperBound) &+ (last < unit ? unit &- last &- 1 : unit &- last)
    guard power >= 0 else { return nil }
    var value: Int64 = 0
    for at in start...last where at != point {
      guard append(bytes[at] &- UInt8(ascii: "0"), to: &value, negative) else { return nil }
    }
    for _ in 0..<min(power, 20) {
      guard append(0, to: &value, negative) else { return nil }
    }
    return value
  }

  /// The exponent after a mantissa, 0 if there is none. Clamped to 2⁴⁰, far above the length of any body.
  private static func exponent(_ bytes: borrowing Span<UInt8>, _ range: Range<Int>) -> Int {
    guard !range.isEmpty else { return 0 }
    var exponent = 0
    for at in range.dropFirst() where Bytes.isDigit(bytes[at]) {
      exponent = min(exponent &* 10 &+ Int(bytes[at] &- UInt8(ascii: "0")), 1 << 40)
    }
    return bytes[range.lowerBound &+ 1] == UInt8(ascii: "-") ? -exponent : exponent
  }

  /// Appends a decimal digit to an integer of this sign. False if the result is out of range.
  private static func append(_ digit: UInt8, to value: inout Int64, _ negative: Bool) -> Bool {
    let (tenfold, overflow) = value.multipliedReportingOverflow(by: 10)
    let (sum, carry) =
      negative ? tenfold.subtractingReportingOverflow(Int64(digit)) : tenfold.addingReportingOverflow(Int64(digit))
    value = sum
    return !overflow && !carry
  }
}
