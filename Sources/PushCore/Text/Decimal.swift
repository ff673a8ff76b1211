extension [UInt8] {
  public mutating func appendDecimal(_ value: Int) { appendDecimal(Int64(value)) }

  public mutating func appendDecimal(_ value: Int64) {
    var magnitude = value.magnitude
    if value < 0 { append(0x2D) }
    if magnitude < 10 {
      append(0x30 &+ UInt8(truncatingIfNeeded: magnitude))
      return
    }
    // A UInt64 has at most twenty digits.
    var digits = InlineArray<20, UInt8>(repeating: 0)
    var count = 0
    while magnitude > 0 {
      digits[count] = 0x30 &+ UInt8(truncatingIfNeeded: magnitude % 10)
      magnitude /= 10
      count &+= 1
    }
    while count > 0 {
      count &-= 1
      append(digits[count])
    }
  }
}
