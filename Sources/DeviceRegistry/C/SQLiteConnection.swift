import CSQLite

final class SQLiteConnection: SQLSession {
  let path: String
  private let handle: OpaquePointer
  private let scratch = SQLiteScratch()
  private var statements: [OpaquePointer?] = []
  private let identity: FileFacts.Identity?

  /// - Parameter busyTimeout: milliseconds to wait for another process's lock.
  init(path: String, create: Bool, busyTimeout: Int64) throws(RegistryError) {
    _ = Self.configured
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    let code = sqlite3_open_v2(path, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteFault.error(
        code, message: opened.map { String(cString: sqlite3_errmsg($0)) } ?? "out of memory",
        systemError: opened.map { sqlite3_system_errno($0) } ?? 0, path)
      sqlite3_close_v2(opened)
      throw error
    }
    self.path = path
    handle = opened
    identity = FileFacts.identity(path)
    sqlite3_busy_timeout(handle, Int32(min(busyTimeout, 3_600_000)))
    sqlite3_limit(handle, SQLITE_LIMIT_ATTACHED, 0)
  }

  private static let configured = pushfleet_sqlite_without_statistics()

  deinit {
    for statement in statements { sqlite3_finalize(statement) }
    sqlite3_close_v2(handle)
  }

  // MARK: Statements

  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue], _ each: (SQLRow) -> Void) throws(RegistryError) -> Int {
    try step(prepare(statement), values[...], each)
  }

  func insert(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64 {
    try run(statement, values) { _ in }
    return sqlite3_last_insert_rowid(handle)
  }

  func runEach(_ statement: Statement, _ sets: [SQLValue], _ each: (Int, SQLRow) -> Void) throws(RegistryError) {
    let width = statement.width
    let count = sets.count / width
    var index = 0
    while statement.block != nil, count - index >= Statement.blockRows {
      let prepared = try prepare(statement, isBlock: true)
      let place = Int(sqlite3_column_count(prepared)) - 1
      let end = index + Statement.blockRows
      try step(prepared, sets[index * width..<end * width]) { row in each(index + Int(row.int(place)), row) }
      index = end
    }
    while index < count {
      try step(prepare(statement), sets[index * width..<(index + 1) * width]) { row in each(index, row) }
      index += 1
    }
  }

  /// Runs uncached text: pragmas and migrations. Must not contain outside values.
  func execute(_ sql: String) throws(RegistryError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw fault(code) }
  }

  private func prepare(_ statement: Statement, isBlock: Bool = false) throws(RegistryError) -> OpaquePointer {
    let place = 2 * statement.id + (isBlock ? 1 : 0)
    if place < statements.count, let cached = statements[place] { return cached }
    var prepared: OpaquePointer?
    let text = isBlock ? statement.block ?? "" : statement.text(.sqlite)
    let code = sqlite3_prepare_v3(handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &prepared, nil)
    guard code == SQLITE_OK, let prepared else { throw fault(code) }
    while statements.count <= place { statements.append(nil) }
    statements[place] = prepared
    return prepared
  }

  @discardableResult
  private func step(
    _ prepared: OpaquePointer, _ values: ArraySlice<SQLValue>, _ each: (SQLRow) -> Void
  ) throws(RegistryError) -> Int {
    scratch.bind(values, to: prepared)
    defer {
      sqlite3_reset(prepared)
      sqlite3_clear_bindings(prepared)
    }
    while true {
      let code = sqlite3_step(prepared)
      if code == SQLITE_DONE { return sqlite3_stmt_readonly(prepared) != 0 ? 0 : Int(sqlite3_changes(handle)) }
      guard code == SQLITE_ROW else { throw fault(code) }
      each(.sqlite(prepared))
    }
  }

  // MARK: Transactions

  /// Runs in one transaction; otherwise each statement would lock and unlock the file.
  func reading<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result {
    guard sqlite3_get_autocommit(handle) != 0 else { return try body() }
    try run(Self.beginReading, [])
    return try committing(body)
  }

  /// Runs in one transaction that takes the write lock only for the first write. If another process is writing or has written
  /// since the look, it waits and looks again.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool {
    func body() throws(RegistryError) -> Bool {
      guard try look() != nil else { return false }
      try write()
      return true
    }
    do throws(RegistryError) {
      try run(Self.beginReading, [])
      return try committing(body)
    } catch .unavailable(.locked, _) {}
    try run(Self.beginImmediate, [])
    return try committing(body)
  }

  func begin(_ intent: TransactionIntent) throws(RegistryError) { try run(Self.beginImmediate, []) }

  /// A no-op: the file has only one writer.
  func hold(_ intent: TransactionIntent) {}

  /// Fails if the file was deleted or replaced, because other processes would not see the changes.
  func commit() throws(RegistryError) {
    guard FileFacts.identity(path) == identity else {
      throw .unavailable(
        .down, "\(path) was deleted or replaced while in use: restore it, or restart to begin with an empty one")
    }
    try run(Self.commitStatement, [])
  }

  func rollback() {
    guard sqlite3_get_autocommit(handle) == 0 else { return }
    _ = sqlite3_exec(handle, "ROLLBACK", nil, nil, nil)
  }

  private static let beginImmediate = Statement("BEGIN IMMEDIATE")
  private static let beginReading = Statement("BEGIN DEFERRED")
  private static let commitStatement = Statement("COMMIT")

  private func fault(_ code: Int32) -> RegistryError {
    SQLiteFault.error(
      code, message: String(cString: sqlite3_errmsg(handle)), systemError: sqlite3_system_errno(handle), path)
  }
}
