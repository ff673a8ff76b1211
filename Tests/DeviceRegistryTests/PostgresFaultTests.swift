import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Faults of a PostgreSQL registry", .serialized, .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
struct PostgresFaultTests {
  private func server() throws -> Postgres { try #require(try Postgres.shared?.get()) }

  private func fault(_ body: () throws -> Void) throws -> RegistryError {
    do { try body() } catch { return try #require(error as? RegistryError) }
    throw TestFailure("no error")
  }

  private static let register = RegistryChange.register(
    Registration(app: TestRegistry.app, platform: .fcm, token: Array("t".utf8)))

  @Test("A connection ended by an administrator is restored automatically")
  func terminated() throws {
    let server = try server()
    let location = try server.makeDatabase()
    let store = try DeviceStore(location: location)
    let first = try store.apply([Self.register], now: 1)
    try server.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      at: location)
    #expect(try store.apply([Self.register], now: 2) == first)
    try server.execute(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
      at: location)
    #expect(try store.devices(app: nil, after: 0, limit: 9).count == 1)
  }

  @Test("A connection lost within a transaction is an error, and the transaction is rolled back")
  func lostInside() throws {
    let server = try server()
    let location = try server.makeDatabase()
    let store = try DeviceStore(location: location)
    let found = try fault {
      try store.transaction(.devices) { () throws(RegistryError) -> Void in
        _ = try store.apply(Self.register, 1)
        _ = try? server.execute(
          "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
          at: location)
        _ = try store.apply(Self.register, 1)
      }
    }
    guard case .unavailable(.down, _) = found else { throw TestFailure("\(found)") }
    #expect(try store.devices(app: nil, after: 0, limit: 9).isEmpty)
    #expect(try store.apply([Self.register], now: 1).count == 1)
  }

  @Test("A token that is too long for the index is refused, and the other changes are stored")
  func longToken() throws {
    let store = try DeviceStore(location: try server().makeDatabase())
    // Random, so that PostgreSQL can't compress it.
    let long = (0..<4_096).map { _ in UInt8.random(in: UInt8(ascii: "a")...UInt8(ascii: "z")) }
    let answers = try store.apply(
      [Self.register, .register(Registration(app: TestRegistry.app, platform: .fcm, token: long))], now: 1)
    guard case .refused(.invalidParameters, let reason) = answers[1] else { throw TestFailure("\(answers[1])") }
    #expect(reason.contains("54000"))
    #expect(try store.devices(app: nil, after: 0, limit: 9).count == 1)
  }

  /// Until then, PostgreSQL reads all devices of an application to find one token.
  @Test("A bulk load gives a new registry's devices statistics")
  func statistics() throws {
    let store = try DeviceStore(location: try server().makeDatabase())
    func load(_ tokens: Range<Int>) throws {
      _ = try store.load(
        tokens.map { Registration(app: TestRegistry.app, platform: .fcm, token: Array("t\($0)".utf8)) }, now: 1)
    }
    try load(0..<40)
    try load(40..<80)
    #expect(try store.session.firstInt(SQL.devicesInStatistics, []) == 40)
    try load(80..<120)
    #expect(try store.session.firstInt(SQL.devicesInStatistics, []) == 40)
  }

  @Test("A wait for another's lock ends at the time limit")
  func lockHeld() throws {
    let location = try server().makeDatabase()
    let store = try DeviceStore(location: location, options: StoreOptions(statementTimeout: 1_000))
    _ = try store.apply([Self.register], now: 1)
    let other = try PostgresConnection(location: location, options: StoreOptions())
    try other.execute("BEGIN; LOCK TABLE devices IN ACCESS EXCLUSIVE MODE")
    guard case .unavailable(.slow, _) = try fault({ _ = try store.devices(app: nil, after: 0, limit: 1) }) else {
      throw TestFailure("read")
    }
    guard case .unavailable(.slow, _) = try fault({ _ = try store.apply([Self.register], now: 2) }) else {
      throw TestFailure("written")
    }
    try other.execute("ROLLBACK")
    #expect(try store.apply([Self.register], now: 3).count == 1)
  }

  @Test("A lock for writers that isn't free fails the write, and keeps the connection usable")
  func writersWait() throws {
    let location = try server().makeDatabase()
    let store = try DeviceStore(location: location, options: StoreOptions(lockTimeout: 50))
    _ = try store.apply([Self.register], now: 1)
    let other = try PostgresConnection(location: location, options: StoreOptions())
    try other.begin(.devices)
    let backend = try store.session.firstInt(Statement("SELECT pg_backend_pid()"), [])
    for _ in 0..<2 {
      guard case .unavailable(.locked, _) = try fault({ _ = try store.apply([Self.register], now: 2) }) else {
        throw TestFailure("written")
      }
      #expect(try store.devices(app: nil, after: 0, limit: 9).count == 1)
    }
    try other.commit()
    #expect(try store.apply([Self.register], now: 3).count == 1)
    #expect(try store.session.firstInt(Statement("SELECT pg_backend_pid()"), []) == backend)
  }

  @Test("A call to a suspended server ends at the time limit, and the server is used again when it continues")
  func frozen() throws {
    let server = try Postgres()
    defer { server.stop() }
    let location = try server.makeDatabase()
    var options = StoreOptions(statementTimeout: 1_000)
    options.connectTimeout = 5_000
    let store = try DeviceStore(location: location, options: options)
    _ = try store.apply([Self.register], now: 1)
    let backend = try #require(
      pid_t(
        try server.execute("SELECT pid FROM pg_stat_activity WHERE datname <> 'postgres' AND query LIKE '%COMMIT%' LIMIT 1")))
    kill(backend, SIGSTOP)
    guard case .unavailable(.slow, _) = try fault({ _ = try store.devices(app: nil, after: 0, limit: 1) }) else {
      throw TestFailure("read")
    }
    kill(backend, SIGCONT)
    #expect(try store.devices(app: nil, after: 0, limit: 1).count == 1)
  }

  @Test("A standby or read-only server can be read; writing explains the refusal")
  func readOnly() throws {
    let server = try server()
    let location = try server.makeDatabase()
    do { _ = try DeviceStore(location: location).apply([Self.register], now: 1) }
    let store = try DeviceStore(location: location + "&options=-c%20default_transaction_read_only%3Don")
    #expect(try store.devices(app: nil, after: 0, limit: 9).count == 1)
    guard case .unavailable(.readOnly, _) = try fault({ _ = try store.apply([Self.register], now: 2) }) else {
      throw TestFailure("written")
    }
  }

  @Test("A failed connection has its reason: no server, no database, no rights, too many connections")
  func refused() throws {
    let server = try server()
    guard case .unavailable(.down, _) = try fault({ _ = try DeviceStore(location: "postgresql://127.0.0.1:1/x") }) else {
      throw TestFailure("connected")
    }
    guard case .unusable(.badLocation, _) = try fault({ _ = try DeviceStore(location: server.location("no_such_database")) })
    else {
      throw TestFailure("connected")
    }
    guard case .unusable(.badLocation, _) = try fault({ _ = try DeviceStore(location: "postgresql://h/x?no_such_option=1") })
    else {
      throw TestFailure("connected")
    }
    try server.execute("CREATE ROLE weak LOGIN")
    let location = try server.makeDatabase()
    guard
      case .unusable(.accessDenied, _) = try fault({
        _ = try DeviceStore(location: location.replacingOccurrences(of: "postgres@", with: "weak@"))
      })
    else { throw TestFailure("made") }
    guard
      case .unusable(.accessDenied, _) = try fault({
        _ = try DeviceStore(location: location.replacingOccurrences(of: "postgres@", with: "nobody_at_all@"))
      })
    else { throw TestFailure("made") }
    try server.execute("ALTER DATABASE \(location.split(separator: "/")[2].prefix { $0 != "?" }) CONNECTION LIMIT 0")
    guard
      case .unavailable(.overloaded, _) = try fault({
        _ = try DeviceStore(location: location.replacingOccurrences(of: "postgres@", with: "weak@"))
      })
    else { throw TestFailure("connected") }
  }

  @Test("A newer schema is refused")
  func newer() throws {
    let location = try server().makeDatabase()
    do { _ = try DeviceStore(location: location) }
    try server().execute("UPDATE pushfleet.schema_version SET version = 1000", at: location)
    guard case .unusable(.newerSchema, _) = try fault({ _ = try DeviceStore(location: location) }) else {
      throw TestFailure("opened")
    }
  }

  @Test("Workers that create one registry at the same time all succeed")
  func concurrentCreation() throws {
    let location = try server().makeDatabase()
    let failures = Collected<String>()
    DispatchQueue.concurrentPerform(iterations: 6) { _ in
      do { _ = try DeviceStore(location: location).apply([Self.register], now: 1) } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
  }

  @Test("A server that restarts is found again")
  func restarts() throws {
    let server = try Postgres()
    defer { server.stop() }
    let location = try server.makeDatabase()
    let store = try DeviceStore(location: location)
    _ = try store.apply([Self.register], now: 1)
    // A backend that is killed makes the server end all connections and recover.
    let backend = try #require(
      pid_t(
        try server.execute("SELECT pid FROM pg_stat_activity WHERE datname <> 'postgres' AND query LIKE '%COMMIT%' LIMIT 1")))
    kill(backend, SIGKILL)
    // The server has noticed the end of the backend when the process is no longer its child.
    #expect(eventually { kill(backend, 0) != 0 })
    _ = try? store.devices(app: nil, after: 0, limit: 1)
    try server.awaitReadiness()
    #expect(try store.devices(app: nil, after: 0, limit: 1).count == 1)
  }
}
