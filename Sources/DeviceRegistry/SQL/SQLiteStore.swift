/// The registry in an SQLite file, for any number of workers on one host.
///
/// Uses a write-ahead log with `synchronous = NORMAL`. A crash of the program loses nothing. A crash of the machine may lose
/// the last transactions but never damages the file (sqlite.org/pragma.html#pragma_synchronous). The app's next start registers
/// lost devices again, and redelivered pages are counted again.
extension SQLiteConnection {
  static func registry(at path: String, _ options: StoreOptions) throws(RegistryError) -> SQLiteConnection {
    if try isMissing(path, create: options.create) { try make(path, options) }
    removeDrafts(of: path)
    let connection = try SQLiteConnection(path: path, create: false, busyTimeout: options.busyTimeout)
    try connection.checkIdentity()
    try connection.prepare(cache: options.cache)
    return connection
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
      let connection = try SQLiteConnection(path: draft, create: true, busyTimeout: options.busyTimeout)
      try connection.prepare(cache: options.cache)
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

  private func prepare(cache: Int) throws(RegistryError) {
    guard try first(Self.keepLog, [], { $0.bytes(0) }) == Array("wal".utf8) else {
      throw .unavailable(.readOnly, "\(path): no write-ahead log can be kept beside it")
    }
    try execute("PRAGMA synchronous = NORMAL; PRAGMA cache_size = -\(cache); PRAGMA temp_store = MEMORY")
    // In pages of 4 KiB. The log may grow to the cache size, because a bulk load changes the same pages repeatedly.
    try execute("PRAGMA wal_autocheckpoint = \(max(1_000, min(cache / 4, 65_536))); PRAGMA journal_size_limit = 67108864")
    try execute("PRAGMA secure_delete = OFF; PRAGMA analysis_limit = 1000")
    try migrate()
  }

  private func checkIdentity() throws(RegistryError) {
    guard try firstInt(Self.applicationID, []) == Schema.applicationID else {
      throw .unusable(.notARegistry, "\(path) is a database of another program")
    }
  }

  /// Migrates the tables to this program's version, one process at a time.
  private func migrate() throws(RegistryError) {
    guard try version() < Schema.version else { return }
    try execute("BEGIN EXCLUSIVE")
    do throws(RegistryError) {
      let found = try version()
      for migration in found..<Schema.version {
        for statement in Schema.statements(of: migration, .sqlite) { try execute(statement) }
      }
      try execute("PRAGMA application_id = \(Schema.applicationID)")
      try execute("PRAGMA user_version = \(Schema.version)")
      try execute("COMMIT")
    } catch {
      rollback()
      throw error
    }
  }

  private func version() throws(RegistryError) -> Int {
    let found = Int(try firstInt(Self.userVersion, []) ?? 0)
    guard found <= Schema.version else {
      throw .unusable(
        .newerSchema,
        "\(path) has schema \(found), this program knows up to \(Schema.version): use the newer program or restore a backup"
      )
    }
    return found
  }

  /// Returns the mode that is in force.
  private static let keepLog = Statement("PRAGMA journal_mode = WAL")
  private static let applicationID = Statement("PRAGMA application_id")
  private static let userVersion = Statement("PRAGMA user_version")
}
