/// Where a registry is: `sqlite:<path>` or `postgresql://…`.
public enum RegistryLocation: Equatable, Sendable, CustomStringConvertible {
  /// A path, relative to the working directory.
  case sqlite(path: String)
  /// libpq's form, parameters included; may hold a password.
  case postgres(String)

  /// - Throws: ``RegistryError/unusable(_:_:)`` naming what is wrong, without the text itself.
  public init(parsing text: String) throws(RegistryError) {
    if text.hasPrefix("sqlite:") {
      var path = String(text.dropFirst("sqlite:".count))
      if path.hasPrefix("///") { path = String(path.dropFirst(2)) }
      guard !path.isEmpty else { throw .unusable(.badLocation, "sqlite: names no file") }
      guard !path.hasPrefix("//") else {
        throw .unusable(.badLocation, "sqlite: takes a path, not a host: sqlite:/var/lib/registry.db")
      }
      guard path != ":memory:" else {
        throw .unusable(.badLocation, "sqlite: a registry in memory would be gone with the worker")
      }
      self = .sqlite(path: path)
    } else if text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") {
      try PostgresLocation.check(text)
      self = .postgres(text)
    } else {
      throw .unusable(.badLocation, "expected sqlite:<path> or postgresql://<host>/<database>")
    }
  }

  /// Without the password.
  public var description: String {
    switch self {
    case .sqlite(let path): "sqlite:\(path)"
    case .postgres(let text):
      // User, password and parameters go; host and database say enough.
      "postgresql://" + text.drop { $0 != "/" }.dropFirst(2).prefix { $0 != "?" }.split(
        separator: "@", omittingEmptySubsequences: false
      ).last!
    }
  }
}

/// How long a store may take, and whether it may be made.
public struct StoreOptions: Sendable {
  /// Milliseconds for one statement, a wait for another process's lock included. A worker's is short, a bulk load's long.
  public var statementTimeout: Int64
  /// Milliseconds of it for which a writer of devices waits for another one, where the database tells that from a slow statement.
  public var lockTimeout: Int64
  /// Make an SQLite registry where there is none.
  public var create: Bool
  /// KiB of an SQLite registry kept in memory.
  public var cache: Int

  public init(statementTimeout: Int64 = 5_000, lockTimeout: Int64 = .max, create: Bool = true, cache: Int = 8 * 1024) {
    self.statementTimeout = statementTimeout
    self.lockTimeout = min(statementTimeout, lockTimeout)
    self.create = create
    self.cache = cache
  }

  /// For commands that move many rows.
  public static let bulk = StoreOptions(statementTimeout: 600_000, cache: 256 * 1024)
}

/// Opens the registry at a location, brings its tables up to date, and says exactly why not where it can't.
public func openRegistry(
  _ location: RegistryLocation, options: StoreOptions = StoreOptions(), limits: RegistryLimits = RegistryLimits()
) throws(RegistryError) -> any DeviceStore {
  switch location {
  case .sqlite(let path):
    try SQLiteStore(
      path: path,
      options: SQLiteOptions(
        busyTimeout: Int32(min(options.statementTimeout, 3_600_000)), create: options.create, cache: options.cache),
      limits: limits)
  case .postgres(let location):
    try PostgresStore(
      location: location,
      options: PostgresOptions(
        connectTimeout: min(options.statementTimeout, 5_000), statementTimeout: options.statementTimeout,
        lockTimeout: options.lockTimeout),
      limits: limits)
  }
}

/// Opens an SQLite registry that repeats itself.
package func openRegistry(sqlite path: String, chance: StoreChance, limits: RegistryLimits) throws(RegistryError)
  -> any DeviceStore
{
  try SQLiteStore(path: path, limits: limits, chance: chance)
}
