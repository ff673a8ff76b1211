import PushCore

struct BadgeTally {
  /// A device with a counter.
  struct Device {
    let message: Int64
    let counter: Int64
    /// The badge that the message already has on it; nil if it hasn't been counted.
    let taken: Int64?
    let badge: Int64
    let rule: BadgeCount.Rule
    let now: Int64
    /// Its place in ``BadgeTally/numbers``.
    let count: Int
    let index: Int
  }

  var devices: [Device] = []
  var apps: [Int64] = []
  var numbers: [[Int64?]] = []

  var isWriting: Bool { devices.contains { $0.rule != .look } }
}

/// Badge counters: one per device, or one per installation with several registered tokens.
extension DeviceStore {
  func tally(_ counts: [Placed<BadgeCount>]) throws(RegistryError) -> BadgeTally {
    var tally = BadgeTally()
    tally.numbers = counts.map { $0.content.devices.map { _ in Int64?.none } }
    var byNumber: [Question] = []
    var byToken: [Question] = []
    var subscriptions: [(count: Int, index: Int, message: Int64, key: TokenKey)] = []
    var last: (name: [UInt8], number: Int64?) = ([], nil)
    for (count, asked) in counts.enumerated() {
      if last.name != asked.content.app { last = (asked.content.app, try knownApp(asked.content.app)) }
      guard let app = last.number else { continue }
      if tally.apps.last != app, !tally.apps.contains(app) { tally.apps.append(app) }
      let message = MessageKey.of(asked.content.messageID)
      for (index, device) in asked.content.devices.enumerated() {
        switch device {
        case .number(let id): byNumber.append((count, index, message, [.int(id), .int(message)]))
        case .token(.webpush, let token):
          subscriptions.append((count, index, message, TokenKey(app: app, platform: .webpush, token: token)))
        case .token(let platform, let token):
          byToken.append((count, index, message, [.int(app), .int(platform), .blob(token), .int(message)]))
        }
      }
    }
    if !subscriptions.isEmpty {
      for (asked, key) in zip(subscriptions, try stored(subscriptions.map(\.key))) {
        byToken.append((asked.count, asked.index, asked.message, key.values + [.int(asked.message)]))
      }
    }
    _ = try find(SQL.counterByNumber, byNumber, counts, &tally)
    let replaced = try find(SQL.counterByToken, byToken, counts, &tally)
    _ = try find(SQL.counterByReplacedToken, replaced, counts, &tally)
    return tally
  }

  private typealias Question = (count: Int, index: Int, message: Int64, values: [SQLValue])

  /// - Returns: those without a counter.
  private func find(
    _ statement: Statement, _ asked: [Question], _ counts: [Placed<BadgeCount>], _ tally: inout BadgeTally
  ) throws(RegistryError) -> [Question] {
    let found = try session.ofEach(statement, asked.map(\.values)) { ($0.int(0), $0.optionalInt(1), $0.int(2)) }
    for (asked, found) in zip(asked, found) {
      guard let (counter, taken, badge) = found else { continue }
      tally.devices.append(
        .init(
          message: asked.message, counter: counter, taken: taken, badge: badge, rule: counts[asked.count].content.rule,
          now: counts[asked.count].now, count: asked.count, index: asked.index))
    }
    return zip(asked, found).filter { $1 == nil }.map(\.0)
  }

  /// Counts each message once per counter. Counters are processed one by one, each with its messages in order.
  func countBadges(_ tally: inout BadgeTally) throws(RegistryError) {
    let devices = tally.devices
    var noted: [(message: Int64, counter: Int64, now: Int64, badge: Int64)] = []
    var moved: [Int64: Int64] = [:]
    let order = devices.indices.sorted {
      (devices[$0].counter, devices[$0].count, devices[$0].index) < (devices[$1].counter, devices[$1].count, devices[$1].index)
    }
    var first = 0
    var badge: Int64 = 0
    for (place, row) in order.enumerated() {
      let device = devices[row]
      if place == 0 || devices[order[place - 1]].counter != device.counter {
        first = noted.count
        badge = device.badge
      }
      var number = device.taken ?? noted[first...].first { $0.message == device.message }?.badge
      if number == nil {
        let next =
          switch device.rule {
          case .up, .look: min(badge + 1, SQL.highestBadge)
          case .set(let badge): badge
          }
        number = next
        if device.rule != .look {
          badge = next
          noted.append((device.message, device.counter, device.now, next))
          moved[device.counter] = next
        }
      }
      tally.numbers[device.count][device.index] = number
    }
    try session.runEach(
      SQL.noteBadge, noted.map { [.int($0.message), .int($0.counter), .int($0.now), .int($0.badge)] })
    try setBadges(moved, SQL.countBadge)
  }

  func counter(ofDevice id: Int64) throws(RegistryError) -> Int64? {
    try session.firstInt(SQL.counter, [.int(id)])
  }

  public func badge(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Int64 {
    guard let app = try knownApp(app) else { return 0 }
    return try session.firstInt(SQL.badgeOfInstallation, [.int(app), .text(installation)]) ?? 0
  }

  /// The nonzero badges by counter.
  func badges(of counters: [Int64]) throws(RegistryError) -> [Int64: Int64] {
    try session.byNumber(SQL.badge, counters) { $0.int(0) }
  }

  func setBadges(_ badges: [Int64: Int64], _ statement: Statement = SQL.setBadge) throws(RegistryError) {
    try session.runEach(statement, badges.sorted { $0.key < $1.key }.map { [.int($0.key), .int($0.value)] })
  }
}

extension SQL {
  /// The highest badge that APNs accepts.
  static let highestBadge = Int64(Int32.max)
  static let counter = Statement("SELECT \(counterOfDevice) FROM devices d WHERE d.id = ?1")
  /// The counter of a device `d`, the badge that a message has on it, and the counter's current badge.
  /// - Parameter message: the number of the parameter with the message's key.
  private static func counterAndBadge(message: Int) -> String {
    """
    SELECT \(counterOfDevice), (SELECT n.badge FROM notes n WHERE n.message = ?\(message) AND n.device = \(counterOfDevice)),
      (SELECT b.badge FROM badges b WHERE b.device = \(counterOfDevice))
    """
  }
  static let counterByNumber = Statement(rows: "\(counterAndBadge(message: 2)) FROM devices d WHERE d.id = ?1", .int, .int)
  static let counterByToken = Statement(
    rows: "\(counterAndBadge(message: 4)) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3",
    .int, .int, .blob, .int)
  /// A push to a replaced token counts for the device that now has another token.
  static let counterByReplacedToken = Statement(
    rows: "\(counterAndBadge(message: 4)) \(byReplacedToken)", .int, .int, .blob, .int)
  static let badge = Statement(rows: "SELECT badge FROM badges WHERE device = ?1", .int)
  static let badgeOfInstallation = Statement(
    "SELECT b.badge FROM devices d JOIN badges b ON b.device = \(counterOfDevice) WHERE d.app = ?1 AND d.installation = ?2 LIMIT 1"
  )
  static let setBadge = Statement(
    rows: "INSERT INTO badges (device, badge) VALUES (?1, ?2) ON CONFLICT (device) DO UPDATE SET badge = excluded.badge",
    .int, .int)
  static let countBadge = Statement(
    rows: """
      INSERT INTO badges (device, badge, counted) VALUES (?1, ?2, 1)
      ON CONFLICT (device) DO UPDATE SET badge = excluded.badge, counted = 1
      """, .int, .int)
  static let noteBadge = Statement(
    rows: """
      INSERT INTO notes (message, device, noted_at, badge) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (message, device) DO UPDATE SET badge = excluded.badge
      """, .int, .int, .int, .int)
}
