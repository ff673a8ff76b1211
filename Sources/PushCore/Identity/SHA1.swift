/// SHA-1 (RFC 3174) as a value: copy a state that has taken a prefix and finish each copy on its own.
///
/// It names things (UUID version 5); it protects nothing.
public struct SHA1: Sendable {
  private var state: (a: UInt32, b: UInt32, c: UInt32, d: UInt32, e: UInt32) = (
    0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0
  )
  /// The block being filled, as big-endian words; bytes not yet taken are zero.
  private var block = InlineArray<16, UInt32>(repeating: 0)
  /// Bytes taken so far.
  private var length = 0

  public init() {}

  public mutating func append(_ bytes: [UInt8]) {
    let span = bytes.span
    for index in span.indices { append(span[index]) }
  }

  @inline(__always)
  public mutating func append(_ byte: UInt8) {
    let position = length & 63
    block[position &>> 2] |= UInt32(byte) &<< UInt32(24 &- 8 &* (position & 3))
    length &+= 1
    if position == 63 { compress() }
  }

  /// The digest of everything taken, as five big-endian words.
  public consuming func finish() -> (UInt32, UInt32, UInt32, UInt32, UInt32) {
    let bits = UInt64(length) &* 8
    append(0x80)
    // Fewer than eight bytes left in this block: the length goes into the next one.
    if length & 63 > 56 { compress() }
    block[14] = UInt32(truncatingIfNeeded: bits &>> 32)
    block[15] = UInt32(truncatingIfNeeded: bits)
    compress()
    return (state.a, state.b, state.c, state.d, state.e)
  }

  /// RFC 3174 §6.2: the message schedule is kept in the sixteen words of the block itself.
  private mutating func compress() {
    var (a, b, c, d, e) = state
    var w = block
    var t = 0
    while t < 80 {
      let s = t & 15
      if t >= 16 {
        let x = w[(s &+ 13) & 15] ^ w[(s &+ 8) & 15] ^ w[(s &+ 2) & 15] ^ w[s]
        w[s] = x &<< 1 | x &>> 31
      }
      let mix: UInt32
      if t < 20 {
        mix = (b & c | ~b & d) &+ 0x5A82_7999
      } else if t < 40 {
        mix = (b ^ c ^ d) &+ 0x6ED9_EBA1
      } else if t < 60 {
        mix = (b & c | b & d | c & d) &+ 0x8F1B_BCDC
      } else {
        mix = (b ^ c ^ d) &+ 0xCA62_C1D6
      }
      let next = (a &<< 5 | a &>> 27) &+ mix &+ e &+ w[s]
      e = d
      d = c
      c = b &<< 30 | b &>> 2
      b = a
      a = next
      t &+= 1
    }
    state = (state.a &+ a, state.b &+ b, state.c &+ c, state.d &+ d, state.e &+ e)
    block = InlineArray(repeating: 0)
  }
}
