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

  public mutating func append(_ span: Span<UInt8>) {
    var index = 0
    while span.count &- index >= 4 {
      let four = span.extracting(index..<index &+ 4)
      append(word: UInt32(four[0]) &<< 24 | UInt32(four[1]) &<< 16 | UInt32(four[2]) &<< 8 | UInt32(four[3]))
      index &+= 4
    }
    while index < span.count {
      append(span[index])
      index &+= 1
    }
  }

  /// Four bytes, the highest first, which may lie across two words of the block, or across two blocks.
  @inline(__always)
  public mutating func append(word: UInt32) {
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

  /// RFC 3174 §6.1, method 2: eighty steps over a schedule of sixteen words. Spelled out, so that every index is a constant and
  /// the words stay where they are.
  private mutating func compress() {
    var w = Schedule(words: block)
    var v = state
    v.twentySteps(0x5A82_7999, &w, 0) { $2 ^ $0 & ($1 ^ $2) }
    v.twentySteps(0x6ED9_EBA1, &w, 20) { $0 ^ $1 ^ $2 }
    v.twentySteps(0x8F1B_BCDC, &w, 40) { $0 & $1 | $2 & ($0 | $1) }
    v.twentySteps(0xCA62_C1D6, &w, 60) { $0 ^ $1 ^ $2 }
    state = State(
      a: state.a &+ v.a, b: state.b &+ v.b, c: state.c &+ v.c, d: state.d &+ v.d, e: state.e &+ v.e)
    block = InlineArray(repeating: 0)
  }

  private struct Schedule {
    var words: InlineArray<16, UInt32>

    /// The word of step `t`, in the place of the one of sixteen steps before.
    @inline(__always)
    mutating func word(_ t: Int) -> UInt32 {
      guard t >= 16 else { return words[t] }
      let x = words[(t &- 3) & 15] ^ words[(t &- 8) & 15] ^ words[(t &- 14) & 15] ^ words[t & 15]
      words[t & 15] = x &<< 1 | x &>> 31
      return words[t & 15]
    }
  }

  private struct State {
    var a: UInt32 = 0x6745_2301
    var b: UInt32 = 0xEFCD_AB89
    var c: UInt32 = 0x98BA_DCFE
    var d: UInt32 = 0x1032_5476
    var e: UInt32 = 0xC3D2_E1F0

    @inline(__always)
    mutating func twentySteps(_ k: UInt32, _ w: inout Schedule, _ t: Int, _ mix: (UInt32, UInt32, UInt32) -> UInt32) {
      fiveSteps(k, &w, t, mix)
      fiveSteps(k, &w, t &+ 5, mix)
      fiveSteps(k, &w, t &+ 10, mix)
      fiveSteps(k, &w, t &+ 15, mix)
    }

    /// Each moves on by one which variable plays which part.
    @inline(__always)
    private mutating func fiveSteps(
      _ k: UInt32, _ w: inout Schedule, _ t: Int, _ mix: (UInt32, UInt32, UInt32) -> UInt32
    ) {
      Self.step(a, &b, mix(b, c, d), &e, k &+ w.word(t))
      Self.step(e, &a, mix(a, b, c), &d, k &+ w.word(t &+ 1))
      Self.step(d, &e, mix(e, a, b), &c, k &+ w.word(t &+ 2))
      Self.step(c, &d, mix(d, e, a), &b, k &+ w.word(t &+ 3))
      Self.step(b, &c, mix(c, d, e), &a, k &+ w.word(t &+ 4))
    }

    @inline(__always)
    private static func step(_ a: UInt32, _ b: inout UInt32, _ mixed: UInt32, _ e: inout UInt32, _ added: UInt32) {
      e = e &+ (a &<< 5 | a &>> 27) &+ mixed &+ added
      b = b &<< 30 | b &>> 2
    }
  }
}
