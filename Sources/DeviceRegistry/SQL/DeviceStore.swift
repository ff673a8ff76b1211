import PushCore

/// Makes a store reproducible: replaces random numbers and the database's clock.
/// - Parameter clock: Unix milliseconds.
package typealias StoreChance = (seed: UInt64, clock: () -> Int64)

/// The registry over one database session. Synchronous: every call blocks on the database, so call it from a dedicated thread
/// (``Registry`` does that for a loop) or from a command. Confined to one thread at a time. Times are Unix milliseconds.
public final class DeviceStore {
  let session: any SQLSession
  let limits: RegistryLimits

  /// Numbers of apps and topics, which never change. Cleared on rollback, because the transaction may have created some.
  private var appIDs: [[UInt8]: Int64] = [:]
  private var topicIDs: [TopicName: Int64] = [:]
  private var salts: RandomNumbers
  /// Replaces the database's clock, in Unix milliseconds; nil to use the database's clock.
  let clock: (() -> Int64)?

  private struct TopicName: Hashable {
    let app: Int64
    let name: [UInt8]
  }

  init(session: any SQLSession, limits: RegistryLimits, chance: StoreChance?) {
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

  /// Runs one statement in a transaction and returns the number of changed rows.
  @discardableResult
  func write(_ intent: TransactionIntent, _ statement: Statement, _ values: [SQLValue]) throws(RegistryError) -> Int {
    try transaction(intent) { () throws(RegistryError) in try session.run(statement, values) }
  }

  /// Runs one statement with each set of values, in a transaction.
  func writeEach(_ intent: TransactionIntent, _ statement: Statement, _ sets: [SQLValue]) throws(RegistryError) {
    try transaction(intent) { () throws(RegistryError) in try session.runEach(statement, sets) }
  }

  func forgetNames() {
    appIDs = [:]
    topicIDs = [:]
  }

  /// The number of an app; nil if nothing was ever registered for it.
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
    return try session.firstInt(SQL.topicByName, [.int(app), .text(name)]).map { remember($0, key) }
  }

  func makeTopic(_ name: [UInt8], _ app: Int64) throws(RegistryError) -> Int64 {
    if let id = try knownTopic(name, app) { return id }
    return remember(try session.insert(SQL.insertTopic, [.int(app), .text(name)]), TopicName(app: app, name: name))
  }

  private func remember(_ id: Int64, _ topic: TopicName) -> Int64 {
    if topicIDs.count >= Self.cachedTopics { topicIDs = [:] }
    topicIDs[topic] = id
    return id
  }

  func knownUser(_ name: [UInt8], _ app: Int64) throws(RegistryError) -> Int64? {
    try session.firstInt(SQL.userByName, [.int(app), .text(name)])
  }

  /// The random half of a new registration or notification key.
  func makeSalt() -> Int64 { salts.next() }

  private static let cachedTopics = 10_000
  static let noRow = RegistryError.unusable(.broken, "an insert returned no id")
}

/// The statements for apps and topics. The other files contain further statements.
enum SQL {
  static let appByName = Statement("SELECT id FROM apps WHERE name = ?1")
  static let insertApp = Statement(insert: "INSERT INTO apps (name) VALUES (?1)")
  static let topicByName = Statement("SELECT id FROM topics WHERE app = ?1 AND name = ?2")
  static let insertTopic = Statement(insert: "INSERT INTO topics (app, name) VALUES (?1, ?2)")
}
