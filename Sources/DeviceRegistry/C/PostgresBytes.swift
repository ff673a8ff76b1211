import Wire

/// PostgreSQL's binary, big-endian form of values (postgresql.org/docs/current/protocol-overview.html).
enum PostgresBytes {
  /// An array of values of one type, or null.
  static func array(_ values: [SQLValue], _ type: Statement.ColumnType) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20 + values.count * 12)
    // Dimensions, null flag, element type, number of elements, first index.
    for field in [1, 1, type.number, Int32(truncatingIfNeeded: values.count), 1] { bytes.appendBigEndian(field) }
    for value in values { append(value, to: &bytes) }
    return bytes
  }

  /// Appends a value after its length; null has the length -1.
  static func append(_ value: SQLValue, to bytes: inout [UInt8]) {
    switch value {
    case .null: bytes.appendBigEndian(Int32(-1))
    case .int(let number):
      bytes.appendBigEndian(Int32(8))
      bytes.appendBigEndian(number)
    case .text(let content), .blob(let content):
      bytes.appendBigEndian(Int32(truncatingIfNeeded: content.count))
      bytes += content
    }
  }
}
