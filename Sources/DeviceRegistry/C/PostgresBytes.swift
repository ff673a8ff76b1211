/// PostgreSQL's binary form of values: big-endian (postgresql.org/docs/current/protocol-overview.html).
enum PostgresBytes {
  static func append(_ value: Int64, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  static func append(_ value: Int32, to bytes: inout [UInt8]) {
    withUnsafeBytes(of: value.bigEndian) { bytes.append(contentsOf: $0) }
  }

  /// `bigint[]` of one dimension.
  static func array(_ values: [Int64]) -> [UInt8] {
    var bytes = header(20, values.count, hasNulls: false)
    bytes.reserveCapacity(20 + values.count * 12)
    for value in values {
      append(Int32(8), to: &bytes)
      append(value, to: &bytes)
    }
    return bytes
  }

  static func array(_ values: [Int64?]) -> [UInt8] {
    var bytes = header(20, values.count, hasNulls: true)
    for value in values {
      append(Int32(value == nil ? -1 : 8), to: &bytes)
      if let value { append(value, to: &bytes) }
    }
    return bytes
  }

  /// Of one of the types below.
  static func array(_ values: [[UInt8]], type: Int32) -> [UInt8] {
    var bytes = header(type, values.count, hasNulls: false)
    for value in values {
      append(Int32(truncatingIfNeeded: value.count), to: &bytes)
      bytes += value
    }
    return bytes
  }

  /// Numbers of types in `pg_type`.
  static let bytea: Int32 = 17
  static let text: Int32 = 25

  /// Dimensions, whether there are nulls, the type of the elements, their number, the first index.
  private static func header(_ type: Int32, _ count: Int, hasNulls: Bool) -> [UInt8] {
    var bytes: [UInt8] = []
    for field in [1, hasNulls ? 1 : 0, type, Int32(truncatingIfNeeded: count), 1] { append(field, to: &bytes) }
    return bytes
  }
}
