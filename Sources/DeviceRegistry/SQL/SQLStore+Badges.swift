import PushCore

/// The badges of several messages on their devices.
struct BadgeTally {
  /// A message.
  struct Count {
    /// Among the answers.
    let place: Int
    let count: BadgeCount
    let now: Int64
  }

  /// A device that has a counter.
  struct Device {
    let message: Int64
    let counter: Int64
    /// The badge that the message has counted already; nil where it hasn't.
    let taken: Int64?
    /// The counter's badge.
    let badge: Int64
    let rule: BadgeCount.Rule
    let now: Int64
    /// Its place in ``BadgeTally/numbers``.
    let count: Int
    let index: Int
  }

  /// In the order in which they count.
  var devices: [Device] = []
  /// Whose they are.
  var apps: [Int64] = []
  /// The badges of each message's devices.
  var numbers: [[Int64?]] = []

  var isWriting: Bool { devices.contains { $0.rule != .look } }
}

/// Badge counters: one for each device, or for each installation where several of its tokens are registered.
extension SQLStore {
  /// Which counters there are to be moved.
  func tally(_ counts: [BadgeTally.Count]) throws(RegistryError) -> BadgeTally {
    var tally = BadgeTally()
    tally.numbers = counts.map { [Int64?](repeating: nil, count: $0.count.devices.count) }
    var byNumber = Asked()
    var byToken = Asked()
    var last: (name: [UInt8], number: Int64?) = ([], nil)
    for (count, asked) in counts.enumerated() {
      if last.name != asked.count.app { last = (asked.count.app, try knownApp(asked.count.app)) }
      guard let app = last.number else { continue }
      if tally.apps.last != app, !tally.apps.contains(app) { tally.apps.append(app) }
      let message = MessageKey.of(asked.count.messageID)
      for (index, device) in asked.count.devices.enumerated() {
        switch device {
        case .number(let id): byNumber.append((count, index), message, app, number: id)
        case .token(let platform, let token):
          byToken.append((count, index), message, app, number: Int64(platform.rawValue), token)
        }
      }
    }
    _ = try find(SQL.counterByNumber, [.ints(byNumber.numbers), .ints(byNumber.messages)], byNumber, counts, &tally)
    let rest = try find(SQL.counterByToken, byToken.columns, byToken, counts, &tally)
    let replaced = byToken.rows(rest)
    _ = try find(SQL.counterByReplacedToken, replaced.columns, replaced, counts, &tally)
    return tally
  }

  /// - Returns: the rows that have no counter.
  private func find(
    _ statement: RowsStatement, _ columns: [SQLColumn], _ asked: Asked, _ counts: [BadgeTally.Count], _ tally: inout BadgeTally
  ) throws(RegistryError) -> [Int] {
    var isFound = [Bool](repeating: false, count: asked.places.count)
    try session.runRows(statement, columns) { row, result in
      isFound[row] = true
      let (count, index) = asked.places[row]
      tally.devices.append(
        .init(
          message: asked.messages[row], counter: result.int(0), taken: result.optionalInt(1), badge: result.int(2),
          rule: counts[count].count.rule, now: counts[count].now, count: count, index: index))
    }
    return isFound.indices.filter { !isFound[$0] }
  }

  /// Moves each counter once for a message: one counter after the other, each for its messages in their order.
  func countBadges(_ tally: inout BadgeTally) throws(RegistryError) {
    let devices = tally.devices
    var noted = (messages: [Int64](), counters: [Int64](), times: [Int64](), badges: [Int64]())
    var moved = (counters: [Int64](), badges: [Int64]())
    let order = devices.indices.sorted {
      (devices[$0].counter, devices[$0].count, devices[$0].index) < (devices[$1].counter, devices[$1].count, devices[$1].index)
    }
    // The counter's first place among the notes.
    var first = 0
    var badge: Int64 = 0
    for (place, row) in order.enumerated() {
      let device = devices[row]
      if place == 0 || devices[order[place - 1]].counter != device.counter {
        first = noted.counters.count
        badge = device.badge
      }
      var number = device.taken
      if number == nil, let same = noted.messages[first...].firstIndex(of: device.message) { number = noted.badges[same] }
      if number == nil {
        let next =
          switch device.rule {
          case .up, .look: min(badge + 1, SQL.highestBadge)
          case .set(let badge): badge
          }
        number = next
        if device.rule != .look {
          badge = next
          noted.messages.append(device.message)
          noted.counters.append(device.counter)
          noted.times.append(device.now)
          noted.badges.append(next)
          if moved.counters.last == device.counter {
            moved.badges[moved.badges.count - 1] = next
          } else {
            moved.counters.append(device.counter)
            moved.badges.append(next)
          }
        }
      }
      tally.numbers[device.count][device.index] = number
    }
    try session.runRows(
      SQL.noteBadge, [.ints(noted.messages), .ints(noted.counters), .ints(noted.times), .ints(noted.badges)]
    ) { _, _ in }
    try session.runRows(SQL.countBadge, [.ints(moved.counters), .ints(moved.badges)]) { _, _ in }
  }

  /// Devices whose counters are asked for, by their numbers or by platform and token.
  private struct Asked {
    /// The message, and the device's place among its devices.
    var places: [(count: Int, index: Int)] = []
    var messages: [Int64] = []
    var apps: [Int64] = []
    var numbers: [Int64] = []
    var tokens: [[UInt8]] = []

    mutating func append(
      _ place: (count: Int, index: Int), _ message: Int64, _ app: Int64, number: Int64, _ token: [UInt8]? = nil
    ) {
      places.append(place)
      messages.append(message)
      apps.append(app)
      numbers.append(number)
      if let token { tokens.append(token) }
    }

    var columns: [SQLColumn] { [.ints(apps), .ints(numbers), .blobs(tokens), .ints(messages)] }

    /// Some of them, all by token.
    func rows(_ rows: [Int]) -> Asked {
      Asked(
        places: rows.map { places[$0] }, messages: rows.map { messages[$0] }, apps: rows.map { apps[$0] },
        numbers: rows.map { numbers[$0] }, tokens: rows.map { tokens[$0] })
    }
  }

  func counter(ofDevice id: Int64) throws(RegistryError) -> Int64? {
    try session.firstInt(SQL.counter, [.int(id)])
  }

  func badge(ofInstallation installation: [UInt8], app: [UInt8]) throws(RegistryError) -> Int64 {
    guard let app = try knownApp(app) else { return 0 }
    return try session.firstInt(SQL.badgeOfInstallation, [.int(app), .text(installation)]) ?? 0
  }

  /// Those that are not 0, by the counter's device.
  func badges(of counters: [Int64]) throws(RegistryError) -> [Int64: Int64] {
    var badges: [Int64: Int64] = [:]
    let ids = Array(Set(counters)).sorted()
    try session.runRows(SQL.badge, [.ints(ids)]) { row, result in badges[ids[row]] = result.int(0) }
    return badges
  }

  func setBadges(_ badges: [Int64: Int64]) throws(RegistryError) {
    let sorted = badges.sorted { $0.key < $1.key }
    try session.runRows(SQL.setBadge, [.ints(sorted.map(\.key)), .ints(sorted.map(\.value))]) { _, _ in }
  }
}

extension SQL {
  /// What APNs takes.
  static let highestBadge = Int64(Int32.max)
  static let counter = Statement("SELECT \(counterOfDevice) FROM devices d WHERE d.id = ?1")
  /// The counter of a device `d`, the badge that a message has counted on it, and the counter's badge now.
  /// - Parameter message: the number of the parameter for the message's key.
  private static func counterAndBadge(message: Int) -> String {
    """
    SELECT \(counterOfDevice), (SELECT n.badge FROM notes n WHERE n.message = ?\(message) AND n.device = \(counterOfDevice)),
      (SELECT b.badge FROM badges b WHERE b.device = \(counterOfDevice))
    """
  }
  static let counterByNumber = RowsStatement("\(counterAndBadge(message: 2)) FROM devices d WHERE d.id = ?1", .int, .int)
  static let counterByToken = RowsStatement(
    "\(counterAndBadge(message: 4)) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3",
    .int, .int, .blob, .int)
  /// A push that was on its way to a token counts for the device that has another one by now.
  static let counterByReplacedToken = RowsStatement(
    "\(counterAndBadge(message: 4)) \(byReplacedToken)", .int, .int, .blob, .int)
  static let badge = RowsStatement("SELECT badge FROM badges WHERE device = ?1", .int)
  static let badgeOfInstallation = Statement(
    "SELECT b.badge FROM devices d JOIN badges b ON b.device = \(counterOfDevice) WHERE d.app = ?1 AND d.installation = ?2 LIMIT 1"
  )
  static let setBadge = RowsStatement(
    "INSERT INTO badges (device, badge) VALUES (?1, ?2) ON CONFLICT (device) DO UPDATE SET badge = excluded.badge",
    .int, .int)
  /// A message has moved it.
  static let countBadge = RowsStatement(
    """
    INSERT INTO badges (device, badge, counted) VALUES (?1, ?2, 1)
    ON CONFLICT (device) DO UPDATE SET badge = excluded.badge, counted = 1
    """, .int, .int)
  static let noteBadge = RowsStatement(
    """
    INSERT INTO notes (message, device, noted_at, badge) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (message, device) DO UPDATE SET badge = excluded.badge
    """, .int, .int, .int, .int)
}
