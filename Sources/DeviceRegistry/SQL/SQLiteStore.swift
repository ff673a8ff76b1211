/// The registry in an SQLite file, for any number of workers on one host.
///
/// Uses a write-ahead log with `synchronous = NORMAL`. A crash of the program loses nothing. A crash of the machine may lose
/// the last transactions but never damages the file (sqlite.org/pragma.html#pragma_synchronous). The app's next start registers
/// lost devices again, and redelivered pages are counted again.
extension DeviceStore {
  convenience init(
    path: String, options: StoreOptions = StoreOptions(), limits: RegistryLimits = RegistryLimits(), chance: StoreChance? = nil
  ) throws(RegistryError) {
    if try Self.isMissing(path, create: options.create) { try Self.make(path, options) }
    Self.removeDrafts(of: path)
    let connection = try SQLiteConnection(path: path, create: false, busyTimeout: options.statementTimeout)
    try Self.checkIdentity(connection)
    try Self.prepare(connection, cache: options.cache)
    self.init(session: connection, limits: limits, chance: chance)
  }

  /// True if the registry must be created. An empty file, or a log without its database, is an error, because a new registry
  /// would make every registration unknown.
  private static func isMissing(_ path: String, create: Bool) throws(RegistryError) -> Bool {
    guard !path.isEmpty else { throw .unusable(.badLocation, "sqlite: names no file") }
    let folder = self.folder(of: path)
    if let kind = FileFacts.networkFileSystem(folder) {
      throw .unusable(
        .badLocation,
        "\(path) is on a network file system (\(kind)), where SQLite's locks don't hold: use a local disk, or PostgreSQL")
    }
    guard let size = FileFacts.size(path) else {
      guard create else {
        throw .unusable(
          .notARegistry, "\(path) doesn't exist: start a worker or run `pushfleet devices import` to create it")
      }
      guard FileFacts.isFolder(folder) else {
        throw .unusable(.badLocation, "the folder of \(path) doesn't exist")
      }
      guard (FileFacts.size(path + "-wal") ?? 0) == 0 else {
        // Another worker may have created both in the meantime.
        if FileFacts.size(path) != nil { return false }
        throw .unusable(
          .notARegistry, "\(path) is missing but its log \(path)-wal is there: restore the file, or remove the log")
      }
      return true
    }
    guard size > 0 else {
      throw .unusable(.notARegistry, "\(path) is empty: restore a backup, or remove it to begin with an empty registry")
    }
    return false
  }

  /// Creates the registry under a temporary name and links it when it is complete, so that no other worker sees a partial one.
  private static func make(_ path: String, _ options: StoreOptions) throws(RegistryError) {
    let draft = "\(path).new-\(FileFacts.ownProcess)-\(UInt32.random(in: .min ... .max))"
    defer { for suffix in ["", "-wal", "-shm"] { FileFacts.remove(draft + suffix) } }
    FileFacts.makePrivate(draft)
    do {
      let connection = try SQLiteConnection(path: draft, create: true, busyTimeout: options.statementTimeout)
      try prepare(connection, cache: options.cache)
    }
    _ = FileFacts.link(draft, to: path)
  }

  /// Removes temporary files of processes that ended during the creation.
  private static func removeDrafts(of path: String) {
    let folder = self.folder(of: path)
    let beginning = "\(path.split(separator: "/").last ?? "").new-"
    for name in FileFacts.names(in: folder) where name.hasPrefix(beginning) {
      guard let process = name.dropFirst(beginning.count).split(separator: "-").first.flatMap({ Int32($0) }), process > 0,
        !FileFacts.isRunning(process)
      else { continue }
      FileFacts.remove("\(folder)/\(name)")
    }
  }

  private static func folder(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }

  private static func prepare(_ connection: SQLiteConnection, cache: Int) throws(RegistryError) {
    let mode = try connection.pragma("PRAGMA journal_mode = WAL")
    guard mode == Array("wal".utf8) else {
      throw .unavailable(.readOnly, "\(connection.path): no write-ahead log can be kept beside it")
    }
    try connection.execute("PRAGMA synchronous = NORMAL")
    try connection.execute("PRAGMA cache_size = -\(cache)")
    // In pages of 4 KiB. The log may grow to the cache size, because a bulk load changes the same pages repeatedly.
    try connection.execute("PRAGMA wal_autocheckpoint = \(max(1_000, min(cache / 4, 65_536)))")
    try connection.execute("PRAGMA temp_store = MEMORY")
    try connection.execute("PRAGMA secure_delete = OFF")
    try connection.execute("PRAGMA analysis_limit = 1000")
    try connection.execute("PRAGMA journal_size_limit = 67108864")
    try migrate(connection)
  }

  private static func checkIdentity(_ connection: SQLiteConnection) throws(RegistryError) {
    let identity = try number(connection, "PRAGMA application_id")
    guard identity == Schema.applicationID else {
      throw .unusable(.notARegistry, "\(connection.path) is a database of another program")
    }
  }

  /// Migrates the tables to this program's version, one process at a time.
  private static func migrate(_ connection: SQLiteConnection) throws(RegistryError) {
    guard try version(connection) < Schema.version else { return }
    try connection.execute("BEGIN EXCLUSIVE")
    do throws(RegistryError) {
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

  private static func version(_ connection: SQLiteConnection) throws(RegistryError) -> Int {
    let found = Int(try number(connection, "PRAGMA user_version"))
    guard found <= Schema.version else {
      throw .unusable(
        .newerSchema,
        "\(connection.path) has schema \(found), this program knows up to \(Schema.version): use the newer program or restore a backup"
      )
    }
    return found
  }

  private static func number(_ connection: SQLiteConnection, _ sql: String) throws(RegistryError) -> Int64 {
    Int64(String(decoding: try connection.pragma(sql), as: UTF8.self)) ?? 0
  }
}
