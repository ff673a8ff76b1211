/// The registry in an SQLite file: for one host, any number of workers on it.
///
/// Write-ahead log, `synchronous = NORMAL`: a crash of the program loses nothing, a crash of the machine may lose the last transactions
/// but never damages the file (sqlite.org/pragma.html#pragma_synchronous). What is lost so is registered again by the app's next
/// start, and pages that were counted are counted again when they are redelivered.
typealias SQLiteStore = SQLStore<SQLiteConnection>

/// How to open an SQLite registry.
struct SQLiteOptions {
  /// Milliseconds to wait for another process's lock.
  var busyTimeout: Int32 = 5_000
  /// Make the registry where there is none.
  var create = true
  /// KiB of pages kept in memory.
  var cache = 8 * 1024
}

extension SQLStore where Session == SQLiteConnection {
  convenience init(path: String, options: SQLiteOptions = SQLiteOptions(), limits: RegistryLimits = RegistryLimits())
    throws(StoreError)
  {
    let isNew = try Self.inspect(path, create: options.create)
    let connection = try SQLiteConnection(path: path, create: isNew, busyTimeout: options.busyTimeout)
    try Self.prepare(connection, isNew: isNew, cache: options.cache)
    self.init(session: connection, limits: limits)
  }

  /// Whether the registry is to be made. A file that is there but empty, or a log without its database, is an accident, and an empty
  /// registry in its place would make every registration unknown (fault F-99).
  private static func inspect(_ path: String, create: Bool) throws(StoreError) -> Bool {
    guard !path.isEmpty else { throw .unusable(.badLocation, "sqlite: names no file") }
    let folder = path.contains("/") ? String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)]) : "."
    if let kind = FileFacts.networkFileSystem(folder.isEmpty ? "/" : folder) {
      throw .unusable(
        .badLocation,
        "\(path) is on a network file system (\(kind)), where SQLite's locks don't hold: use a local disk, or PostgreSQL")
    }
    guard let size = FileFacts.size(path) else {
      guard create else { throw .unusable(.notARegistry, "\(path) doesn't exist") }
      guard FileFacts.isFolder(folder.isEmpty ? "/" : folder) else {
        throw .unusable(.badLocation, "the folder of \(path) doesn't exist")
      }
      guard (FileFacts.size(path + "-wal") ?? 0) == 0 else {
        throw .unusable(
          .notARegistry, "\(path) is missing but its log \(path)-wal is there: restore the file, or remove the log")
      }
      return true
    }
    guard size > 0 else {
      // Made a moment ago by another worker that hasn't written yet, or by accident: only its log tells.
      if FileFacts.size(path + "-wal") != nil { return false }
      throw .unusable(.notARegistry, "\(path) is empty: restore a backup, or remove it to begin with an empty registry")
    }
    return false
  }

  private static func prepare(_ connection: SQLiteConnection, isNew: Bool, cache: Int) throws(StoreError) {
    if !isNew { try checkIdentity(connection) }
    let mode = try connection.pragma("PRAGMA journal_mode = WAL")
    guard mode == Array("wal".utf8) else {
      throw .unavailable(.readOnly, "\(connection.path): no write-ahead log can be kept beside it")
    }
    try connection.execute("PRAGMA synchronous = NORMAL")
    try connection.execute("PRAGMA cache_size = -\(cache)")
    // In pages of 4 KiB: as much log as cache before it is written back, since a bulk load changes the same pages again and again.
    try connection.execute("PRAGMA wal_autocheckpoint = \(max(1_000, min(cache / 16, 16_384)))")
    try connection.execute("PRAGMA temp_store = MEMORY")
    try connection.execute("PRAGMA secure_delete = OFF")
    try connection.execute("PRAGMA analysis_limit = 1000")
    try connection.execute("PRAGMA journal_size_limit = 67108864")
    try migrate(connection)
  }

  private static func checkIdentity(_ connection: SQLiteConnection) throws(StoreError) {
    let identity = try number(connection, "PRAGMA application_id")
    let version = try number(connection, "PRAGMA user_version")
    if identity == 0, version == 0, try number(connection, "SELECT count(*) FROM sqlite_schema") == 0 { return }
    guard identity == Schema.applicationID else {
      throw .unusable(.notARegistry, "\(connection.path) is a database of another program")
    }
  }

  /// Brings the tables to this program's version, one process at a time.
  private static func migrate(_ connection: SQLiteConnection) throws(StoreError) {
    guard try version(connection) < Schema.version else { return }
    try connection.execute("BEGIN EXCLUSIVE")
    do throws(StoreError) {
      let found = try version(connection)
      for migration in found..<Schema.version {
        for statement in Schema.statements(of: migration, .sqlite) { try connection.execute(statement) }
      }
      try connection.execute("PRAGMA application_id = \(Schema.applicationID)")
      try connection.execute("PRAGMA user_version = \(Schema.version)")
      try connection.execute("COMMIT")
    } catch {
      connection.rollback()
      throw error
    }
  }

  private static func version(_ connection: SQLiteConnection) throws(StoreError) -> Int {
    let found = Int(try number(connection, "PRAGMA user_version"))
    guard found <= Schema.version else {
      throw .unusable(
        .newerSchema,
        "\(connection.path) has schema \(found), this program knows up to \(Schema.version): use the newer program or restore a backup"
      )
    }
    return found
  }

  private static func number(_ connection: SQLiteConnection, _ sql: String) throws(StoreError) -> Int64 {
    Int64(String(decoding: try connection.pragma(sql), as: UTF8.self)) ?? 0
  }
}
