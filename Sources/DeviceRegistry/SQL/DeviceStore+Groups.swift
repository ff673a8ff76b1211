import PushCore

/// Device groups, as in GCM, and user groups, which follow their users from device to device.
extension DeviceStore {
  enum GroupKind: Int64 {
    case devices = 0
    case users = 1
  }

  struct Group {
    let key: RegistryKey
    let name: [UInt8]
    let kind: GroupKind
    let createdAt: Int64
  }

  func createGroup(
    _ name: [UInt8], _ members: GroupMembers, _ app: Int64, _ now: Int64
  ) throws(RegistryError) -> ChangeAnswer {
    if try readGroup(.name(name), app) != nil {
      return .refused(.notificationKeyExists, reason: "notification_key_name: the app has a group of this name")
    }
    let found = try resolveMembers(members, app, adding: true)
    if found.kind == .devices, found.ids.isEmpty {
      return .refused(.noValidRegistrationIDs, reason: "registration_ids: none of them is registered for this app")
    }
    if let refusal = tooMany(found.kind, found.ids.count + found.newUsers.count) { return refusal }
    let salt = makeSalt()
    let id = try session.insert(
      SQL.insertGroup, [.int(salt), .int(app), .text(name), .int(found.kind.rawValue), .int(now)])
    try insert(found, app, into: id)
    return .notificationKey(RegistryKey(id: id, salt: salt).notificationKey, failed: found.failed)
  }

  func changeGroup(
    _ key: [UInt8], _ name: [UInt8]?, _ members: GroupMembers, _ app: Int64, adding: Bool
  ) throws(RegistryError) -> ChangeAnswer {
    guard let group = try readGroup(.key(key), app) else {
      return .refused(.notificationKeyNotFound, reason: "notification_key: not a group of this app")
    }
    if let name, name != group.name {
      return .refused(.nameMismatch, reason: "notification_key_name: not the name of this notification_key")
    }
    let found = try resolveMembers(members, app, adding: adding)
    guard found.kind == group.kind else {
      return .refused(
        .invalidParameters,
        reason: group.kind == .users
          ? "registration_ids: the group's members are users: name them in users, or with --users"
          : "users: the group's members are devices")
    }
    if found.ids.isEmpty, found.kind == .devices {
      return .refused(.noValidRegistrationIDs, reason: "registration_ids: none of them is registered for this app")
    }
    if adding {
      let others = try present(in: group).union(found.ids).count
      if let refusal = tooMany(found.kind, others + found.newUsers.count) { return refusal }
      try insert(found, app, into: group.key.id)
    } else {
      try session.runEach(
        SQL.deleteGroupMember, found.ids.flatMap { [.int(group.key.id), .int(found.kind.rawValue), .int($0)] })
      try session.run(SQL.deleteEmptyGroup, [.int(group.key.id)])
    }
    return .notificationKey(key, failed: found.failed)
  }

  /// Applies a change that may have been applied before. A created group with the same members is the answer again. A missing
  /// group lost its last member in the first removal. All other changes are simply applied again.
  func applyAgain(_ change: RegistryChange, _ now: Int64) throws(RegistryError) -> ChangeAnswer {
    let answer = try apply(change, now)
    switch (change, answer) {
    case (.register(let asked), .registration(let registration)) where asked.installation != nil:
      let replaced = try replacedBefore(by: asked, registration, besides: [])
      return replaced.isEmpty ? answer : .moved(registration, replaced)
    // Later changes were applied too and will be repeated. The answer begins with the tokens that this one replaced first.
    case (.register(let asked), .moved(let registration, let replaced)):
      let before = try replacedBefore(by: asked, registration, besides: replaced.first?.token ?? [])
      return .moved(registration, before + replaced)
    case (.groupCreate(let app, let name, let members), .refused(.notificationKeyExists, _)):
      guard let app = try knownApp(app), let group = try readGroup(.name(name), app) else { return answer }
      let asked = try resolveMembers(members, app, adding: true)
      guard asked.kind == group.kind, asked.newUsers.isEmpty, try present(in: group) == Set(asked.ids) else { return answer }
      return .notificationKey(group.key.notificationKey, failed: asked.failed)
    case (.groupRemove(_, let key, _, .devices), .refused(.notificationKeyNotFound, _)) where RegistryKey(key, .group) != nil:
      return .notificationKey(key, failed: [])
    default: return answer
    }
  }

  /// Adds the user of a device to a user group, or removes the user (UP-07 … UP-10).
  func moveUser(
    of reference: DeviceReference, _ groupReference: GroupReference, _ app: Int64, joining: Bool
  ) throws(RegistryError) -> ChangeAnswer {
    guard let group = try readGroup(groupReference, app), group.kind == .users else {
      return .refused(.groupNotFound, reason: "group: not a group of users of this app")
    }
    guard let device = try found(reference, app).first(where: { $0.state != .gone }) else {
      return .refused(.notRegistered, reason: "no such device is registered")
    }
    guard let user = device.user else { return .refused(.noUser, reason: "the device has no user") }
    if joining {
      let others = try session.firstInt(SQL.countOtherMembers, [.int(group.key.id), .int(1), .int(user)]) ?? 0
      if let refusal = tooMany(.users, Int(others) + 1) { return refusal }
      try insert(Members(kind: .users, ids: [user]), app, into: group.key.id)
    } else {
      try session.run(SQL.deleteGroupMember, [.int(group.key.id), .int(1), .int(user)])
    }
    return .notificationKey(group.key.notificationKey, failed: [])
  }

  /// Removes a device from its groups. An empty device group is deleted.
  func leaveGroups(_ device: Int64) throws(RegistryError) {
    let groups = try session.ints(SQL.groupsOfDevice, [.int(device)])
    guard !groups.isEmpty else { return }
    try session.run(SQL.leaveDeviceGroups, [.int(device)])
    for group in groups { try session.run(SQL.deleteEmptyGroup, [.int(group)]) }
  }

  func readGroup(_ reference: GroupReference, _ app: Int64) throws(RegistryError) -> Group? {
    let (statement, values): (Statement, [SQLValue])
    switch reference {
    case .name(let name): (statement, values) = (SQL.groupByName, [.int(app), .text(name)])
    case .key(let text):
      guard let key = RegistryKey(text, .group) else { return nil }
      (statement, values) = (SQL.groupByKey, [.int(key.id), .int(key.salt), .int(app)])
    }
    return try session.first(statement, values) { row in
      Group(key: row.key(), name: row.bytes(2), kind: GroupKind(rawValue: row.int(3)) ?? .devices, createdAt: row.int(4))
    }
  }

  private func present(in group: Group) throws(RegistryError) -> Set<Int64> {
    Set(try session.ints(SQL.groupMemberIDs, [.int(group.key.id), .int(group.kind.rawValue)]))
  }

  public func group(_ reference: GroupReference, app: [UInt8]) throws(RegistryError) -> GroupRecord? {
    guard let app = try knownApp(app), let group = try readGroup(reference, app) else { return nil }
    let id = [SQLValue.int(group.key.id)]
    return GroupRecord(
      notificationKey: group.key.notificationKey, name: group.name,
      devices: group.kind == .devices ? try session.all(SQL.groupDevices, id) { $0.key().registration } : [],
      users: group.kind == .users ? try session.all(SQL.groupUsers, id) { $0.bytes(0) } : nil, createdAt: group.createdAt)
  }

  private struct Members {
    var kind: GroupKind
    var ids: [Int64] = []
    var newUsers: [[UInt8]] = []
    var failed: [Int] = []
  }

  /// To be added, a device must not be gone; a user may be new.
  private func resolveMembers(_ members: GroupMembers, _ app: Int64, adding: Bool) throws(RegistryError) -> Members {
    switch members {
    case .devices(let references):
      var found = Members(kind: .devices)
      for (index, device) in try self.found(references, app).enumerated() {
        guard let device, !adding || device.state != .gone else {
          found.failed.append(index)
          continue
        }
        if !found.ids.contains(device.id) { found.ids.append(device.id) }
      }
      return found
    case .users(let names):
      var found = Members(kind: .users)
      var seen: Set<[UInt8]> = []
      for (index, name) in names.enumerated() where seen.insert(name).inserted {
        if let id = try knownUser(name, app) {
          found.ids.append(id)
        } else if adding {
          found.newUsers.append(name)
        } else {
          found.failed.append(index)
        }
      }
      return found
    }
  }

  private func tooMany(_ kind: GroupKind, _ count: Int) -> ChangeAnswer? {
    let most = kind == .devices ? limits.groupMembers : limits.groupUsers
    guard count > most else { return nil }
    return .refused(.tooManyMembers, reason: "a group has at most \(most) members")
  }

  private func insert(_ members: Members, _ app: Int64, into group: Int64) throws(RegistryError) {
    var ids = members.ids
    for name in members.newUsers { ids.append(try makeUser(name, nil, app, known: nil)) }
    let sets: [SQLValue] = ids.flatMap { [.int(group), .int(members.kind.rawValue), .int($0)] }
    try session.runEach(SQL.insertGroupMember, sets)
  }
}

extension SQL {
  private static let groupQuery = "SELECT id, salt, name, kind, created_at FROM device_groups"
  static let groupByName = Statement("\(groupQuery) WHERE app = ?1 AND name = ?2")
  static let groupByKey = Statement("\(groupQuery) WHERE id = ?1 AND salt = ?2 AND app = ?3")
  static let insertGroup = Statement(
    insert: "INSERT INTO device_groups (salt, app, name, kind, created_at) VALUES (?1, ?2, ?3, ?4, ?5)")
  static let insertGroupMember = Statement(
    "INSERT INTO group_members (group_id, kind, member) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING")
  static let deleteGroupMember = Statement("DELETE FROM group_members WHERE group_id = ?1 AND kind = ?2 AND member = ?3")
  static let groupMemberIDs = Statement("SELECT member FROM group_members WHERE group_id = ?1 AND kind = ?2")
  static let countOtherMembers = Statement(
    "SELECT count(*) FROM group_members WHERE group_id = ?1 AND kind = ?2 AND member <> ?3")
  static let deleteEmptyGroup = Statement(
    """
    DELETE FROM device_groups WHERE id = ?1 AND kind = 0
      AND NOT EXISTS (SELECT 1 FROM group_members m WHERE m.group_id = device_groups.id)
    """)
  static let groupsOfDevice = Statement("SELECT group_id FROM group_members WHERE kind = 0 AND member = ?1")
  static let leaveDeviceGroups = Statement("DELETE FROM group_members WHERE kind = 0 AND member = ?1")
  static let groupDevices = Statement(
    "SELECT d.id, d.salt FROM group_members m JOIN devices d ON d.id = m.member WHERE m.group_id = ?1 AND m.kind = 0 ORDER BY d.id"
  )
  static let groupUsers = Statement(
    "SELECT u.name FROM group_members m JOIN users u ON u.id = m.member WHERE m.group_id = ?1 AND m.kind = 1 ORDER BY u.name")
}
