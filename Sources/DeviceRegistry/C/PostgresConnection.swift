import CPostgres
import Glibc

/// How to reach and treat a PostgreSQL server.
struct PostgresOptions {
  /// Milliseconds for connecting, and for a statement: told to the server, and kept here as well, since a server that is stopped can't
  /// keep it.
  var connectTimeout: Int64 = 5_000
  var statementTimeout: Int64 = 5_000
  /// Milliseconds to wait for another writer of devices.
  var lockTimeout: Int64 = 5_000
}

/// A connection to PostgreSQL that comes back by itself: what runs outside of a transaction connects first where need be, and is tried
/// once more when the connection turns out to be dead. Never blocks beyond its time limits.
final class PostgresConnection: SQLSession {
  typealias Row = PostgresRow

  private let location: String
  private let hosts: PostgresHosts
  /// The server to be tried first: the last one that answered, or the one after the last that didn't.
  private var nextHost = 0
  private let options: PostgresOptions
  private var link: PostgresLink?
  private var isInTransaction = false

  var dialect: Dialect { .postgres }

  /// - Parameter location: a `postgresql://` URI or a libpq connection string; several hosts and `target_session_attrs=read-write` for
  ///   a server with a stand-by (postgresql.org/docs/current/libpq-connect.html).
  init(location: String, options: PostgresOptions) throws(RegistryError) {
    self.location = location
    self.options = options
    hosts = PostgresHosts(location)
    link = try connect()
  }

  /// Tries the servers in turn, each for the whole time limit.
  private func connect() throws(RegistryError) -> PostgresLink {
    var failure: RegistryError?
    for _ in hosts.attempts.indices {
      do throws(RegistryError) {
        return try PostgresLink(
          location: location, defaults: hosts.defaults[nextHost], overrides: hosts.attempts[nextHost], options: options)
      } catch {
        nextHost = (nextHost + 1) % hosts.attempts.count
        // A server that knows us and refuses is the one that is meant: the others wouldn't do better.
        if case .unusable = error { throw error }
        failure = failure ?? error
      }
    }
    throw failure ?? .unavailable(.down, "no server is named")
  }

  // MARK: Statements

  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue], _ each: (PostgresRow) -> Void) throws(RegistryError) -> Int {
    try withLink { link throws(RegistryError) in try link.run(statement, values, each) }
  }

  func insert(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64 {
    guard let id = try firstInt(statement, values) else { throw .unusable(.broken, "an insert gave no number back") }
    return id
  }

  /// Each statement sees what is committed as it begins: a batch of reads needs no more, and a transaction would cost two round trips.
  func reading<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result { try body() }

  func runEach(_ statement: Statement, _ sets: [[SQLValue]], _ each: (Int, PostgresRow) -> Void) throws(RegistryError) {
    guard !sets.isEmpty else { return }
    var start = 0
    while start < sets.count {
      let end = min(start + Self.setsPerPipeline, sets.count)
      let first = start
      try withLink { link throws(RegistryError) in
        try link.runPipelined(statement, sets[first..<end]) { index, row in each(first + index, row) }
      }
      start = end
    }
  }

  func runRows(
    _ statement: RowsStatement, _ columns: [SQLColumn], _ each: (Int, PostgresRow) -> Void
  ) throws(RegistryError) {
    guard let count = columns.first?.count, count > 0 else { return }
    let arrays = columns.map { column in
      switch column {
      case .ints(let values): SQLValue.blob(PostgresBytes.array(values))
      case .blobs(let values): SQLValue.blob(PostgresBytes.array(values, type: PostgresBytes.bytea))
      }
    }
    try run(statement.statement, arrays) { row in each(Int(row.int(row.count - 1)) - 1, row) }
  }

  func runForIDs(_ statement: Statement, _ ids: [Int64], _ each: (PostgresRow) -> Void) throws(RegistryError) {
    guard !ids.isEmpty else { return }
    try run(statement, [.blob(PostgresBytes.array(ids))], each)
  }

  /// Runs text that isn't prepared: settings and migrations, never with a value of anybody's in it.
  func execute(_ sql: String) throws(RegistryError) { try withLink { link throws(RegistryError) in try link.execute(sql) } }

  /// Sends rows in the binary form of COPY to a table.
  func copy(_ sql: String, _ rows: [UInt8]) throws(RegistryError) {
    try withLink { link throws(RegistryError) in try link.copy(sql, rows) }
  }

  private static let setsPerPipeline = 500

  // MARK: Transactions

  /// A transaction costs round trips, and holds up others.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool {
    guard let intent = try look() else { return false }
    return try transaction(intent) { () throws(RegistryError) in
      // Another worker may have written until the lock was had.
      guard try look() != nil else { return false }
      try write()
      return true
    }
  }

  func begin(_ intent: TransactionIntent) throws(RegistryError) {
    do throws(RegistryError) {
      let locks = locks(for: intent)
      try execute(locks.isEmpty ? "BEGIN" : "BEGIN ISOLATION LEVEL READ COMMITTED; \(locks)")
    } catch {
      // The server is in the transaction even where the lock wasn't to be had.
      rollback()
      throw error
    }
    isInTransaction = true
  }

  func hold(_ intent: TransactionIntent) throws(RegistryError) { try execute(locks(for: intent)) }

  func commit() throws(RegistryError) {
    try execute("COMMIT")
    isInTransaction = false
  }

  func rollback() {
    isInTransaction = false
    guard let link else { return }
    do throws(RegistryError) { try link.execute("ROLLBACK") } catch { self.link = nil }
  }

  /// One writer of devices, users, topics and groups at a time, in the whole fleet, and one of an application's notes and badges: they can't
  /// deadlock, and a batch sees what the one before it stored, also where the database's default is a stricter isolation: its snapshot would be
  /// taken before the lock is had. Readers and campaigns don't wait for them.
  private func locks(for intent: TransactionIntent) -> String {
    let locks: [String]
    switch intent {
    case .campaigns: return ""
    case .devices: locks = ["pg_advisory_xact_lock(1885760628, 1)"]
    case .notes(let apps) where apps.count <= Self.mostLocks:
      locks =
        ["pg_advisory_xact_lock_shared(1885760628, 2)"]
        + apps.sorted().map { "pg_advisory_xact_lock(1885760629, \(Int32(truncatingIfNeeded: $0)))" }
    case .notes, .allNotes: locks = ["pg_advisory_xact_lock(1885760628, 2)"]
    }
    return """
      SET LOCAL lock_timeout = \(options.lockTimeout); \(locks.map { "SELECT \($0); " }.joined())SET LOCAL lock_timeout = 0
      """
  }

  /// The server's table of locks has room for 64 of each connection.
  private static let mostLocks = 16

  // MARK: Holding

  private func withLink<Result>(_ body: (PostgresLink) throws(RegistryError) -> Result) throws(RegistryError) -> Result {
    if let link {
      do throws(RegistryError) {
        return try body(link)
      } catch {
        guard link.isLost else { throw error }
        self.link = nil
        // Nothing of it has been seen by the caller, and reading twice or beginning twice does no harm.
        guard !isInTransaction, case .unavailable(.down, _) = error else { throw error }
      }
    }
    guard !isInTransaction else {
      throw .unavailable(.down, "the connection was lost within a transaction, which the server has rolled back")
    }
    let fresh = try connect()
    link = fresh
    do throws(RegistryError) {
      return try body(fresh)
    } catch {
      if fresh.isLost { link = nil }
      throw error
    }
  }
}

/// The current row of a result.
struct PostgresRow: SQLRow {
  let result: OpaquePointer
  let row: Int32

  var count: Int { Int(PQnfields(result)) }

  func isNull(_ column: Int) -> Bool { PQgetisnull(result, row, Int32(column)) != 0 }

  func int(_ column: Int) -> Int64 {
    let count = Int(PQgetlength(result, row, Int32(column)))
    guard count > 0, count <= 8, let start = PQgetvalue(result, row, Int32(column)) else { return 0 }
    var value = Int64(start[0])
    for index in 1..<max(count, 1) { value = value << 8 | Int64(UInt8(bitPattern: start[index])) }
    return value
  }

  func bytes(_ column: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    _ = append(column, to: &bytes)
    return bytes
  }

  func append(_ column: Int, to arena: inout [UInt8]) -> Int {
    let count = Int(PQgetlength(result, row, Int32(column)))
    guard count > 0, let start = PQgetvalue(result, row, Int32(column)) else { return 0 }
    arena.append(contentsOf: UnsafeRawBufferPointer(start: start, count: count))
    return count
  }
}
