import PushCore

/// What makes a store repeat itself: in the place of random numbers and of the database's clock.
package struct StoreChance {
  package var seed: UInt64
  /// Unix milliseconds.
  package var clock: () -> Int64

  package init(seed: UInt64, clock: @escaping () -> Int64) {
    self.seed = seed
    self.clock = clock
  }
}

/// The registry over one database session: what both databases share, which is everything but the connection, the locks and the
/// bulk load. The steps are in the extensions, one file each.
final class SQLStore<Session: SQLSession> {
  let session: Session
  let limits: RegistryLimits

  /// Numbers of apps and topics, which never change once made. Emptied when a transaction is rolled back: it may have made some.
  private var appIDs: [[UInt8]: Int64] = [:]
  private var topicIDs: [TopicName: Int64] = [:]
  private var salts: RandomNumbers
  /// Unix milliseconds in the place of the database's clock; nil for that clock.
  let clock: (() -> Int64)?

  private struct TopicName: Hashable {
    let app: Int64
    let name: [UInt8]
  }

  init(session: Session, limits: RegistryLimits, chance: StoreChance? = nil) {
    self.session = session
    self.limits = limits
    salts = RandomNumbers(seed: chance?.seed)
    clock = chance?.clock
  }

  func transaction<Result>(
    _ intent: TransactionIntent, _ body: () throws(RegistryError) -> Result
  ) throws(RegistryError) -> Result {
    do throws(RegistryError) {
      return try session.transaction(intent, body)
    } catch {
      forgetNames()
      throw error
    }
  }

  func forgetNames() {
    appIDs = [:]
    topicIDs = [:]
  }

  /// The number of an app, or nil when nothing was ever registered for it.
  func knownApp(_ name: [UInt8]) throws(RegistryError) -> Int64? {
    if let id = appIDs[name] { return id }
    guard let id = try session.firstInt(SQL.appByName, [.text(name)]) else { return nil }
    appIDs[name] = id
    return id
  }

  func makeApp(_ name: [UInt8]) throws(RegistryError) -> Int64 {
    if let id = try knownApp(name) { return id }
    let id = try session.insert(SQL.insertApp, [.text(name)])
    appIDs[name] = id
    return id
  }

  func knownTopic(_ name: [UInt8], _ app: Int64) throws(RegistryError) -> Int64? {
    let key = TopicName(app: app, name: name)
    if let id = topicIDs[key] { return id }
    guard let id = try session.firstInt(SQL.topicByName, [.int(app), .text(name)]) else { return nil }
    if topicIDs.count >= Self.cachedTopics { topicIDs = [:] }
    topicIDs[key] = id
    return id
  }

  func makeTopic(_ name: [UInt8], _ app: Int64) throws(RegistryError) -> Int64 {
    if let id = try knownTopic(name, app) { return id }
    let id = try session.insert(SQL.insertTopic, [.int(app), .text(name)])
    topicIDs[TopicName(app: app, name: name)] = id
    return id
  }

  /// The random half of a new registration or notification key.
  func makeSalt() -> Int64 { salts.next() }

  private static var cachedTopics: Int { 10_000 }
  static var noRow: RegistryError { .unusable(.broken, "an insert gave no number back") }
}

/// The statements of apps and topics; those of the other steps stand beside them.
enum SQL {
  static let appByName = Statement("SELECT id FROM apps WHERE name = ?1")
  static let insertApp = Statement(insert: "INSERT INTO apps (name) VALUES (?1)")
  static let topicByName = Statement("SELECT id FROM topics WHERE app = ?1 AND name = ?2")
  static let insertTopic = Statement(insert: "INSERT INTO topics (app, name) VALUES (?1, ?2)")
}
