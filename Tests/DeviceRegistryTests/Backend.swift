import Foundation
import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

/// The databases that must behave alike: every test of the conformance suite runs on each.
enum Backend: String, CaseIterable, CustomTestStringConvertible {
  case sqlite, postgres

  static let all: [Backend] = Postgres.shared == nil ? [.sqlite] : allCases
  var testDescription: String { rawValue }

  /// An empty registry.
  func open(_ limits: RegistryLimits = RegistryLimits()) throws -> TestRegistry {
    switch self {
    case .sqlite:
      let folder = try TemporaryFolder()
      return TestRegistry(
        location: folder.path + "/registry.db", limits: limits, backend: self,
        store: try DeviceStore(path: folder.path + "/registry.db", limits: limits),
        folder: folder)
    case .postgres:
      let location = try #require(try Postgres.shared?.get()).makeDatabase()
      return TestRegistry(
        location: location, limits: limits, backend: self, store: try DeviceStore(location: location, limits: limits),
        folder: nil)
    }
  }
}

extension Backend {
  /// A connection to an existing registry.
  func connect(_ location: String, _ limits: RegistryLimits = RegistryLimits()) throws -> DeviceStore {
    switch self {
    case .sqlite: try DeviceStore(path: location, limits: limits)
    case .postgres: try DeviceStore(location: location, limits: limits)
    }
  }
}

extension SQLiteConnection {
  /// The first column of the first row.
  func pragma(_ sql: String) throws -> [UInt8] { try first(Statement(sql), []) { $0.bytes(0) } ?? [] }
}

extension DeviceStore {
  /// The registry in an SQLite file.
  convenience init(path: String, options: StoreOptions = StoreOptions(), limits: RegistryLimits = RegistryLimits()) throws {
    self.init(session: try SQLiteConnection.registry(at: path, options), limits: limits, chance: nil)
  }

  /// The registry in PostgreSQL.
  convenience init(location: String, options: StoreOptions = StoreOptions(), limits: RegistryLimits = RegistryLimits()) throws {
    let connection = try PostgresConnection(location: location, options: options)
    try connection.migrate()
    self.init(session: connection, limits: limits, chance: nil)
  }

  /// Registrations of one app.
  func resolve(_ registrations: [[UInt8]], app: [UInt8]) throws -> Resolution {
    try resolve(registrations.map { LookUp(app: app, registration: $0) })
  }
}

/// A registry of one test, with the short forms that tests need.
struct TestRegistry {
  let location: String
  let limits: RegistryLimits
  let backend: Backend
  let store: DeviceStore
  let folder: TemporaryFolder?

  /// Another connection, like another worker's.
  func another() throws -> DeviceStore {
    try backend.connect(location, limits)
  }

  static let app = Array("com.example.app".utf8)

  /// Applies one change given as JSON, `app` added.
  @discardableResult
  func change(_ json: String, now: Int64 = 1_000) throws -> ChangeAnswer {
    switch RegistryChange.parse(Array(json.utf8), defaultApp: Self.app, limits: limits) {
    case .success(let change): try #require(try store.apply([change], now: now).first)
    case .failure(let refusal): refusal.answer
    }
  }

  /// Registers an FCM token and returns the registration.
  func register(_ token: String, _ fields: String = "", now: Int64 = 1_000) throws -> [UInt8] {
    let answer = try change(#"{"platform":"fcm","token":"\#(token)"\#(fields.isEmpty ? "" : ",")\#(fields)}"#, now: now)
    guard let id = answer.registration else {
      throw TestFailure("refused: \(String(decoding: answer.json, as: UTF8.self))")
    }
    return id
  }

  /// The tokens that an audience reaches, in the order of the pages.
  func tokens(_ audience: Audience, pageSize: Int = 3) throws -> [String] {
    let highWater = try store.survey(audience, app: Self.app).highWater
    var cursor: Int64 = 0
    var tokens: [String] = []
    while true {
      let page = try store.page(of: audience, kind: .alert, app: Self.app, after: cursor, upTo: highWater, limit: pageSize)
      for index in 0..<page.devices.count { tokens.append(String(decoding: page.devices.token(index), as: UTF8.self)) }
      if page.isLast { return tokens }
      #expect(page.next > cursor)
      cursor = page.next
    }
  }

  func topic(_ name: String) throws -> [String] { try tokens(.topic(Array(name.utf8))) }
  func user(_ name: String) throws -> [String] { try tokens(.user(Array(name.utf8))) }

  /// What a registration resolves to: token, and whether it is the canonical one.
  func resolve(_ registration: [UInt8]) throws -> (token: String, isCanonical: Bool, state: DeviceState)? {
    let resolution = try store.resolve([registration], app: Self.app)
    guard case .device(let index, let isCanonical) = resolution.entries[0] else { return nil }
    return (String(decoding: resolution.devices.token(index), as: UTF8.self), isCanonical, resolution.devices[index].state)
  }

  /// Marks an FCM token with a provider's verdict.
  @discardableResult
  func mark(_ token: String, _ verdict: DeviceMark.Verdict, now: Int64 = 9_000) throws -> MarkOutcome? {
    let mark = DeviceMark(
      app: Self.app, platform: .fcm, token: Array(token.utf8), verdict: verdict, reason: Array("Unregistered".utf8))
    return try store.mark([mark], now: now).first
  }

  func record(_ token: String) throws -> DeviceRecord? {
    try store.device(.token(.fcm, Array(token.utf8)), app: Self.app).first
  }
}

struct TestFailure: Error, CustomStringConvertible {
  let description: String
  init(_ description: String) { self.description = description }
}

/// A folder that is removed with its last user.
final class TemporaryFolder: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "/pushfleet-storage-\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit {
    // A store that closes on its own thread removes its log at the same time, which makes an attempt fail.
    for _ in 0..<100 where FileManager.default.fileExists(atPath: path) { try? FileManager.default.removeItem(atPath: path) }
  }
}

func text(_ bytes: some Sequence<UInt8>) -> String { String(decoding: Array(bytes), as: UTF8.self) }

extension SQLiteConnection {
  /// The query plan of a statement, in SQLite's words.
  func explain(_ statement: Statement) throws -> [String] {
    try all(Statement("EXPLAIN QUERY PLAN \(statement.text(.sqlite))"), []) { row in
      String(decoding: row.bytes(3), as: UTF8.self)
    }
  }
}

extension ChangeAnswer {
  var isRefusal: Bool { if case .refused = self { true } else { false } }
}

/// One note by itself.
extension DeviceStore {
  func note(_ note: Note, now: Int64) throws -> NoteAnswer { try #require(try self.note([(note, now)]).answers.first) }

  func countBadges(_ count: BadgeCount, now: Int64) throws -> [Int64?] {
    guard case .badges(let badges) = try note(.badges(count), now: now) else { throw TestFailure("no badges") }
    return badges
  }

  func keepMessage(_ id: [UInt8], now: Int64) throws { _ = try note(.message(id), now: now) }

  func keepPage(_ page: ContentPage, now: Int64) throws -> [UInt8]? {
    guard case .page(let name) = try note(.page(page), now: now) else { throw TestFailure("no page") }
    return name
  }

  func claimRequest(_ name: [UInt8], message: [UInt8] = [], body: [UInt8], until: Int64, now: Int64) throws -> GatewayRequest? {
    guard case .claim(let known) = try note(.claim(name: name, message: message, body: body, until: until), now: now) else {
      throw TestFailure("no claim")
    }
    return known
  }

  func settleRequest(
    _ name: [UInt8], _ state: GatewayRequest.State?, until: Int64, isLate: Bool = false, now: Int64
  ) throws -> GatewayRequest.State? {
    guard case .settle(let stands) = try note(.settle(name: name, state, until: until, isLate: isLate), now: now) else {
      throw TestFailure("no settlement")
    }
    return stands
  }
}
