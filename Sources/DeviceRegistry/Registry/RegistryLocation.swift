/// The location of a registry: `sqlite:<path>` or `postgresql://…`.
public enum RegistryLocation: Equatable, Sendable, CustomStringConvertible {
  /// A path. A relative one is relative to the working directory.
  case sqlite(path: String)
  /// libpq's form with parameters; may contain a password.
  case postgres(String)

  /// - Throws: ``RegistryError/unusable(_:_:)`` with the reason, without the text itself.
  public init(parsing text: String) throws(RegistryError) {
    if text.hasPrefix("sqlite:") {
      var path = String(text.dropFirst("sqlite:".count))
      if path.hasPrefix("///") { path = String(path.dropFirst(2)) }
      guard !path.isEmpty else { throw .unusable(.badLocation, "sqlite: names no file") }
      guard !path.hasPrefix("//") else {
        throw .unusable(.badLocation, "sqlite: takes a path, not a host: sqlite:/var/lib/registry.db")
      }
      guard path != ":memory:" else {
        throw .unusable(.badLocation, "sqlite: a registry in memory would be lost when the worker ends")
      }
      self = .sqlite(path: path)
    } else if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
      try PostgresLocation.check(text)
      self = .postgres(text)
    } else {
      throw .unusable(.badLocation, "expected sqlite:<path> or postgresql://<host>/<database>")
    }
  }

  public var description: String {
    switch self {
    case .sqlite(let path): "sqlite:\(path)"
    case .postgres(let text):
      // Omits user, password and parameters.
      "postgresql://" + text.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "?" }.split(
        separator: "@", omittingEmptySubsequences: false
      ).last!
    }
  }
}

/// Time limits of a store, and whether it may be created.
public struct StoreOptions: Sendable {
  /// Milliseconds per statement, including waits for locks. Short for a worker, long for a bulk load. PostgreSQL enforces its
  /// limits, and this program does too in case the server is stopped.
  public var statementTimeout: Int64
  /// Milliseconds to connect to a server.
  var connectTimeout: Int64
  /// Milliseconds of it to wait for another writer of devices, notes or orders, if the database distinguishes that from a slow statement.
  public var lockTimeout: Int64
  public var create: Bool
  /// KiB of an SQLite registry kept in memory.
  public var cache: Int

  /// Milliseconds to wait for a lock of an SQLite file.
  var busyTimeout: Int64 { max(lockTimeout, min(statementTimeout, 2_000)) }

  public init(statementTimeout: Int64 = 5_000, lockTimeout: Int64 = .max, create: Bool = true, cache: Int = 8 * 1024) {
    self.statementTimeout = statementTimeout
    connectTimeout = min(statementTimeout, 5_000)
    self.lockTimeout = min(statementTimeout, lockTimeout)
    self.create = create
    self.cache = cache
  }

  /// For commands that move many rows. They wait for a lock in short turns, so that a signal can end them.
  public static let bulk = StoreOptions(statementTimeout: 600_000, lockTimeout: 1_000, cache: 256 * 1024)
}

/// Opens the registry at a location and migrates its tables. Throws the exact reason if that fails.
package func openRegistry(
  _ location: RegistryLocation, options: StoreOptions = StoreOptions(), limits: RegistryLimits = RegistryLimits(),
  chance: StoreChance? = nil
) throws(RegistryError) -> DeviceStore {
  let session: any SQLSession
  switch location {
  case .sqlite(let path): session = try SQLiteConnection.registry(at: path, options)
  case .postgres(let location):
    let connection = try PostgresConnection(location: location, options: options)
    try connection.migrate()
    session = connection
  }
  return DeviceStore(session: session, limits: limits, chance: chance)
}
