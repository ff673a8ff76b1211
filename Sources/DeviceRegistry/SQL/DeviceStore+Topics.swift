import PushCore

extension DeviceStore {
  /// Creates the topic if it is new, even if no device is known: an empty topic differs from an unknown one.
  func subscribe(_ references: [DeviceReference], _ topic: [UInt8], _ app: Int64) throws(RegistryError) -> ChangeAnswer {
    let topicID = try makeTopic(topic, app)
    let devices = try found(references, app)
    var results = Self.outcomes(references, devices)
    let ids = Array(Set(devices.compactMap { $0?.state == .gone ? nil : $0?.id })).sorted()
    let counts = try session.ofEach(
      SQL.countOtherTopics, ids.map { [.int($0), .int(topicID), .int(limits.topicsPerDevice)] }
    ) { $0.int(0) }
    let welcome = zip(ids, counts).filter { $1 ?? 0 < limits.topicsPerDevice }.map(\.0)
    try session.runEach(SQL.insertMember, welcome.map { [.int(topicID), .int($0)] })
    try session.runEach(SQL.insertRelatives, welcome.map { [.int($0), .int(topicID)] })
    for (index, device) in devices.enumerated() {
      if let device, results[index] == nil, !welcome.contains(device.id) { results[index] = .tooManyTopics }
    }
    return .results(results)
  }

  /// Devices that aren't members cause no error.
  func unsubscribe(_ references: [DeviceReference], _ topic: [UInt8], _ app: Int64) throws(RegistryError) -> ChangeAnswer {
    let devices = try found(references, app)
    if let topicID = try knownTopic(topic, app) {
      let ids = devices.compactMap { $0?.id }
      try session.runEach(SQL.deleteMember, ids.map { [.int(topicID), .int($0)] })
      try session.runEach(SQL.deleteRelatives, ids.map { [.int($0), .int(topicID)] })
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

  /// Topics in the byte order of their names.
  public func topics(app: [UInt8], after name: [UInt8], limit: Int) throws(RegistryError) -> [TopicRecord] {
    guard let app = try knownApp(app) else { return [] }
    return try session.all(SQL.topicsByName, [.int(app), .text(name), .int(limit)]) { row in
      TopicRecord(name: row.bytes(0), members: row.int(1))
    }
  }
}

extension SQL {
  static let countOtherTopics = Statement(
    "SELECT count(*) FROM (SELECT 1 FROM members WHERE device = ?1 AND topic <> ?2 LIMIT ?3) m")
  static let deleteMember = Statement("DELETE FROM members WHERE topic = ?1 AND device = ?2")
  /// The tokens of other kinds in the installation of an alert token.
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
  static let topicsByName = Statement(
    """
    SELECT t.name, (SELECT count(*) FROM members m JOIN devices d ON d.id = m.device WHERE m.topic = t.id AND d.state <> 2)
    FROM topics t WHERE t.app = ?1 AND t.name > ?2 ORDER BY t.name LIMIT ?3
    """)
}
