/// A value in a field table, in the types that RabbitMQ supports (https://www.rabbitmq.com/amqp-0-9-1-errata, "Field types").
public enum FieldValue: Equatable, Sendable {
  case bool(Bool)
  /// An integer of any width. It is written as 32 bits if it fits, otherwise as 64 bits.
  case integer(Int64)
  case double(Double)
  case decimal(scale: UInt8, value: Int32)
  /// A long string, usually UTF-8.
  case string([UInt8])
  case bytes([UInt8])
  /// Seconds since 1970.
  case timestamp(UInt64)
  case array([FieldValue])
  case table(FieldTable)
  case void

  public static func text(_ text: String) -> FieldValue { .string(Array(text.utf8)) }
}

extension FieldValue {
  /// Maximum nesting of tables and arrays. A header with deeper nesting is reported as unreadable.
  static let depthLimit = 32

  func append(to output: inout [UInt8]) {
    switch self {
    case .bool(let value):
      output.append(UInt8(ascii: "t"))
      output.append(value ? 1 : 0)
    case .integer(let value):
      if let narrow = Int32(exactly: value) {
        output.append(UInt8(ascii: "I"))
        output.appendBigEndian(UInt32(bitPattern: narrow))
      } else {
        output.append(UInt8(ascii: "l"))
        output.appendBigEndian(UInt64(bitPattern: value))
      }
    case .double(let value):
      output.append(UInt8(ascii: "d"))
      output.appendBigEndian(value.bitPattern)
    case .decimal(let scale, let value):
      output.append(UInt8(ascii: "D"))
      output.append(scale)
      output.appendBigEndian(UInt32(bitPattern: value))
    case .string(let bytes):
      output.append(UInt8(ascii: "S"))
      output.appendLongString(bytes)
    case .bytes(let bytes):
      output.append(UInt8(ascii: "x"))
      output.appendLongString(bytes)
    case .timestamp(let seconds):
      output.append(UInt8(ascii: "T"))
      output.appendBigEndian(seconds)
    case .array(let values):
      var encoded: [UInt8] = []
      for value in values { value.append(to: &encoded) }
      output.append(UInt8(ascii: "A"))
      output.appendLongString(encoded)
    case .table(let table):
      output.append(UInt8(ascii: "F"))
      output.appendLongString(table.encoded)
    case .void:
      output.append(UInt8(ascii: "V"))
    }
  }

  /// Skips a table or an array by its length, without reading it. Returns false for other types.
  static func skipUnread(_ cursor: inout WireCursor, in bytes: RawSpan) -> Bool {
    guard [UInt8(ascii: "F"), UInt8(ascii: "A")].contains(cursor.uint8(in: bytes)) else { return false }
    _ = cursor.longString(in: bytes)
    return !cursor.isBroken
  }

  /// Reads the value at the cursor. Returns nil if it is malformed or nested too deep; the cursor may then be broken.
  static func read(_ cursor: inout WireCursor, in bytes: RawSpan, depth: Int = 0) -> FieldValue? {
    guard depth < depthLimit else { return nil }
    let kind = cursor.uint8(in: bytes)
    let value: FieldValue
    switch kind {
    case UInt8(ascii: "t"): value = .bool(cursor.uint8(in: bytes) != 0)
    case UInt8(ascii: "b"): value = .integer(Int64(Int8(bitPattern: cursor.uint8(in: bytes))))
    case UInt8(ascii: "B"): value = .integer(Int64(cursor.uint8(in: bytes)))
    case UInt8(ascii: "s"): value = .integer(Int64(Int16(bitPattern: cursor.uint16(in: bytes))))
    case UInt8(ascii: "u"): value = .integer(Int64(cursor.uint16(in: bytes)))
    case UInt8(ascii: "I"): value = .integer(Int64(Int32(bitPattern: cursor.uint32(in: bytes))))
    case UInt8(ascii: "i"): value = .integer(Int64(cursor.uint32(in: bytes)))
    case UInt8(ascii: "l"), UInt8(ascii: "L"): value = .integer(Int64(bitPattern: cursor.uint64(in: bytes)))
    case UInt8(ascii: "f"): value = .double(Double(Float(bitPattern: cursor.uint32(in: bytes))))
    case UInt8(ascii: "d"): value = .double(Double(bitPattern: cursor.uint64(in: bytes)))
    case UInt8(ascii: "D"):
      let scale = cursor.uint8(in: bytes)
      value = .decimal(scale: scale, value: Int32(bitPattern: cursor.uint32(in: bytes)))
    case UInt8(ascii: "S"): value = .string(bytes.array(cursor.longString(in: bytes)))
    case UInt8(ascii: "x"): value = .bytes(bytes.array(cursor.longString(in: bytes)))
    case UInt8(ascii: "T"): value = .timestamp(cursor.uint64(in: bytes))
    case UInt8(ascii: "V"): value = .void
    case UInt8(ascii: "F"):
      let range = cursor.longString(in: bytes)
      guard let table = FieldTable(validating: bytes, range: range, depth: depth + 1) else { return nil }
      value = .table(table)
    case UInt8(ascii: "A"):
      var inner = WireCursor(cursor.longString(in: bytes))
      var values: [FieldValue] = []
      while !inner.isAtEnd {
        guard let element = read(&inner, in: bytes, depth: depth + 1) else { return nil }
        values.append(element)
      }
      value = .array(values)
    default: return nil
    }
    return cursor.isBroken ? nil : value
  }

  /// Skips the value at the cursor. Returns false if it is malformed or nested too deep.
  static func skip(_ cursor: inout WireCursor, in bytes: RawSpan, depth: Int) -> Bool {
    guard depth < depthLimit else { return false }
    let kind = cursor.uint8(in: bytes)
    switch kind {
    case UInt8(ascii: "t"), UInt8(ascii: "b"), UInt8(ascii: "B"): cursor.skip(1)
    case UInt8(ascii: "s"), UInt8(ascii: "u"): cursor.skip(2)
    case UInt8(ascii: "I"), UInt8(ascii: "i"), UInt8(ascii: "f"): cursor.skip(4)
    case UInt8(ascii: "D"): cursor.skip(5)
    case UInt8(ascii: "l"), UInt8(ascii: "L"), UInt8(ascii: "d"), UInt8(ascii: "T"): cursor.skip(8)
    case UInt8(ascii: "S"), UInt8(ascii: "x"): _ = cursor.longString(in: bytes)
    case UInt8(ascii: "V"): break
    case UInt8(ascii: "F"):
      return FieldTable.isWellFormed(bytes, range: cursor.longString(in: bytes), depth: depth + 1) && !cursor.isBroken
    case UInt8(ascii: "A"):
      var inner = WireCursor(cursor.longString(in: bytes))
      while !inner.isAtEnd {
        guard skip(&inner, in: bytes, depth: depth + 1) else { return false }
      }
    default: return false
    }
    return !cursor.isBroken
  }
}
