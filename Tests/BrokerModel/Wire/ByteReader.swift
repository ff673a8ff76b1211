import AMQP

/// Reads big-endian fields of a frame. After the end it returns zeros and empty strings and sets `isBroken`, so one check at
/// the end is enough.
struct ByteReader {
  private var rest: ArraySlice<UInt8>
  private(set) var isBroken = false

  init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

  var remaining: ArraySlice<UInt8> { rest }

  private mutating func take(_ count: Int) -> ArraySlice<UInt8>? {
    guard count <= rest.count else {
      isBroken = true
      rest = []
      return nil
    }
    defer { rest = rest.dropFirst(count) }
    return rest.prefix(count)
  }

  private mutating func integer(_ size: Int) -> UInt64 {
    take(size).map { $0.reduce(0) { $0 << 8 | UInt64($1) } } ?? 0
  }

  mutating func uint8() -> UInt8 { UInt8(integer(1)) }
  mutating func uint16() -> UInt16 { UInt16(integer(2)) }
  mutating func uint32() -> UInt32 { UInt32(integer(4)) }
  mutating func uint64() -> UInt64 { integer(8) }
  mutating func skip(_ count: Int) { _ = take(count) }
  mutating func shortString() -> [UInt8] { take(Int(uint8())).map(Array.init) ?? [] }
  mutating func longString() -> [UInt8] { take(Int(uint32())).map(Array.init) ?? [] }

  /// The bits of one byte, the lowest first.
  mutating func flags() -> Flags { Flags(byte: uint8()) }

  struct Flags {
    var byte: UInt8
    subscript(bit: UInt8) -> Bool { byte & 1 << bit != 0 }
  }

  /// Nil if the table is malformed.
  mutating func table() -> FieldTable? {
    let bytes = longString()
    return isBroken ? nil : FieldTable(encoded: bytes)
  }
}
