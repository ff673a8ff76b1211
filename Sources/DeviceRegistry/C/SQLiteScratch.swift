import CSQLite

/// Memory for the texts and blobs of one execution, so that SQLite needs no copies.
final class SQLiteScratch {
  private var memory = UnsafeMutableRawPointer.allocate(byteCount: 4_096, alignment: 16)
  private var capacity = 4_096

  deinit { memory.deallocate() }

  func bind(_ values: ArraySlice<SQLValue>, to prepared: OpaquePointer) {
    var needed = 1
    for value in values {
      switch value {
      case .text(let bytes), .blob(let bytes): needed += bytes.count
      case .null, .int: continue
      }
    }
    reserve(needed)
    var offset = 0
    var number: Int32 = 0
    for value in values {
      number += 1
      let code =
        switch value {
        case .null: sqlite3_bind_null(prepared, number)
        case .int(let integer): sqlite3_bind_int64(prepared, number, integer)
        case .text(let bytes):
          sqlite3_bind_text(
            prepared, number, place(bytes, &offset).assumingMemoryBound(to: CChar.self), Int32(bytes.count), nil)
        case .blob(let bytes): sqlite3_bind_blob(prepared, number, place(bytes, &offset), Int32(bytes.count), nil)
        }
      precondition(code == SQLITE_OK, "a statement has no parameter \(number), or a value is beyond SQLite's limits")
    }
  }

  private func reserve(_ needed: Int) {
    guard needed > capacity else { return }
    memory.deallocate()
    capacity = needed * 2
    memory = .allocate(byteCount: capacity, alignment: 16)
  }

  /// Returns an address even for no bytes: a null pointer would mean NULL.
  private func place(_ bytes: [UInt8], _ offset: inout Int) -> UnsafeMutableRawPointer {
    let start = memory + offset
    bytes.withUnsafeBytes { if let base = $0.baseAddress { start.copyMemory(from: base, byteCount: $0.count) } }
    offset += bytes.count
    return start
  }
}
