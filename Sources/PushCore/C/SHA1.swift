import COpenSSL

/// SHA-1 (RFC 3174) as a value type, so that the state after a common prefix can be copied. It makes names (UUID version 5) and
/// gives no security. OpenSSL compresses the blocks. It uses the processor's SHA instructions if there are any.
public struct SHA1: Sendable {
  private var state = shim_sha1_state(h: (0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0))
  /// The current block as big-endian words; unused bytes are zero.
  private var block = InlineArray<16, UInt32>(repeating: 0)
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

  /// Appends four bytes, the highest first. They may cross a word or block boundary.
  @inline(__always)
  public mutating func append(word: UInt32) {
    let position = length & 63
    let shift = UInt32(position & 3) &* 8
    length &+= 4
    if shift == 0, position < 60 { return block[position &>> 2] = word }
    block[position &>> 2] |= word &>> shift
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

  public consuming func finish() -> (UInt32, UInt32, UInt32, UInt32, UInt32) {
    let bits = UInt64(length) &* 8
    append(0x80)
    // With fewer than eight bytes left in this block, the length goes into the next one.
    if length & 63 > 56 { compress() }
    block[14] = UInt32(truncatingIfNeeded: bits &>> 32)
    block[15] = UInt32(truncatingIfNeeded: bits)
    compress()
    return state.h
  }

  private mutating func compress() {
    unsafe block.span.withUnsafeBufferPointer { words in
      unsafe withUnsafeMutablePointer(to: &state) { unsafe shim_sha1_block($0, words.baseAddress) }
    }
    block = InlineArray(repeating: 0)
  }
}
