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
}

extension SQL {
  static let fence = Statement("SELECT epoch FROM change_fence WHERE id = 1")
  static let claimChanges = Statement("UPDATE change_fence SET epoch = epoch + 1 WHERE id = 1")
  static let unregister = Statement(
    "UPDATE devices SET state = 2, reason = ?2, gone_at = ?3, user_id = NULL WHERE id = ?1")
  static let unbindUser = Statement("UPDATE devices SET user_id = NULL WHERE id = ?1")
  static let unbindRelatives = Statement(
    "UPDATE devices SET user_id = NULL WHERE id IN (\(relatives))")
  static let leaveTopics = Statement("DELETE FROM members WHERE device = ?1")
}
