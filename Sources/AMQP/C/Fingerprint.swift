/// A fast 64-bit hash that distinguishes outstanding messages. Without a key: a forged collision causes a repeat, never a loss.
struct Fingerprint {
  private(set) var value: UInt64 = 0x9e37_79b9_7f4a_7c15

  @inline(__always)
  private mutating func mix(_ word: UInt64) {
    let product = (value ^ word).multipliedFullWidth(by: 0xa076_1d64_78bd_642f)
    value = product.high ^ product.low
  }

  mutating func add(_ number: UInt64) { mix(number) }

  mutating func add(_ bytes: [UInt8]) { bytes.withUnsafeBytes { add($0) } }

  private mutating func add(_ bytes: UnsafeRawBufferPointer) {
    mix(UInt64(truncatingIfNeeded: bytes.count) | 1 << 63)
    var offset = 0
    while bytes.count - offset >= 8 {
      mix(bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    var tail: UInt64 = 0
    while offset < bytes.count {
      tail = tail << 8 | UInt64(bytes[offset])
      offset += 1
    }
    mix(tail)
  }
}
