import PushCore

extension SQLStore {
  func apply(_ changes: [RegistryChange], fence: Int64?, now: Int64) throws(RegistryError) -> [ChangeAnswer] {
    guard !changes.isEmpty else { return [] }
    do throws(RegistryError) {
      return try transaction(.devices) { () throws(RegistryError) in
        // Under the lock that a claim takes as well: whoever claims next finds all of this, or none of it comes to pass.
        if let fence, try session.firstInt(SQL.fence, []) != fence { throw .fenced }
        var answers: [ChangeAnswer] = []
        answers.reserveCapacity(changes.count)
        for change in changes { answers.append(try apply(change, now)) }
        return answers
      }
    } catch .refused(let why) {
      // The database itself refused a value of one of them and took the others back with it.
      guard changes.count > 1 else { return [.refused(.invalidParameters, reason: why)] }
      var answers: [ChangeAnswer] = []
      for change in changes { answers += try apply([change], fence: fence, now: now) }
      return answers
    }
  }

  func claimChanges() throws(RegistryError) -> Int64 {
    try transaction(.devices) { () throws(RegistryError) in
      try session.run(SQL.claimChanges, [])
      guard let fence = try session.firstInt(SQL.fence, []) else { throw .unusable(.broken, "change_fence has no row") }
      return fence
    }
  }

  /// One change, within a transaction. Every refusal comes before the first write.
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

  /// Nothing was ever registered for the app: every device and group it could name is unknown.
  private static func unknownAppAnswer(_ change: RegistryChange) -> ChangeAnswer {
    switch change {
    case .register, .unregister, .unregisterUser, .groupCreate, .repeated: .done
    case .subscribe(_, _, let references), .unsubscribe(_, _, let references):
      .results(references.map { $0 == .invalid ? .invalidArgument : .notFound })
    case .groupAdd, .groupRemove: .refused(.notificationKeyNotFound, reason: "notification_key: not a group of this app")
    case .groupJoin, .groupLeave: .refused(.groupNotFound, reason: "group: not a group of this app")
    }
  }

  /// The registration ends: no push reaches it any more, and its bindings go too. The row stays for a while, so that a send to it is
  /// told `NotRegistered`.
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
