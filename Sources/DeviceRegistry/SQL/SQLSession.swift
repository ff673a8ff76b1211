import Synchronization

/// A value bound to a parameter. Values never become part of a statement's text.
enum SQLValue {
  case null
  case int(Int64)
  case text([UInt8])
  case blob([UInt8])

  static func int(_ value: Int64?) -> SQLValue { value.map { .int($0) } ?? .null }
  static func int(_ value: Int) -> SQLValue { .int(Int64(value)) }
  static func int<Value: RawRepresentable<UInt8>>(_ value: Value?) -> SQLValue { .int(value.map { Int64($0.rawValue) }) }
  static func text(_ value: [UInt8]?) -> SQLValue { value.map { .text($0) } ?? .null }
  static func blob(_ value: [UInt8]?) -> SQLValue { value.map { .blob($0) } ?? .null }
}

enum Dialect: Sendable {
  case sqlite, postgres
}

/// A statement, prepared once per connection. Parameters are `?1`, `?2` … for both databases.
struct Statement: Sendable {
  /// The type of a column of values, by PostgreSQL's name.
  enum ColumnType: String {
    case int = "bigint"
    case blob = "bytea"
    case text

    /// The number in `pg_type`.
    var number: Int32 {
      switch self {
      case .int: 20
      case .blob: 17
      case .text: 25
      }
    }
  }

  let id: Int
  /// The number of parameters.
  let width: Int
  /// Types of the parameters if PostgreSQL gets the values of all sets as arrays; otherwise nil.
  let columns: [ColumnType]?
  /// SQLite's statement for ``blockRows`` sets of values, whose parameters follow each other; nil if there is none. A look-up
  /// returns the place of the set in the block as an additional last column.
  let block: String?
  private let common: String
  private let postgresOnly: String?

  private static let nextID = Atomic<Int>(0)

  init(_ sql: String, postgres: String? = nil, columns: [ColumnType]? = nil, block: String? = nil) {
    id = Self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
    let numbers = sql.utf8.split(separator: UInt8(ascii: "?")).dropFirst()
    width = numbers.compactMap { Int(Substring($0.prefix { 0x30...0x39 ~= $0 })) }.max() ?? 0
    self.columns = columns
    self.block = block
    common = sql
    postgresOnly = postgres
  }

  /// An insert that returns the new `id`. SQLite reports it without `RETURNING`.
  init(insert sql: String) { self.init(sql, postgres: sql + " RETURNING id") }

  /// A look-up before a write of the same rows. PostgreSQL locks them until the transaction ends.
  init(locking sql: String) { self.init(sql, postgres: sql + " FOR UPDATE") }

  /// A look-up for many sets of values. PostgreSQL gets arrays, and returns the number of the set as an additional last column.
  init(rows sql: String, _ types: [ColumnType], block: String? = nil) {
    let found = "CROSS JOIN LATERAL (\(Self.named(sql, types))) found"
    self.init(
      sql, postgres: "SELECT found.*, given.n \(Self.given(types)) \(found) ORDER BY given.n", columns: types, block: block)
  }

  /// The same for a look-up that has one row of the first table, and no limit. SQLite has a statement for blocks of it.
  init(rows columns: String, from tables: String, _ types: ColumnType...) {
    let rows = Self.block(of: Self.list(types) { "?\($0)" }, types).enumerated().map { "(\($0), \($1))" }
    self.init(
      rows: "SELECT \(columns) FROM \(tables)", types,
      block: """
        WITH given (n, \(Self.list(types) { "p\($0)" })) AS (VALUES \(rows.joined(separator: ", ")))
        SELECT \(Self.named(columns, types)), given.n FROM given CROSS JOIN \(Self.named(tables, types))
        """)
  }

  /// An insert of many rows, which must differ. It has no results.
  init(into table: String, values: String, _ conflict: String, _ types: ColumnType...) {
    let rows = Self.block(of: values, types).map { "(\($0))" }
    self.init(
      "INSERT INTO \(table) VALUES (\(values)) \(conflict)",
      postgres: "INSERT INTO \(table) SELECT \(Self.named(values, types)) \(Self.given(types)) \(conflict)", columns: types,
      block: "INSERT INTO \(table) VALUES \(rows.joined(separator: ", ")) \(conflict)")
  }

  /// The number of sets that SQLite processes at once: its cursors stay open, and near the last row.
  static let blockRows = 16

  private static func block(of text: String, _ types: [ColumnType]) -> [String] {
    (0..<blockRows).map { row in text.replacing(/\?([0-9]+)/) { "?\((Int($0.1) ?? 0) + row * types.count)" } }
  }

  private static func list(_ types: [ColumnType], _ item: (Int) -> String) -> String {
    (1...types.count).map(item).joined(separator: ", ")
  }

  private static func given(_ types: [ColumnType]) -> String {
    let arrays = list(types) { "?\($0)::\(types[$0 - 1].rawValue)[]" }
    return "FROM unnest(\(arrays)) WITH ORDINALITY AS given (\(list(types) { "p\($0)" }), n)"
  }

  private static func named(_ text: String, _ types: [ColumnType]) -> String {
    types.indices.reduce(text) { $0.replacing("?\($1 + 1)", with: "given.p\($1 + 1)") }
  }

  func text(_ dialect: Dialect) -> String {
    switch dialect {
    case .sqlite: common
    case .postgres: (postgresOnly ?? common).replacing("?", with: "$")
    }
  }
}

/// A database connection for one thread.
protocol SQLSession: AnyObject {
  /// Runs a statement, visits its rows and returns the number of changed rows. `each` must not run other statements.
  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue], _ each: (SQLRow) -> Void) throws(RegistryError) -> Int

  /// Runs an insert into a table with the key `id` and returns the new id.
  func insert(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64

  /// Runs a statement once per set of values, in one round trip to a remote database.
  /// - Parameters:
  ///   - sets: the values of all sets, one set after the other.
  ///   - each: gets the index of the set.
  func runEach(_ statement: Statement, _ sets: [SQLValue], _ each: (Int, SQLRow) -> Void) throws(RegistryError)

  /// Runs statements that only read, on one snapshot of the database if that costs nothing.
  func reading<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result

  /// Looks for changes to make, and makes them in a transaction if there are any. Both closures may run repeatedly. The last
  /// look before a write sees all earlier writes of others.
  /// - Parameter look: returns the purpose of the transaction; nil if there is nothing to write.
  /// - Returns: true if something was written.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool

  func begin(_ intent: TransactionIntent) throws(RegistryError)
  /// Extends the current transaction to this purpose.
  func hold(_ intent: TransactionIntent) throws(RegistryError)
  func commit() throws(RegistryError)
  /// Never throws: a connection that can't roll back is dropped.
  func rollback()
}

/// The purpose of a transaction. Writers to the same records are serialised, so that they can't deadlock.
enum TransactionIntent {
  case devices
  /// Campaigns, rates and events. PostgreSQL serialises only writers of the same rows.
  case campaigns
  /// An operator's order about an application, lane, credential or webhook. Its row may not exist yet.
  case orders
  /// Notes, and the badges of some applications, by number.
  case notes(of: [Int64])
  case allNotes
}

extension SQLSession {
  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int { try run(statement, values) { _ in } }

  func runEach(_ statement: Statement, _ sets: [SQLValue]) throws(RegistryError) {
    try runEach(statement, sets) { _, _ in }
  }

  func all<Value>(_ statement: Statement, _ values: [SQLValue], _ read: (SQLRow) -> Value) throws(RegistryError) -> [Value] {
    var found: [Value] = []
    try run(statement, values) { row in found.append(read(row)) }
    return found
  }

  func first<Value>(_ statement: Statement, _ values: [SQLValue], _ read: (SQLRow) -> Value?) throws(RegistryError) -> Value? {
    var found: Value?
    try run(statement, values) { row in found = found ?? read(row) }
    return found
  }

  /// The last row of each set; nil if it has none.
  func ofEach<Value>(
    _ statement: Statement, _ sets: [SQLValue], _ read: (SQLRow) -> Value?
  ) throws(RegistryError) -> [Value?] {
    var found = [Value?](repeating: nil, count: sets.count / statement.width)
    try runEach(statement, sets) { index, row in found[index] = read(row) }
    return found
  }

  /// The last row of each number, by number; numbers without a row are missing.
  func byNumber<Value>(
    _ statement: Statement, _ numbers: [Int64], _ read: (SQLRow) -> Value?
  ) throws(RegistryError) -> [Int64: Value] {
    let numbers = Set(numbers).sorted()
    var found: [Int64: Value] = [:]
    try runEach(statement, numbers.map { .int($0) }) { index, row in found[numbers[index]] = read(row) }
    return found
  }

  func ints(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> [Int64] {
    try all(statement, values) { row in row.int(0) }
  }

  func firstInt(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64? {
    try first(statement, values) { row in row.optionalInt(0) }
  }

  /// Runs `body` in a transaction, which is rolled back if `body` throws.
  func transaction<Result>(
    _ intent: TransactionIntent, _ body: () throws(RegistryError) -> Result
  ) throws(RegistryError) -> Result {
    try begin(intent)
    return try committing(body)
  }

  func committing<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result {
    let result: Result
    do throws(RegistryError) {
      result = try body()
      try commit()
    } catch {
      rollback()
      throw error
    }
    return result
  }
}
