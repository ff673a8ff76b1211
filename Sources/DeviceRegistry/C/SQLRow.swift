import CPostgres
import CSQLite
import PushCore

/// A row of a result. Valid only while it is visited.
enum SQLRow {
  case sqlite(OpaquePointer)
  case postgres(OpaquePointer, row: Int32)

  func isNull(_ column: Int) -> Bool {
    switch self {
    case .sqlite(let statement): sqlite3_column_type(statement, Int32(column)) == SQLITE_NULL
    case .postgres(let result, let row): PQgetisnull(result, row, Int32(column)) != 0
    }
  }

  /// 0 if null.
  @inline(__always)
  func int(_ column: Int) -> Int64 {
    if case .sqlite(let statement) = self { return sqlite3_column_int64(statement, Int32(column)) }
    return bigEndianInt(column)
  }

  private func bigEndianInt(_ column: Int) -> Int64 {
    let bytes = memory(column)
    guard let first = bytes.first, bytes.count <= 8 else { return 0 }
    return bytes.dropFirst().reduce(Int64(Int8(bitPattern: first))) { $0 << 8 | Int64($1) }
  }

  /// Empty if null.
  func bytes(_ column: Int) -> [UInt8] { Array(memory(column)) }

  /// Appends the column's bytes and returns their number.
  func append(_ column: Int, to arena: inout [UInt8]) -> Int {
    let bytes = memory(column)
    if !bytes.isEmpty { arena.append(contentsOf: bytes) }
    return bytes.count
  }

  @inline(__always)
  private func memory(_ column: Int) -> UnsafeRawBufferPointer {
    switch self {
    case .sqlite(let statement):
      let start = sqlite3_column_blob(statement, Int32(column))
      return UnsafeRawBufferPointer(start: start, count: start == nil ? 0 : Int(sqlite3_column_bytes(statement, Int32(column))))
    case .postgres(let result, let row):
      return UnsafeRawBufferPointer(
        start: PQgetvalue(result, row, Int32(column)), count: Int(PQgetlength(result, row, Int32(column))))
    }
  }

  func optionalInt(_ column: Int) -> Int64? { isNull(column) ? nil : int(column) }
  func optionalBytes(_ column: Int) -> [UInt8]? { isNull(column) ? nil : bytes(column) }
  func key(_ column: Int = 0) -> RegistryKey { RegistryKey(id: int(column), salt: int(column + 1)) }
  func platform(_ column: Int) -> Platform { value(column) ?? .apns }
  func environment(_ column: Int) -> DeviceEnvironment { value(column) ?? .unspecified }
  func state(_ column: Int) -> DeviceState { value(column) ?? .gone }
  func kind(_ column: Int) -> TokenKind { value(column) ?? .alert }

  @inline(__always)
  private func value<Value: RawRepresentable<UInt8>>(_ column: Int) -> Value? {
    Value(rawValue: UInt8(truncatingIfNeeded: int(column)))
  }
}
