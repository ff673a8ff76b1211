import PushCore

extension SQLStore {
  /// Makes the topic when it is new, even where none of the devices is known: a topic without members is not an unknown one.
  func subscribe(_ references: [DeviceReference], _ topic: [UInt8], _ app: Int64) throws(RegistryError) -> ChangeAnswer {
    let topicID = try makeTopic(topic, app)
    let devices = try found(references, app)
    var results = Self.outcomes(references, devices)
    let ids = Array(Set(devices.compactMap { $0?.state == .gone ? nil : $0?.id })).sorted()
    var counts: [Int64: Int64] = [:]
    try session.runEach(SQL.countOtherTopics, ids.map { [.int($0), .int(topicID), .int(Int64(limits.topicsPerDevice))] }) {
      index, row in counts[ids[index]] = row.int(0)
    }
    let welcome = ids.filter { counts[$0, default: 0] < Int64(limits.topicsPerDevice) }
    try session.runEach(SQL.insertMember, welcome.map { [.int(topicID), .int($0)] }) { _, _ in }
    try session.runEach(SQL.insertRelatives, welcome.map { [.int($0), .int(topicID)] }) { _, _ in }
    for (index, device) in devices.enumerated() {
      if let device, results[index] == nil, counts[device.id, default: 0] >= Int64(limits.topicsPerDevice) {
        results[index] = .tooManyTopics
      }
    }
    return .results(results)
  }

  /// A device that isn't a member is no error: the caller's wish is fulfilled.
  func unsubscribe(_ references: [DeviceReference], _ topic: [UInt8], _ app: Int64) throws(RegistryError) -> ChangeAnswer {
    let devices = try found(references, app)
    if let topicID = try knownTopic(topic, app) {
      let ids = devices.compactMap { $0?.id }
      try session.runEach(SQL.deleteMember, ids.map { [.int(topicID), .int($0)] }) { _, _ in }
      try session.runEach(SQL.deleteRelatives, ids.map { [.int($0), .int(topicID)] }) { _, _ in }
    }
    return .results(Self.outcomes(references, devices))
  }

  private static func outcomes(_ references: [DeviceReference], _ devices: [Found?]) -> [SubscriptionError?] {
    references.indices.map { index in
      if references[index] == .invalid { return .invalidArgument }
      guard let device = devices[index], device.state != .gone else { return .notFound }
      return nil
    }
  }

  func topics(app: [UInt8], after name: [UInt8], limit: Int) throws(RegistryError) -> [TopicRecord] {
    guard let app = try knownApp(app) else { return [] }
    var names: [(Int64, [UInt8])] = []
    try session.run(SQL.topicsByName, [.int(app), .text(name), .int(Int64(limit))]) { row in
      names.append((row.int(0), row.bytes(1)))
    }
    var records: [TopicRecord] = []
    for (id, name) in names {
      records.append(TopicRecord(name: name, members: try session.firstInt(SQL.countMembers, [.int(id)]) ?? 0))
    }
    return records
  }
}

extension SQL {
  static let countOtherTopics = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM members WHERE device = ?1 AND topic <> ?2 LIMIT ?3) m")
  static let deleteMember = Statement("DELETE FROM members WHERE topic = ?1 AND device = ?2")
  /// The tokens of other kinds of the installation whose alert token a device is.
  static let relatives =
    """
    SELECT s.id FROM devices o JOIN devices s ON s.app = o.app AND s.installation = o.installation AND s.sender = o.sender
      AND s.kind <> 0
    WHERE o.id = ?1 AND o.kind = 0
    """
  static let insertRelatives = Statement(
    "INSERT INTO members (topic, device) SELECT CAST(?2 AS BIGINT), r.id FROM (\(relatives)) r WHERE 1 = 1 ON CONFLICT DO NOTHING"
  )
  static let deleteRelatives = Statement("DELETE FROM members WHERE topic = ?2 AND device IN (\(relatives))")
  static let topicsByName = Statement("SELECT id, name FROM topics WHERE app = ?1 AND name > ?2 ORDER BY name LIMIT ?3")
  static let countMembers = Statement(
    "SELECT count(*) FROM members m JOIN devices d ON d.id = m.device WHERE m.topic = ?1 AND d.state <> 2")
}
