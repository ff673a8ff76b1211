import PushCore

extension DeviceStore {
  /// Stores acknowledgements in one transaction: all if it returns, none if it throws. Each device's receipt and read of a
  /// message is stored once, even if repeated. A read also applies its badge rule.
  public func acknowledge(
    _ acknowledgements: [Acknowledgement], wantsReceipts: Bool, now: Int64
  ) throws(RegistryError) -> [AcknowledgementOutcome] {
    guard !acknowledgements.isEmpty else { return [] }
    var apps: [[UInt8]: Int64] = [:]
    for name in Set(acknowledgements.map(\.app)) { apps[name] = try knownApp(name) }
    return try transaction(.notes(of: apps.values.sorted())) { () throws(RegistryError) in
      var batch = AcknowledgementBatch(store: self, apps: apps, entries: acknowledgements.map { .init(acknowledgement: $0) })
      return try batch.store(wantsReceipts: wantsReceipts, now)
    }
  }

  fileprivate func names(of users: [Int64]) throws(RegistryError) -> [Int64: [UInt8]] {
    try session.byNumber(SQL.userByID, users) { $0.bytes(0) }
  }

  func times(of notes: [SQLValue]) throws(RegistryError) -> [AcknowledgementTimes] {
    try session.ofEach(SQL.noteTimes, notes) { row in
      AcknowledgementTimes(received: row.optionalInt(0), read: row.optionalInt(1))
    }
    .map { $0 ?? AcknowledgementTimes() }
  }
}

/// Acknowledgements that are stored in one transaction, each only once.
private struct AcknowledgementBatch {
  struct Entry {
    let acknowledgement: Acknowledgement
    /// nil if it is unknown or belongs to another user.
    var device: DeviceStore.Found?
    /// nil without a device, or if it wasn't sent to the device as far as the registry knows.
    var message: Message?
    var isNew = false

    var event: Receipt.Event? { acknowledgement.operation.event }
    var send: Send? { message.map { Send(app: acknowledgement.app, message: $0.id) } }
  }

  /// The acknowledged message, or the occasion of a forced badge.
  struct Message {
    let key: Int64
    let id: [UInt8]
  }

  struct Send: Hashable {
    let app: [UInt8]
    let message: [UInt8]
  }

  let store: DeviceStore
  let apps: [[UInt8]: Int64]
  var entries: [Entry]

  mutating func store(wantsReceipts: Bool, _ now: Int64) throws(RegistryError) -> [AcknowledgementOutcome] {
    try findDevices()
    try findMessages()
    try dropUnsent()
    try note(now)
    try applyBadgeRules()
    try countForCampaigns()
    let receipts = wantsReceipts ? try receipts() : [:]
    return entries.enumerated().map { index, entry in
      guard entry.message != nil else { return .unknown }
      return entry.isNew ? .noted(receipts[index]) : .repeated(receipts[index])
    }
  }

  private mutating func findDevices() throws(RegistryError) {
    let devices = try store.found(
      entries.map { entry in
        apps[entry.acknowledgement.app].map { (entry.acknowledgement.device, $0) } ?? (.invalid, 0)
      }, withReplaced: true)
    for (index, device) in devices.enumerated() { entries[index].device = device }
    let named = entries.indices.filter { entries[$0].acknowledgement.user != nil }
    let users = try store.names(of: named.compactMap { devices[$0]?.user })
    for index in named where devices[index]?.user.flatMap({ users[$0] }) != entries[index].acknowledgement.user {
      entries[index].device = nil
    }
  }

  private mutating func findMessages() throws(RegistryError) {
    var byKey: [(index: Int, keys: ClosedRange<Int64>)] = []
    for (index, entry) in entries.enumerated() where entry.device != nil {
      switch entry.acknowledgement.operation {
      case .received(.id(let id)), .read(.id(let id), _): entries[index].message = Message(key: MessageKey.of(id), id: id)
      case .badge:
        let key = entry.acknowledgement.occasion.map { MessageKey.of(occasion: $0) } ?? 0
        entries[index].message = Message(key: key, id: [])
      case .received(.key(let keys)), .read(.key(let keys), _): byKey.append((index, keys))
      }
    }
    let ranges: [SQLValue] = byKey.flatMap { [.int($0.keys.lowerBound), .int($0.keys.upperBound)] }
    let known = try store.session.ofEach(SQL.messageByKey, ranges) { Message(key: $0.int(0), id: $0.bytes(1)) }
    for ((index, _), message) in zip(byKey, known) { entries[index].message = message }
  }

  private mutating func note(_ now: Int64) throws(RegistryError) {
    var (received, read, forced): ([DeviceStore.Asked], [DeviceStore.Asked], [DeviceStore.Asked]) = ([], [], [])
    for (index, entry) in entries.enumerated() {
      guard let device = entry.device, let message = entry.message else { continue }
      let place: [SQLValue] = [.int(message.key), .int(device.counter), .int(now)]
      switch entry.acknowledgement.operation {
      case .received: received.append((index, place + [.int(entry.acknowledgement.at)]))
      case .read: read.append((index, place + [.int(entry.acknowledgement.at)]))
      case .badge where entry.acknowledgement.occasion == nil: entries[index].isNew = true
      case .badge: forced.append((index, place))
      }
    }
    for (statement, sets) in [(SQL.noteReceived, received), (SQL.noteRead, read), (SQL.noteForced, forced)] {
      let rows = try store.session.ofEach(statement, sets.flatMap(\.values)) { _ in true }
      for (set, isNew) in zip(sets, rows) where isNew != nil { entries[set.index].isNew = true }
    }
  }

  private func applyBadgeRules() throws(RegistryError) {
    var rules: [(counter: Int64, rule: BadgeRule)] = []
    for entry in entries where entry.isNew {
      guard let counter = entry.device?.counter else { continue }
      switch entry.acknowledgement.operation {
      case .received: continue
      case .read(_, let rule): rules.append((counter, rule))
      case .badge(let number): rules.append((counter, .update(number)))
      }
    }
    var badges = try store.badges(of: rules.map(\.counter))
    let before = badges
    for (counter, rule) in rules {
      switch rule {
      case .keep: badges[counter] = max(0, (badges[counter] ?? 0) - 1)
      case .reset: badges[counter] = 0
      case .update(let number): badges[counter] = number
      }
    }
    try store.setBadges(badges.filter { $1 != before[$0] ?? 0 })
  }

  private func countForCampaigns() throws(RegistryError) {
    var counts: [Send: (received: Int, read: Int)] = [:]
    for entry in entries where entry.isNew {
      guard let send = entry.send, let event = entry.event else { continue }
      if event == .read { counts[send, default: (0, 0)].read += 1 } else { counts[send, default: (0, 0)].received += 1 }
    }
    try store.session.runEach(
      SQL.countForCampaign, counts.flatMap { [.blob($0.message), .text($0.app), .int($1.received), .int($1.read)] })
  }

  /// By index of their entries.
  private func receipts() throws(RegistryError) -> [Int: Receipt] {
    let asking = entries.enumerated().filter { $1.message != nil && ($1.isNew || $1.acknowledgement.isRedelivered) }
    let users = try store.names(of: asking.compactMap { $1.device?.user })
    let badges = try store.badges(of: asking.compactMap { $1.device?.counter })
    let times = try store.times(of: asking.flatMap { [.int($1.message?.key), .int($1.device?.counter)] })
    var receipts: [Int: Receipt] = [:]
    for ((index, entry), times) in zip(asking, times) {
      guard let device = entry.device, let message = entry.message, let event = entry.event else { continue }
      receipts[index] = Receipt(
        event: event, app: entry.acknowledgement.app, messageID: message.id, registration: device.key.registration,
        user: device.user.flatMap { users[$0] },
        at: (event == .received ? times.received : times.read) ?? entry.acknowledgement.at, badge: badges[device.counter] ?? 0)
    }
    return receipts
  }

  // MARK: messages that weren't sent to the device (docs/send/registry.md)

  private mutating func dropUnsent() throws(RegistryError) {
    let asked = entries.indices.filter { entries[$0].message != nil && entries[$0].event != nil }
    let values = asked.flatMap { index -> [SQLValue] in
      let entry = entries[index]
      return [.int(entry.message?.key), .int(entry.device?.counter), .int(apps[entry.acknowledgement.app])]
    }
    var believed: Set<Int> = []
    var ofSend: [Send: [Int]] = [:]
    try store.session.runEach(SQL.traces, values) { [entries] place, row in
      let (index, entry) = (asked[place], entries[asked[place]])
      let isRead = entry.event == .read
      let isNoted = !row.isNull(0) || !row.isNull(isRead ? 2 : 1)
      let countsElsewhere = !row.isNull(3)
      let (isKept, isCounting) = (!row.isNull(4), row.int(5) != 0)
      if isNoted {
        believed.insert(index)
      } else if let send = entry.send {
        let isUnsent = countsElsewhere || !isKept && (entry.acknowledgement.isMessageKept || (isRead && isCounting))
        if !isUnsent { believed.insert(index) }
        ofSend[send, default: []].append(index)
      }
    }
    var others: [(index: Int, asked: (message: [UInt8], app: [UInt8], device: Int64))] = []
    for (send, reaches) in try reach(of: ofSend.keys.map(\.self)) {
      let places = ofSend[send] ?? []
      let counters = Set(places.compactMap { entries[$0].device?.counter }).sorted()
      var members: Set<Int64> = []
      for reach in reaches { members.formUnion(try self.members(among: counters, of: reach, send.app)) }
      for index in places {
        guard let counter = entries[index].device?.counter else { continue }
        if members.contains(counter) {
          believed.insert(index)
        } else {
          believed.remove(index)
          others.append((index, (send.message, send.app, counter)))
        }
      }
    }
    // Devices that have left the audience since a page with badges was sent to them.
    for (other, badge) in zip(others, try store.badgesOfCampaigns(others.map(\.asked))) where badge != nil {
      believed.insert(other.index)
    }
    for index in asked where !believed.contains(index) { entries[index].message = nil }
  }

  /// The audience of a broadcast, and the device numbers that a chain of its pages has reached: above `after` and up to `end`.
  private struct Reach {
    let target: [UInt8]
    let after: Int64
    let end: Int64
    let began: Int64
  }

  private func reach(of sends: [Send]) throws(RegistryError) -> [Send: [Reach]] {
    var reach: [Send: [Reach]] = [:]
    try store.session.runEach(SQL.reach, sends.flatMap { [.blob($0.message), .text($0.app)] }) { place, row in
      let campaign = CampaignDescription(
        id: [], app: [], messageID: [], target: row.bytes(0), total: 0, highWater: row.int(5), chains: row.int(4),
        lowWater: row.int(6))
      reach[sends[place], default: []].append(
        Reach(target: campaign.target, after: campaign.start(of: row.int(3)).after, end: row.int(1), began: row.int(2)))
    }
    return reach
  }

  /// The counters with a device in the audience.
  private func members(among counters: [Int64], of reach: Reach, _ app: [UInt8]) throws(RegistryError) -> Set<Int64> {
    guard let app = try store.knownApp(app) else { return [] }
    let audience = Self.audience(ofBroadcast: reach.target)
    if case .condition(let condition) = audience { return try members(among: counters, of: reach, condition, app) }
    guard let scope = try store.scope(of: audience, app) else { return [] }
    let sets: [SQLValue] = counters.flatMap {
      [.int($0), .int(reach.end), .int(reach.began), .int(reach.after), .int(scope.owner)]
    }
    let isReached = try store.session.ofEach(scope.isReached, sets) { _ in true }
    return Set(zip(counters, isReached).filter { $1 != nil }.map(\.0))
  }

  private func members(
    among counters: [Int64], of reach: Reach, _ condition: Condition, _ app: Int64
  ) throws(RegistryError) -> Set<Int64> {
    var bits: [Int64: UInt32] = [:]
    for (index, name) in condition.topics.enumerated() {
      if let topic = try store.knownTopic(name, app) { bits[topic] = 1 << UInt32(index) }
    }
    var subscribed: [Int64: (counter: Int64, topics: UInt32)] = [:]
    let sets: [SQLValue] = counters.flatMap { [.int($0), .int(reach.end), .int(reach.began), .int(reach.after)] }
    try store.session.runEach(SQL.topicsOfReached, sets) { place, row in
      subscribed[row.int(0), default: (counters[place], 0)].topics |= bits[row.int(1)] ?? 0
    }
    return Set(subscribed.values.filter { condition.matches($0.topics) }.map(\.counter))
  }

  private static func audience(ofBroadcast target: [UInt8]) -> Audience {
    if let audience = DeviceStore.audience(target) { return audience }
    // A request in the form of FCM v1 uses a topic's plain name.
    return (try? Condition.parse(target)).map { .condition($0) } ?? .topic(target)
  }
}

extension SQL {
  static let messageByKey = Statement("SELECT message, id FROM messages WHERE message BETWEEN ?1 AND ?2 LIMIT 1")
  static let userByID = Statement("SELECT name FROM users WHERE id = ?1")

  /// Each returns a row if it is new.
  static let noteReceived = note("received_at")
  static let noteRead = note("read_at")
  static let noteForced = Statement(
    "INSERT INTO notes (message, device, noted_at) VALUES (?1, ?2, ?3) ON CONFLICT (message, device) DO NOTHING RETURNING 1")
  private static func note(_ column: String) -> Statement {
    Statement(
      """
      INSERT INTO notes (message, device, noted_at, \(column)) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (message, device) DO UPDATE SET \(column) = excluded.\(column) WHERE notes.\(column) IS NULL RETURNING 1
      """)
  }
  static let noteTimes = Statement("SELECT received_at, read_at FROM notes WHERE message = ?1 AND device = ?2")
  static let countForCampaign = Statement(
    "UPDATE campaigns SET received = received + ?3, opened = opened + ?4 WHERE message_id = ?1 AND app = ?2")

  /// Returns the device's notes of the message, whether other devices of the application have counted it, whether the message
  /// is stored, and whether messages have changed the device's counter. The note of the lowest device is enough: a counting
  /// message is noted before it is sent. Notes of other applications with the same id are skipped, at most a hundred.
  static let traces = Statement(
    """
    SELECT n.badge, n.received_at, n.read_at, (
        SELECT o.badge FROM (SELECT device, badge FROM notes WHERE message = ?1 ORDER BY device LIMIT 100) o
        WHERE EXISTS (SELECT 1 FROM devices d WHERE d.id = o.device AND d.app = ?3)
          OR EXISTS (SELECT 1 FROM devices d WHERE d.counter = o.device AND d.app = ?3)
        ORDER BY o.device LIMIT 1),
      (SELECT m.message FROM messages m WHERE m.message = ?1), (SELECT b.counted FROM badges b WHERE b.device = ?2)
    FROM (SELECT 1) one LEFT JOIN notes n ON n.message = ?1 AND n.device = ?2
    """)
  /// A row for each chain: the end of its last opened page.
  static let reach = Statement(
    """
    SELECT c.target, COALESCE((
      SELECT p.page_end FROM campaign_pages p
      WHERE p.campaign = c.id AND p.page_end IS NOT NULL AND p.page BETWEEN h.chain * 4294967296 AND h.chain * 4294967296 + 4294967295
      ORDER BY p.page DESC LIMIT 1), 0),
      c.created_at, h.chain, c.chains, c.high_water, c.low_water
    FROM campaigns c JOIN (\(chainNumbers)) h ON h.chain < c.chains WHERE c.message_id = ?1 AND c.app = ?2
    """)
  private static let chainNumbers =
    (0..<CampaignDescription.mostChains).map { "SELECT \($0) AS chain" }.joined(separator: " UNION ALL ")
  /// The counter's devices without those that pages omit: gone devices, and for topics and whole applications also stale ones.
  private static let reachedOfFew = "\(ofCounter) AND d.id > ?4 AND d.id <= ?2 AND NOT (d.state = 2 AND d.gone_at <= ?3)"
  private static let reachedOfMany = "\(reachedOfFew) AND NOT (d.state = 3 AND COALESCE(d.marked_at, d.last_seen) <= ?3)"
  static let isReached = reached(reachedOfMany, "d.app = ?5")
  static let isReachedByTopic = reached(
    reachedOfMany, "EXISTS (SELECT 1 FROM members m WHERE m.topic = ?5 AND m.device = d.id)")
  static let isReachedByUser = reached(reachedOfFew, "d.user_id = ?5")
  static let isReachedByGroup = reached(
    reachedOfFew,
    """
    EXISTS (
      SELECT 1 FROM group_members g
      WHERE g.group_id = ?5 AND ((g.kind = 0 AND g.member = d.id) OR (g.kind = 1 AND g.member = d.user_id)))
    """)
  private static func reached(_ devices: String, _ isMember: String) -> Statement {
    Statement("SELECT d.id FROM devices d WHERE \(devices) AND \(isMember) LIMIT 1")
  }
  static let topicsOfReached = Statement(
    "SELECT d.id, m.topic FROM devices d LEFT JOIN members m ON m.device = d.id WHERE \(reachedOfMany)")
}
