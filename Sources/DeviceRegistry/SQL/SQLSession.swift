import Synchronization

/// A value bound to a parameter. Text and blobs are bound as they are: no value ever becomes part of a statement's text.
enum SQLValue {
  case null
  case int(Int64)
  case text([UInt8])
  case blob([UInt8])

  static func int(_ value: Int64?) -> SQLValue { value.map { .int($0) } ?? .null }
  static func text(_ value: [UInt8]?) -> SQLValue { value.map { .text($0) } ?? .null }
  static func blob(_ value: [UInt8]?) -> SQLValue { value.map { .blob($0) } ?? .null }
}

/// The values of a parameter, one for each row.
enum SQLColumn {
  case ints([Int64])
  case blobs([[UInt8]])

  var count: Int {
    switch self {
    case .ints(let values): values.count
    case .blobs(let values): values.count
    }
  }
}

/// One statement of the program, prepared once a connection. Parameters are written `?1`, `?2` … for both databases.
struct Statement: Sendable {
  /// Index in a connection's cache.
  let id: Int
  private let common: String
  private let postgresOnly: String?

  private static let nextID = Atomic<Int>(0)

  init(_ sql: String, postgres: String? = nil) {
    id = Self.nextID.wrappingAdd(1, ordering: .relaxed).oldValue
    common = sql
    postgresOnly = postgres
  }

  /// An insert that gives the new `id`: SQLite tells it by itself.
  init(insert sql: String) { self.init(sql, postgres: sql + " RETURNING id") }

  func text(_ dialect: Dialect) -> String {
    switch dialect {
    case .sqlite: common
    case .postgres: (postgresOnly ?? common).replacing("?", with: "$")
    }
  }
}

/// A look-up or an insert for many rows of values at once. PostgreSQL has them as arrays, and gives with what it finds the number of the row that
/// it belongs to, behind the columns.
struct RowsStatement: Sendable {
  /// What a column's values are, by PostgreSQL's name.
  enum ColumnType: String {
    case int = "bigint"
    case blob = "bytea"
  }

  let statement: Statement

  init(_ sql: String, _ types: ColumnType...) {
    let names = types.indices.map { "p\($0 + 1)" }
    let arrays = types.enumerated().map { "?\($0 + 1)::\($1.rawValue)[]" }.joined(separator: ", ")
    let given = "FROM unnest(\(arrays)) WITH ORDINALITY AS given (\(names.joined(separator: ", ")), n)"
    func named(_ text: Substring) -> String {
      names.enumerated().reduce(String(text)) { $0.replacing("?\($1.offset + 1)", with: "given.\($1.element)") }
    }
    let postgres: String
    if let values = sql.firstRange(of: "VALUES ("), let end = sql[values.upperBound...].firstIndex(of: ")") {
      postgres = "\(sql[..<values.lowerBound])SELECT \(named(sql[values.upperBound..<end])) \(given)\(sql[end...].dropFirst())"
    } else {
      postgres = "SELECT found.*, given.n \(given) CROSS JOIN LATERAL (\(named(sql[...]))) found"
    }
    statement = Statement(sql, postgres: postgres)
  }
}

enum Dialect: Sendable {
  case sqlite, postgres
}

/// A row while it is visited.
protocol SQLRow {
  func isNull(_ column: Int) -> Bool
  /// 0 where null.
  func int(_ column: Int) -> Int64
  /// Empty where null.
  func bytes(_ column: Int) -> [UInt8]
  /// Appends the column's bytes and returns how many they were.
  func append(_ column: Int, to arena: inout [UInt8]) -> Int
}

extension SQLRow {
  func optionalInt(_ column: Int) -> Int64? { isNull(column) ? nil : int(column) }
  func optionalBytes(_ column: Int) -> [UInt8]? { isNull(column) ? nil : bytes(column) }
}

/// One connection to a database, for one thread.
protocol SQLSession: AnyObject {
  associatedtype Row: SQLRow
  var dialect: Dialect { get }

  /// Runs a statement, visits its rows and returns how many rows it changed. Nothing else may be run from within `each`.
  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue], _ each: (Row) -> Void) throws(RegistryError) -> Int

  /// Runs an insert into a table whose key is `id` and returns the new one.
  func insert(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64

  /// The same statement once for each set of values, in one round trip where the database is remote; `each` is told which set a row
  /// belongs to.
  func runEach(_ statement: Statement, _ sets: [[SQLValue]], _ each: (Int, Row) -> Void) throws(RegistryError)

  /// The same statement for each row of values, in one command where the database is remote; `each` is told which row a result belongs to. Rows
  /// of an insert differ from each other, and have no results.
  func runRows(_ statement: RowsStatement, _ columns: [SQLColumn], _ each: (Int, Row) -> Void) throws(RegistryError)

  /// Visits the rows of a statement whose `?1` is one of `ids`, in ascending order of `ids` (which ascend).
  func runForIDs(_ statement: Statement, _ ids: [Int64], _ each: (Row) -> Void) throws(RegistryError)

  /// Reads a page of devices, `limit` at most, of a statement that asks for one more: whether there is one tells if the page is the
  /// last. `cursor` is where the page begins. A requirement, so that it is compiled for each kind of row: it visits every device of
  /// every broadcast.
  func devices(
    _ statement: Statement, _ values: [SQLValue], _ wanted: WantedDevices, after cursor: Int64, limit: Int
  ) throws(RegistryError) -> AudiencePage

  /// Runs statements that only read, against one state of the database where that is for free.
  func reading<Result>(_ body: () throws(RegistryError) -> Result) throws(RegistryError) -> Result

  /// Looks for what is to be written, and where something is, writes it in a transaction. Both may be done again; the last look before a write
  /// sees what others have written before.
  /// - Parameter look: what the transaction is for; nil where nothing is to be written.
  /// - Returns: whether something was written.
  func lookAndWrite(
    _ look: () throws(RegistryError) -> TransactionIntent?, write: () throws(RegistryError) -> Void
  ) throws(RegistryError) -> Bool

  func begin(_ intent: TransactionIntent) throws(RegistryError)
  /// Within a transaction: from here on it is for this as well.
  func hold(_ intent: TransactionIntent) throws(RegistryError)
  func commit() throws(RegistryError)
  /// Never throws: a connection that can't roll back is dropped.
  func rollback()

  /// Marks devices by the quickest way that the database has.
  static func mark(_ marks: [DeviceMark], in store: SQLStore<Self>, now: Int64) throws(RegistryError) -> [MarkOutcome]

  /// Stores many registrations in one transaction, by the quickest way that the database has.
  static func load(_ registrations: [Registration], into store: SQLStore<Self>, now: Int64) throws(RegistryError)
    -> [ChangeAnswer]
}

/// What a transaction is for: writers to the same records are serialised, so that they can't deadlock.
enum TransactionIntent {
  /// Devices, users, topics and groups.
  case devices
  /// The accounts of campaigns.
  case campaigns
  /// What is noted; of notes and badges, those of some applications, by their numbers.
  case notes(of: [Int64])
  /// Everything that is noted.
  case allNotes
}

extension SQLSession {
  @discardableResult
  func run(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int { try run(statement, values) { _ in } }

  /// Runs `body` in a transaction; rolled back when it throws.
  func transaction<Result>(
    _ intent: TransactionIntent, _ body: () throws(RegistryError) -> Result
  ) throws(RegistryError) -> Result {
    try begin(intent)
    return try committing(body)
  }

  /// The rest of a transaction that has begun.
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

  func devices(
    _ statement: Statement, _ values: [SQLValue], _ wanted: WantedDevices, after cursor: Int64, limit: Int
  ) throws(RegistryError) -> AudiencePage {
    var devices = DeviceRows()
    devices.reserve(limit)
    var visited = 0
    var last = cursor
    try run(statement, values) { row in
      visited += 1
      guard visited <= limit else { return }
      last = row.int(DeviceColumn.id)
      if wanted.contains(row) { devices.append(row) }
    }
    return AudiencePage(devices: devices, next: last, isLast: visited <= limit)
  }

  func firstInt(_ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int64? {
    var found: Int64?
    try run(statement, values) { row in if found == nil { found = row.optionalInt(0) } }
    return found
  }
}
