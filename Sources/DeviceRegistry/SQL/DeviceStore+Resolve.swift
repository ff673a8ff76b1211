import PushCore

extension DeviceStore {
  /// The devices of registrations, for any number of apps. Gone devices are included with their state.
  public func resolve(_ lookUps: [LookUp]) throws(RegistryError) -> Resolution {
    try session.reading { () throws(RegistryError) in try resolveNow(lookUps) }
  }

  private func resolveNow(_ lookUps: [LookUp]) throws(RegistryError) -> Resolution {
    var resolution = Resolution()
    resolution.entries = [ResolvedRegistration](repeating: .unknown, count: lookUps.count)
    var apps: [[UInt8]: Int64] = [:]
    for name in Set(lookUps.map(\.app)) { apps[name] = try knownApp(name) }
    guard !apps.isEmpty else { return resolution }

    let keys = lookUps.map { apps[$0.app] == nil ? nil : RegistryKey($0.registration, .registration) }
    var devices = DeviceRows()
    var found: [Int64: (row: Int, app: Int64)] = [:]
    func read(_ ids: [Int64]) throws(RegistryError) {
      let missing = Set(ids).filter { found[$0] == nil }.sorted()
      try session.runEach(SQL.devicesWithApp, missing.map { .int($0) }) { _, row in
        found[row.int(0)] = (devices.count, row.int(10))
        devices.append(row)
      }
    }
    try read(keys.compactMap { $0?.id })

    var older: [Asked] = []
    for (index, key) in keys.enumerated() {
      guard let key else { continue }
      if let (row, app) = found[key.id], devices[row].salt == key.salt, app == apps[lookUps[index].app] {
        resolution.entries[index] = .device(row, isCanonical: true)
      } else {
        older.append((index, [.int(key.id), .int(key.salt)]))
      }
    }
    let targets = try session.ofEach(SQL.aliasTarget, older.flatMap(\.values)) { $0.int(0) }
    try read(targets.compactMap(\.self))
    for ((index, _), id) in zip(older, targets) {
      guard let id, let (row, app) = found[id], app == apps[lookUps[index].app] else { continue }
      resolution.entries[index] = .device(row, isCanonical: false)
    }
    for (index, key) in keys.enumerated() where key == nil {
      guard let app = apps[lookUps[index].app], let audience = Self.audience(of: lookUps[index]) else { continue }
      let page = try page(
        of: audience, kind: lookUps[index].kind ?? .alert, app: lookUps[index].app, after: 0, upTo: .max,
        limit: ResolvedRegistration.mostDevices)
      var members: [Int] = []
      for row in page.devices.rows.indices where page.isLast {
        let id = page.devices[row].id
        let at = found[id]?.row ?? devices.count
        if at == devices.count {
          found[id] = (at, app)
          devices.append(row, of: page.devices)
        }
        members.append(at)
      }
      resolution.entries[index] = .devices(members)
    }
    for (index, entry) in resolution.entries.enumerated() {
      guard let kind = lookUps[index].kind, case .device(let row, _) = entry, !devices[row].isMeant(by: kind) else { continue }
      var others: [Int] = []
      try session.run(SQL.devicesOfInstallation, [.int(devices[row].id), .int(kind)]) { row in
        others.append(devices.count)
        devices.append(row)
      }
      resolution.entries[index] = .devices(others)
    }
    resolution.devices = devices
    return resolution
  }

  /// The owners of devices; unregistered devices are missing in the result.
  public func owners(of ids: [Int64]) throws(RegistryError) -> [Int64: DeviceOwner] {
    try session.byNumber(SQL.deviceOwners, ids) { row in
      DeviceOwner(installation: row.optionalBytes(0), user: row.optionalBytes(1))
    }
  }

  /// The user id in a look-up is already unescaped.
  private static func audience(of lookUp: LookUp) -> Audience? {
    let prefix = Array("/users/".utf8)
    guard lookUp.registration.starts(with: prefix) else { return audience(lookUp.registration) }
    return .user(Array(lookUp.registration.dropFirst(prefix.count)))
  }

  /// The user, device group, topic or application that a target text names.
  static func audience(_ text: [UInt8]) -> Audience? {
    switch Target.classify(text) {
    case .success(.user(let id)): .user(id)
    case .success(.group(let key)): .group(key)
    case .success(.topic(let name)): .topic(name)
    case .success(.all): .all
    default: nil
    }
  }
}

extension SQL {
  static let devicesWithApp = Statement(rows: "\(deviceColumns), d.app", from: "devices d WHERE d.id = ?1", .int)
  /// The devices of another kind in the same installation; the latest if there are many.
  static let devicesOfInstallation = Statement(
    """
    SELECT \(deviceColumns) FROM devices d WHERE d.id IN (
      SELECT x.id FROM devices o JOIN devices x ON x.app = o.app AND x.installation = o.installation
        AND x.sender = o.sender AND x.kind = ?2
      WHERE o.id = ?1 AND x.state <> 2 ORDER BY x.last_seen DESC, x.id DESC LIMIT 100)
    ORDER BY d.id
    """)
  static let deviceOwners = Statement(
    rows: "d.installation, u.name", from: "devices d LEFT JOIN users u ON u.id = d.user_id WHERE d.id = ?1", .int)
  static let aliasTarget = Statement("SELECT device FROM aliases WHERE id = ?1 AND salt = ?2")
}
