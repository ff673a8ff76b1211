import PushCore

/// Checks whether a message was sent to the device that acknowledges it, as far as the registry knows (docs/send/registry.md).
extension DeviceStore {
  /// Removes messages that weren't sent to the device.
  func sent(
    _ messages: [Noted?], _ acknowledgements: [Acknowledgement], _ devices: [Found?]
  ) throws(RegistryError) -> [Noted?] {
    var sent = messages
    var asked: [(index: Int, isRead: Bool, values: [SQLValue])] = []
    for (index, acknowledgement) in acknowledgements.enumerated() {
      guard let message = messages[index], let device = devices[index], let event = acknowledgement.operation.event else {
        continue
      }
      let app = try knownApp(acknowledgement.app)
      asked.append((index, event == .read, [.int(message.key), .int(device.counter), .int(app)]))
    }
    var isBelieved = [Bool](repeating: false, count: asked.count)
    var ofSend: [AcknowledgedSend: [Int]] = [:]
    try session.runEach(SQL.traces, asked.map(\.values)) { place, row in
      let (index, isRead, _) = asked[place]
      let isNoted = !row.isNull(0) || !row.isNull(isRead ? 2 : 1)
      let countsElsewhere = !row.isNull(3)
      let (isKept, isCounting) = (!row.isNull(4), row.int(5) != 0)
      if isNoted {
        isBelieved[place] = true
      } else if !countsElsewhere, let message = messages[index] {
        isBelieved[place] = isKept || !(acknowledgements[index].isMessageKept || (isRead && isCounting))
        ofSend[AcknowledgedSend(app: acknowledgements[index].app, message: message.id), default: []].append(place)
      }
    }
    for (send, reaches) in try reach(of: ofSend.keys.map(\.self)) {
      let places = ofSend[send] ?? []
      let counters = Set(places.compactMap { devices[asked[$0].index]?.counter }).sorted()
      var members: Set<Int64> = []
      for reach in reaches { members.formUnion(try self.members(among: counters, of: reach, send.app)) }
      for place in places { isBelieved[place] = devices[asked[place].index].map { members.contains($0.counter) } ?? false }
    }
    for place in asked.indices where !isBelieved[place] { sent[asked[place].index] = nil }
    return sent
  }

  /// The audience of a broadcast, and the highest device number that it has reached.
  private struct Reach {
    let target: [UInt8]
    let end: Int64
    let began: Int64
  }

  private func reach(of sends: [AcknowledgedSend]) throws(RegistryError) -> [AcknowledgedSend: [Reach]] {
    var reach: [AcknowledgedSend: [Reach]] = [:]
    try session.runEach(SQL.reach, sends.map { [.blob($0.message), .text($0.app)] }) { place, row in
      reach[sends[place], default: []].append(Reach(target: row.bytes(0), end: row.int(1), began: row.int(2)))
    }
    return reach
  }

  /// The counters with a device in the audience.
  private func members(among counters: [Int64], of reach: Reach, _ app: [UInt8]) throws(RegistryError) -> Set<Int64> {
    guard let app = try knownApp(app) else { return [] }
    let audience = Self.audience(ofBroadcast: reach.target)
    if case .condition(let condition) = audience { return try members(among: counters, of: reach, condition, app) }
    guard let scope = try scope(of: audience, app) else { return [] }
    let sets: [[SQLValue]] = counters.map { [.int($0), .int(reach.end), .int(reach.began), .int(scope.owner)] }
    let isReached = try session.ofEach(scope.isReached, sets) { _ in true }
    return Set(zip(counters, isReached).filter { $1 != nil }.map(\.0))
  }

  private func members(
    among counters: [Int64], of reach: Reach, _ condition: Condition, _ app: Int64
  ) throws(RegistryError) -> Set<Int64> {
    var bits: [Int64: UInt32] = [:]
    for (index, name) in condition.topics.enumerated() {
      if let topic = try knownTopic(name, app) { bits[topic] = 1 << UInt32(index) }
    }
    var subscribed: [Int64: (counter: Int64, topics: UInt32)] = [:]
    try session.runEach(SQL.topicsOfReached, counters.map { [.int($0), .int(reach.end), .int(reach.began)] }) { place, row in
      subscribed[row.int(0), default: (counters[place], 0)].topics |= bits[row.int(1)] ?? 0
    }
    return Set(subscribed.values.filter { condition.matches($0.topics) }.map(\.counter))
  }

  private static func audience(ofBroadcast target: [UInt8]) -> Audience {
    if let audience = audience(target) { return audience }
    // A request in the form of FCM v1 uses a topic's plain name.
    return (try? Condition.parse(target)).map { .condition($0) } ?? .topic(target)
  }
}

extension SQL {
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
  static let reach = Statement(
    """
    SELECT c.target, COALESCE((
      SELECT p.page_end FROM campaign_pages p WHERE p.campaign = c.id AND p.page_end IS NOT NULL ORDER BY p.page DESC LIMIT 1), 0),
      c.created_at
    FROM campaigns c WHERE c.message_id = ?1 AND c.app = ?2
    """)
  /// The counter's devices without those that pages omit: gone devices, and for topics and whole applications also stale ones.
  private static let reachedOfFew = "\(ofCounter) AND d.id <= ?2 AND NOT (d.state = 2 AND d.gone_at <= ?3)"
  private static let reachedOfMany = "\(reachedOfFew) AND NOT (d.state = 3 AND COALESCE(d.marked_at, d.last_seen) <= ?3)"
  static let isReached = Statement("SELECT d.id FROM devices d WHERE \(reachedOfMany) AND d.app = ?4 LIMIT 1")
  static let isReachedByTopic = Statement(
    """
    SELECT d.id FROM devices d
    WHERE \(reachedOfMany) AND EXISTS (SELECT 1 FROM members m WHERE m.topic = ?4 AND m.device = d.id) LIMIT 1
    """)
  static let isReachedByUser = Statement("SELECT d.id FROM devices d WHERE \(reachedOfFew) AND d.user_id = ?4 LIMIT 1")
  static let isReachedByGroup = Statement(
    """
    SELECT d.id FROM devices d WHERE \(reachedOfFew) AND EXISTS (
      SELECT 1 FROM group_members g
      WHERE g.group_id = ?4 AND ((g.kind = 0 AND g.member = d.id) OR (g.kind = 1 AND g.member = d.user_id)))
    LIMIT 1
    """)
  static let topicsOfReached = Statement(
    """
    SELECT d.id, m.topic FROM devices d LEFT JOIN members m ON m.device = d.id WHERE \(reachedOfMany)
    """)
}
