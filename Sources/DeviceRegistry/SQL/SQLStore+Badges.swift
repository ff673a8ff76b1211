import PushCore

/// Badge counters: one for each device, or for each installation where several of its tokens are registered.
extension SQLStore {
  func countBadges(_ count: BadgeCount, now: Int64) throws(RegistryError) -> [Int64?] {
    var result = [Int64?](repeating: nil, count: count.devices.count)
    guard !count.devices.isEmpty, let app = try knownApp(count.app) else { return result }
    let message = MessageKey.of(count.messageID)
    if case .look = count.rule { return try lookAtBadges(of: count.devices, app, message) }
    try transaction(.notes) { () throws(RegistryError) -> Void in
      let counters = try counters(of: count.devices, app)
      var numbers: [Int64: Int64] = [:]
      let known = Array(Set(counters.compactMap(\.self))).sorted()
      try addNoted(of: known, message, to: &numbers)
      let new = known.filter { numbers[$0] == nil }
      if !new.isEmpty {
        var badges = try badges(of: new)
        for counter in new {
          switch count.rule {
          case .up: badges[counter] = min((badges[counter] ?? 0) + 1, SQL.highestBadge)
          case .set(let number): badges[counter] = number
          case .look: break
          }
        }
        try setBadges(badges, SQL.countBadge)
        try session.runEach(
          SQL.noteBadge, new.map { [.int(message), .int($0), .int(now), .int(badges[$0])] }
        ) { _, _ in }
        numbers.merge(badges) { $1 }
      }
      for (index, counter) in counters.enumerated() { result[index] = counter.flatMap { numbers[$0] } }
    }
    return result
  }

  private func lookAtBadges(
    of devices: [BadgeCount.Device], _ app: Int64, _ message: Int64
  ) throws(RegistryError) -> [Int64?] {
    let counters = try counters(of: devices, app)
    let known = Array(Set(counters.compactMap(\.self))).sorted()
    var numbers = try badges(of: known).mapValues { min($0 + 1, SQL.highestBadge) }
    try addNoted(of: known, message, to: &numbers)
    return counters.map { counter in counter.map { numbers[$0] ?? 1 } }
  }

  /// What devices took when the message counted.
  private func addNoted(
    of counters: [Int64], _ message: Int64, to numbers: inout [Int64: Int64]
  ) throws(RegistryError) {
    guard !counters.isEmpty else { return }
    var noted: [(Int64, Int64)] = []
    try session.runEach(SQL.notedBadge, counters.map { [.int(message), .int($0)] }) { index, row in
      noted.append((counters[index], row.int(0)))
    }
    for (counter, badge) in noted { numbers[counter] = badge }
  }

  private func counters(of devices: [BadgeCount.Device], _ app: Int64) throws(RegistryError) -> [Int64?] {
    var counters = [Int64?](repeating: nil, count: devices.count)
    var byNumber: [(Int, [SQLValue])] = []
    var byToken: [(Int, [SQLValue])] = []
    for (index, device) in devices.enumerated() {
      switch device {
      case .number(let id): byNumber.append((index, [.int(id)]))
      case .token(let platform, let token):
        byToken.append((index, [.int(app), .int(Int64(platform.rawValue)), .blob(token)]))
      }
    }
    func find(_ statement: Statement, _ asked: [(Int, [SQLValue])]) throws(RegistryError) {
      guard !asked.isEmpty else { return }
      try session.runEach(statement, asked.map(\.1)) { index, row in counters[asked[index].0] = row.int(0) }
    }
    try find(SQL.counterByNumber, byNumber)
    try find(SQL.counterByToken, byToken)
    try find(SQL.counterByReplacedToken, byToken.filter { counters[$0.0] == nil })
    return counters
  }

  /// Those that are not 0, by the counter's device.
  func badges(of counters: [Int64]) throws(RegistryError) -> [Int64: Int64] {
    var badges: [Int64: Int64] = [:]
    guard !counters.isEmpty else { return badges }
    let ids = Array(Set(counters)).sorted()
    try session.runEach(SQL.badge, ids.map { [.int($0)] }) { index, row in badges[ids[index]] = row.int(0) }
    return badges
  }

  func setBadges(_ badges: [Int64: Int64], _ statement: Statement = SQL.setBadge) throws(RegistryError) {
    guard !badges.isEmpty else { return }
    try session.runEach(statement, badges.sorted { $0.key < $1.key }.map { [.int($0.key), .int($0.value)] }) { _, _ in }
  }
}

extension SQL {
  /// What APNs takes.
  static let highestBadge = Int64(Int32.max)
  static let counterByNumber = Statement("SELECT \(counterOfDevice) FROM devices d WHERE d.id = ?1")
  static let counterByToken = Statement(
    "SELECT \(counterOfDevice) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
  /// A push that was on its way to a token counts for the device that has another one by now.
  static let counterByReplacedToken = Statement("SELECT \(counterOfDevice) \(byReplacedToken)")
  static let badge = Statement("SELECT badge FROM badges WHERE device = ?1")
  static let setBadge = Statement(
    "INSERT INTO badges (device, badge) VALUES (?1, ?2) ON CONFLICT (device) DO UPDATE SET badge = excluded.badge")
  /// A message has moved it.
  static let countBadge = Statement(
    """
    INSERT INTO badges (device, badge, counted) VALUES (?1, ?2, 1)
    ON CONFLICT (device) DO UPDATE SET badge = excluded.badge, counted = 1
    """)
  static let notedBadge = Statement("SELECT badge FROM notes WHERE message = ?1 AND device = ?2 AND badge IS NOT NULL")
  static let noteBadge = Statement(
    """
    INSERT INTO notes (message, device, noted_at, badge) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (message, device) DO UPDATE SET badge = excluded.badge
    """)
}
