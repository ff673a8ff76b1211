extension [UInt8] {
  public mutating func appendDecimal(_ value: Int) { appendDecimal(Int64(value)) }

  public mutating func appendDecimal(_ value: Int64) {
    // Written from the last digit on; at most nineteen digits and a sign.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var first = digits.count
    var magnitude = value.magnitude
    repeat {
      first &-= 1
      digits[first] = UInt8(truncatingIfNeeded: 0x30 &+ magnitude % 10)
      magnitude /= 10
    } while magnitude > 0
    if value < 0 {
      first &-= 1
      digits[first] = 0x2D
    }
    append(copying: digits.span.extracting(first..<digits.count))
  }
}
