import CPostgres
import Glibc

/// A PostgreSQL connection that reconnects by itself. Work outside a transaction connects first if needed, and is tried once
/// more if the connection turns out to be dead. Never blocks beyond its time limits.
final class PostgresConnection: SQLSession {
  private let location: String
  private let hosts: PostgresHosts
  /// The server to try first: the last one that answered, or the one after the last one that failed.
  private var nextHost = 0
  private let options: StoreOptions
  private var link: PostgresLink?
  private var isInTransaction = false

  /// - Parameter location: a `postgresql://` URI or a libpq connection string. For a server with a stand-by, it has several
  ///   hosts and `target_session_attrs=read-write` (postgresql.org/docs/current/libpq-connect.html).
  init(location: String, options: StoreOptions) throws(RegistryError) {
    self.location = location
    self.options = options
    hosts = PostgresHosts(location)
    link = try connect()
  }

  /// Tries the servers in turn. Each one gets the full time limit.
  private func connect() throws(RegistryError) -> PostgresLink {
    var failure: RegistryError?
    for _ in hosts.attempts.indices {
      do throws(RegistryError) {
        return try PostgresLink(
          location: location, defaults: hosts.defaults[nextHost], overrides: hosts.attempts[nextHost], options: options)
      } catch {
        nextHost = (nextHost + 1) % hosts.attempts.count
        // The right server refuses us, so the other servers would refuse us too.
        if case .unusable = error { throw error }
        failure = failure ?? error
      }
    }
    throw failure ?? .unavailable(.down, "no server is named")
  }

  // MARK: Statements

  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue], _ each: (SQLRow) -> Void) throws(RegistryError) -> Int {
    try withLink { link throws(RegistryError) in try link.run(statement, values, each) }
  }

  func insert(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64 {
    guard let id = try firstInt(statement, values) else { throw DeviceStore.noRow }
    return id
  }

  /// Each statement sees the data committed before it begins. Reads need no more, and a transaction would cost two round trips.
  func reading<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result { try body() }

  func runEach(_ statement: Statement, _ sets: [SQLValue], _ each: (Int, SQLRow) -> Void) throws(RegistryError) {
    if let types = statement.columns, !sets.isEmpty {
      let arrays = types.enumerated().map { column, type in
        SQLValue.blob(PostgresBytes.array(stride(from: column, to: sets.count, by: types.count).map { sets[$0] }, type))
      }
      try run(statement, arrays) { row in
        if case .postgres(let result, _) = row { each(Int(row.int(Int(PQnfields(result)) - 1)) - 1, row) }
      }
      return
    }
    let width = statement.width
    for start in stride(from: 0, to: sets.count / width, by: Self.setsPerPipeline) {
      let values = sets[(start * width)...].prefix(Self.setsPerPipeline * width)
      try withLink { link throws(RegistryError) in
        try link.runPipelined(statement, values) { index, row in each(start + index, row) }
      }
    }
  }

  /// Runs unprepared text: settings and migrations. Must not contain outside values.
  func execute(_ sql: String) throws(RegistryError) { try withLink { link throws(RegistryError) in try link.execute(sql) } }

  func copy(_ sql: String, _ rows: [UInt8]) throws(RegistryError) {
    try withLink { link throws(RegistryError) in try link.copy(sql, rows) }
  }

  private static let setsPerPipeline = 500

  // MARK: Transactions

  /// Looks before the transaction, because a transaction costs round trips and blocks others.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool {
    guard let intent = try look() else { return false }
    return try transaction(intent) { () throws(RegistryError) in
      // Another worker may have written before this one got the lock.
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
      // The server began the transaction even if the lock failed.
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

  /// The locks serialise writers. In the whole fleet, one writer of devices, users, topics and groups runs at a time, one writer
  /// of an application's notes and badges, and one order about an application, lane, credential or webhook. So writers can't
  /// deadlock, and each batch sees the one before it. A stricter isolation than READ COMMITTED would take its snapshot before
  /// the lock. Readers don't wait. Writers of campaigns wait only for writers of the same row.
  private func locks(for intent: TransactionIntent) -> String {
    let locks: [String]
    switch intent {
    case .campaigns: return ""
    case .devices: locks = ["pg_advisory_xact_lock(1885760628, 1)"]
    case .orders: locks = ["pg_advisory_xact_lock(1885760628, 3)"]
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

  /// The server's lock table has room for 64 locks per connection.
  private static let mostLocks = 16

  // MARK: The connection

  private func withLink<Result>(_ body: (PostgresLink) throws(RegistryError) -> Result) throws(RegistryError) -> Result {
    if let link {
      do throws(RegistryError) {
        return try body(link)
      } catch {
        guard link.isLost else { throw error }
        self.link = nil
        // The caller has seen no result, and a repeated read or begin is harmless.
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
