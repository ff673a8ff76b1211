import PushCore

extension DeviceStore {
  /// Applies changes in order in one transaction: all are stored if it returns, none if it throws. A refused change has no
  /// effect.
  /// - Parameter fence: the number that the caller claimed; nil for changes that come from no queue.
  /// - Throws: `fenced` if another number has been claimed since.
  public func apply(_ changes: [RegistryChange], fence: Int64? = nil, now: Int64) throws(RegistryError) -> [ChangeAnswer] {
    guard !changes.isEmpty else { return [] }
    do throws(RegistryError) {
      return try transaction(.devices) { () throws(RegistryError) in
        // A claim takes the same lock. So the next claimant finds all of these changes, or none is made.
        if let fence, try session.firstInt(SQL.fence, []) != fence { throw .fenced }
        var answers: [ChangeAnswer] = []
        answers.reserveCapacity(changes.count)
        for change in changes { answers.append(try apply(change, now)) }
        return answers
      }
    } catch .refused(let why) {
      // The database refused a value of one change and rolled back the others.
      guard changes.count > 1 else { return [.refused(.invalidParameters, reason: why)] }
      var answers: [ChangeAnswer] = []
      for change in changes { answers += try apply([change], fence: fence, now: now) }
      return answers
    }
  }

  /// Claims the changes of the registry's queue. Changes with an earlier number are fenced from now on.
  public func claimChanges() throws(RegistryError) -> Int64 {
    try transaction(.devices) { () throws(RegistryError) in
      try session.run(SQL.claimChanges, [])
      guard let fence = try session.firstInt(SQL.fence, []) else { throw .unusable(.broken, "change_fence has no row") }
      return fence
    }
  }

  /// Applies one change in a transaction. Every refusal comes before the first write.
  func apply(_ change: RegistryChange, _ now: Int64) throws(RegistryError) -> ChangeAnswer {
    if case .register(let registration) = change { return try register(registration, now) }
    if case .repeated(let change) = change { return try applyAgain(change, now) }
    if case .groupCreate(let app, let name, let members) = change {
      return try createGroup(name, members, try makeApp(app), now)
    }
    guard let app = try knownApp(change.app) else { return Self.unknownAppAnswer(change) }
    switch change {
    case .register, .groupCreate, .repeated: return .done
    case .unregister(_, let reference):
      for device in try found(reference, app) { try unregister(device, now) }
      return .done
    case .unregisterUser(_, let reference):
      for device in try found(reference, app) {
        try session.run(SQL.unbindUser, [.int(device.id)])
        try session.run(SQL.unbindRelatives, [.int(device.id)])
      }
      return .done
    case .subscribe(_, let topic, let references): return try subscribe(references, topic, app)
    case .unsubscribe(_, let topic, let references): return try unsubscribe(references, topic, app)
    case .groupAdd(_, let key, let name, let members): return try changeGroup(key, name, members, app, adding: true)
    case .groupRemove(_, let key, let name, let members): return try changeGroup(key, name, members, app, adding: false)
    case .groupJoin(_, let group, let reference): return try moveUser(of: reference, group, app, joining: true)
    case .groupLeave(_, let group, let reference): return try moveUser(of: reference, group, app, joining: false)
    }
  }

  /// Nothing was ever registered for the app, so every device and group is unknown.
  private static func unknownAppAnswer(_ change: RegistryChange) -> ChangeAnswer {
    switch change {
    case .register, .unregister, .unregisterUser, .groupCreate, .repeated: .done
    case .subscribe(_, _, let references), .unsubscribe(_, _, let references):
      .results(references.map { $0 == .invalid ? .invalidArgument : .notFound })
    case .groupAdd, .groupRemove: .refused(.notificationKeyNotFound, reason: "notification_key: not a group of this app")
    case .groupJoin, .groupLeave: .refused(.groupNotFound, reason: "group: not a group of this app")
    }
  }

  /// Ends a registration and removes its bindings. The row is kept for a while, so that sends to it get `NotRegistered`.
  private func unregister(_ device: Found, _ now: Int64) throws(RegistryError) {
    try session.run(SQL.unregister, [.int(device.id), .text(Array("unregistered".utf8)), .int(now)])
    try session.run(SQL.leaveTopics, [.int(device.id)])
    try leaveGroups(device.id)
  }

  // MARK: Topics

  /// Creates the topic if it is new, even if no device is known: an empty topic differs from an unknown one.
  func subscribe(_ references: [DeviceReference], _ topic: [UInt8], _ app: Int64) throws(RegistryError) -> ChangeAnswer {
    let topicID = try makeTopic(topic, app)
    let devices = try found(references, app)
    var results = Self.outcomes(references, devices)
    let ids = Array(Set(devices.compactMap { $0?.state == .gone ? nil : $0?.id })).sorted()
    let counts = try session.ofEach(
      SQL.countOtherTopics, ids.flatMap { [.int($0), .int(topicID), .int(limits.topicsPerDevice)] }
    ) { $0.int(0) }
    let welcome = zip(ids, counts).filter { $1 ?? 0 < limits.topicsPerDevice }.map(\.0)
    try session.runEach(SQL.insertMember, welcome.flatMap { [.int(topicID), .int($0)] })
    try session.runEach(SQL.insertRelatives, welcome.flatMap { [.int($0), .int(topicID)] })
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
      try session.runEach(SQL.deleteMember, ids.flatMap { [.int(topicID), .int($0)] })
      try session.runEach(SQL.deleteRelatives, ids.flatMap { [.int($0), .int(topicID)] })
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
  static let fence = Statement("SELECT epoch FROM change_fence WHERE id = 1")
  static let claimChanges = Statement("UPDATE change_fence SET epoch = epoch + 1 WHERE id = 1")
  static let unregister = Statement("UPDATE devices SET state = 2, reason = ?2, gone_at = ?3, user_id = NULL WHERE id = ?1")
  static let unbindUser = Statement("UPDATE devices SET user_id = NULL WHERE id = ?1")
  static let unbindRelatives = Statement("UPDATE devices SET user_id = NULL WHERE id IN (\(relatives))")
  static let leaveTopics = Statement("DELETE FROM members WHERE device = ?1")
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
