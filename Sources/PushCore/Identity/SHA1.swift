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
    var v = Variables(a: state.a, b: state.b, c: state.c, d: state.d, e: state.e)
    var w = block
    var t = 0
    while t < 16 {
      v.step((v.b & v.c | ~v.b & v.d) &+ 0x5A82_7999 &+ w[t])
      t &+= 1
    }
    while t < 20 {
      v.step((v.b & v.c | ~v.b & v.d) &+ 0x5A82_7999 &+ Self.schedule(&w, t))
      t &+= 1
    }
    while t < 40 {
      v.step((v.b ^ v.c ^ v.d) &+ 0x6ED9_EBA1 &+ Self.schedule(&w, t))
      t &+= 1
    }
    while t < 60 {
      v.step((v.b & v.c | v.b & v.d | v.c & v.d) &+ 0x8F1B_BCDC &+ Self.schedule(&w, t))
      t &+= 1
    }
    while t < 80 {
      v.step((v.b ^ v.c ^ v.d) &+ 0xCA62_C1D6 &+ Self.schedule(&w, t))
      t &+= 1
    }
    state = (state.a &+ v.a, state.b &+ v.b, state.c &+ v.c, state.d &+ v.d, state.e &+ v.e)
    block = InlineArray(repeating: 0)
  }

  @inline(__always)
  private static func schedule(_ w: inout InlineArray<16, UInt32>, _ t: Int) -> UInt32 {
    let x = w[(t &+ 13) & 15] ^ w[(t &+ 8) & 15] ^ w[(t &+ 2) & 15] ^ w[t & 15]
    w[t & 15] = x &<< 1 | x &>> 31
    return w[t & 15]
  }

  private struct Variables {
    var a, b, c, d, e: UInt32

    /// `mixed` is f(b, c, d) + K + W of this step.
    @inline(__always)
    mutating func step(_ mixed: UInt32) {
      let next = (a &<< 5 | a &>> 27) &+ e &+ mixed
      e = d
      d = c
      c = b &<< 30 | b &>> 2
      b = a
      a = next
    }
  }
}
