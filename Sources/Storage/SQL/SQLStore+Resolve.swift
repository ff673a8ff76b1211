import PushCore

/// From names to devices, for delivery.
extension SQLStore {
  func resolve(_ registrations: [[UInt8]], app: [UInt8]) throws(StoreError) -> Resolution {
    try session.reading { () throws(StoreError) in try resolveNow(registrations, app) }
  }

  private func resolveNow(_ registrations: [[UInt8]], _ app: [UInt8]) throws(StoreError) -> Resolution {
    var resolution = Resolution()
    resolution.entries = [ResolvedRegistration](repeating: .unknown, count: registrations.count)
    let name = app
    guard let app = try knownApp(app) else { return resolution }

    let keys = registrations.map { RegistryKey($0, .registration) }
    var devices = DeviceRows()
    var indexOf: [Int64: Int] = [:]
    try session.runForIDs(SQL.devicesOfApp, Array(Set(keys.compactMap { $0?.id })).sorted()) { row in
      guard row.int(8) == app else { return }
      indexOf[row.int(DeviceColumn.id)] = devices.count
      devices.append(row)
    }

    var older: [(Int, [SQLValue])] = []
    for (index, key) in keys.enumerated() {
      guard let key else { continue }
      if let at = indexOf[key.id], devices[at].salt == key.salt {
        resolution.entries[index] = .device(at, isCanonical: true)
      } else {
        older.append((index, [.int(key.id), .int(key.salt)]))
      }
    }
    if !older.isEmpty {
      var targets: [(Int, Int64)] = []
      try session.runEach(SQL.aliasTarget, older.map(\.1)) { index, row in targets.append((older[index].0, row.int(0))) }
      let missing = Set(targets.map(\.1)).filter { indexOf[$0] == nil }.sorted()
      try session.runForIDs(SQL.devicesOfApp, missing) { row in
        guard row.int(8) == app else { return }
        indexOf[row.int(DeviceColumn.id)] = devices.count
        devices.append(row)
      }
      for (index, id) in targets {
        if let at = indexOf[id] { resolution.entries[index] = .device(at, isCanonical: false) }
      }
    }
    for (index, key) in keys.enumerated() where key == nil {
      guard let audience = Self.audience(registrations[index]) else { continue }
      let page = try readPage(audience, name, 0, .max, ResolvedRegistration.mostDevices)
      var found: [Int] = []
      for row in page.devices.rows.indices where page.isLast {
        let id = page.devices[row].id
        if indexOf[id] == nil {
          indexOf[id] = devices.count
          devices.append(row, of: page.devices)
        }
        found.append(indexOf[id] ?? 0)
      }
      resolution.entries[index] = .devices(found)
    }
    resolution.devices = devices
    return resolution
  }

  /// The user, device group or topic that a text names as a target.
  private static func audience(_ text: [UInt8]) -> Audience? {
    switch Target.classify(text) {
    case .success(.user(let id)): .user(id)
    case .success(.group(let key)): .group(key)
    case .success(.topic(let name)): .topic(name)
    default: nil
    }
  }

  func find(_ tokens: [(platform: Platform, token: [UInt8])], app: [UInt8]) throws(StoreError) -> DeviceRows {
    var devices = DeviceRows()
    guard let app = try knownApp(app) else { return devices }
    try session.reading { () throws(StoreError) in
      try session.runEach(
        SQL.rowByToken, tokens.map { [.int(app), .int(Int64($0.platform.rawValue)), .blob($0.token)] }
      ) { _, row in devices.append(row) }
    }
    return devices
  }
}

extension SQL {
  static let devicesOfApp = Statement(
    "SELECT \(DeviceColumn.list), d.app FROM devices d WHERE d.id = ?1",
    postgres: "SELECT \(DeviceColumn.list), d.app FROM devices d WHERE d.id = ANY(?1::bigint[]) ORDER BY d.id")
  static let aliasTarget = Statement("SELECT device FROM aliases WHERE id = ?1 AND salt = ?2")
  static let rowByToken = Statement(
    "SELECT \(DeviceColumn.list) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
}
