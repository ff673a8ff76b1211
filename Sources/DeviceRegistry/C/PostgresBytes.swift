/// PostgreSQL's binary, big-endian form of values (postgresql.org/docs/current/protocol-overview.html).
enum PostgresBytes {
  static func append(_ value: Int64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  static func append(_ value: Int32, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// An array of values of one type, or null.
  static func array(_ values: [SQLValue], _ type: Statement.ColumnType) -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20 + values.count * 12)
    // Dimensions, null flag, element type, number of elements, first index.
    for field in [1, 1, type.number, Int32(truncatingIfNeeded: values.count), 1] { append(field, to: &bytes) }
    for value in values {
      switch value {
      case .null: append(Int32(-1), to: &bytes)
      case .int(let number):
        append(Int32(8), to: &bytes)
        append(number, to: &bytes)
      case .text(let content), .blob(let content):
        append(Int32(truncatingIfNeeded: content.count), to: &bytes)
        bytes += content
      }
    }
    return bytes
  }
}
