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
    var bytes: [UInt8] = []
    bytes.reserveCapacity(20 + values.count * 12)
    // Dimensions, no nulls, the type of the elements, their number, the first index.
    for field in [1, 0, 20, Int32(values.count), 1] { append(field, to: &bytes) }
    for value in values {
      append(Int32(8), to: &bytes)
      append(value, to: &bytes)
    }
    return bytes
  }
}
