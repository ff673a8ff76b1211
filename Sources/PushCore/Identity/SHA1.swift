/// SHA-1 (RFC 3174) as a value: copy a state that has taken a prefix and finish each copy on its own.
///
/// It names things (UUID version 5); it protects nothing.
public struct SHA1: Sendable {
  private var state = State()
  /// The block being filled, as big-endian words; bytes not yet taken are zero.
  private var block = InlineArray<16, UInt32>(repeating: 0)
  /// Bytes taken so far.
  private var length = 0

  public init() {}

  public mutating func append(_ bytes: [UInt8]) {
    let span = bytes.span
    var index = 0
    while span.count &- index >= 4 {
      let four = span.extracting(index..<index &+ 4)
      appendWord(UInt32(four[0]) &<< 24 | UInt32(four[1]) &<< 16 | UInt32(four[2]) &<< 8 | UInt32(four[3]))
      index &+= 4
    }
    while index < span.count {
      append(span[index])
      index &+= 1
    }
  }

  /// Four bytes, which may lie across two words of the block, or across two blocks.
  @inline(__always)
  private mutating func appendWord(_ word: UInt32) {
    let position = length & 63
    let shift = UInt32(position & 3) &* 8
    block[position &>> 2] |= word &>> shift
    length &+= 4
    if position >= 60 { compress() }
    if shift > 0 { block[((position &>> 2) &+ 1) & 15] |= word &<< (32 &- shift) }
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

  /// RFC 3174 §6.1: the message schedule first, then eighty steps.
  private mutating func compress() {
    var w = InlineArray<80, UInt32>(repeating: 0)
    var t = 0
    while t < 16 {
      w[t] = block[t]
      t &+= 1
    }
    while t < 80 {
      let x = w[t &- 3] ^ w[t &- 8] ^ w[t &- 14] ^ w[t &- 16]
      w[t] = x &<< 1 | x &>> 31
      t &+= 1
    }
    var v = state
    t = 0
    while t < 20 {
      v.steps(0x5A82_7999, w[t], w[t &+ 1], w[t &+ 2], w[t &+ 3], w[t &+ 4]) { $2 ^ $0 & ($1 ^ $2) }
      t &+= 5
    }
    while t < 40 {
      v.steps(0x6ED9_EBA1, w[t], w[t &+ 1], w[t &+ 2], w[t &+ 3], w[t &+ 4]) { $0 ^ $1 ^ $2 }
      t &+= 5
    }
    while t < 60 {
      v.steps(0x8F1B_BCDC, w[t], w[t &+ 1], w[t &+ 2], w[t &+ 3], w[t &+ 4]) { $0 & $1 | $2 & ($0 | $1) }
      t &+= 5
    }
    while t < 80 {
      v.steps(0xCA62_C1D6, w[t], w[t &+ 1], w[t &+ 2], w[t &+ 3], w[t &+ 4]) { $0 ^ $1 ^ $2 }
      t &+= 5
    }
    state = State(
      a: state.a &+ v.a, b: state.b &+ v.b, c: state.c &+ v.c, d: state.d &+ v.d, e: state.e &+ v.e)
    block = InlineArray(repeating: 0)
  }

  private struct State {
    var a: UInt32 = 0x6745_2301
    var b: UInt32 = 0xEFCD_AB89
    var c: UInt32 = 0x98BA_DCFE
    var d: UInt32 = 0x1032_5476
    var e: UInt32 = 0xC3D2_E1F0

    /// Five steps; each moves on by one which variable plays which part.
    @inline(__always)
    mutating func steps(
      _ k: UInt32, _ w0: UInt32, _ w1: UInt32, _ w2: UInt32, _ w3: UInt32, _ w4: UInt32,
      _ mix: (UInt32, UInt32, UInt32) -> UInt32
    ) {
      Self.step(a, &b, mix(b, c, d), &e, k &+ w0)
      Self.step(e, &a, mix(a, b, c), &d, k &+ w1)
      Self.step(d, &e, mix(e, a, b), &c, k &+ w2)
      Self.step(c, &d, mix(d, e, a), &b, k &+ w3)
      Self.step(b, &c, mix(c, d, e), &a, k &+ w4)
    }

    @inline(__always)
    private static func step(_ a: UInt32, _ b: inout UInt32, _ mixed: UInt32, _ e: inout UInt32, _ added: UInt32) {
      e = e &+ (a &<< 5 | a &>> 27) &+ mixed &+ added
      b = b &<< 30 | b &>> 2
    }
  }
}
