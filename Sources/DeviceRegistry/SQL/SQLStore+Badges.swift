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
    for (count, asked) in counts.enumerated() {
      guard let app = try knownApp(asked.count.app) else { continue }
      for (index, device) in asked.count.devices.enumerated() {
        switch device {
        case .number(let id): byNumber.append(count, index, app, number: id)
        case .token(let platform, let token): byToken.append(count, index, app, number: Int64(platform.rawValue), token)
        }
      }
    }
    try session.runRows(SQL.counterByNumber, [.ints(byNumber.numbers)]) { row, result in byNumber.counters[row] = result.int(0)
    }
    try session.runRows(SQL.counterByToken, byToken.columns) { row, result in byToken.counters[row] = result.int(0) }
    let rest = byToken.counters.indices.filter { byToken.counters[$0] == nil }
    if !rest.isEmpty {
      try session.runRows(SQL.counterByReplacedToken, byToken.columns(of: rest)) { row, result in
        byToken.counters[rest[row]] = result.int(0)
      }
    }
    var keys = [Int64?](repeating: nil, count: counts.count)
    for asked in [byNumber, byToken] {
      for (row, counter) in asked.counters.enumerated() {
        guard let counter else { continue }
        let (count, index) = asked.places[row]
        let message = keys[count] ?? MessageKey.of(counts[count].count.messageID)
        keys[count] = message
        tally.devices.append(
          .init(
            message: message, counter: counter, rule: counts[count].count.rule, now: counts[count].now, count: count,
            index: index))
        if !tally.apps.contains(asked.apps[row]) { tally.apps.append(asked.apps[row]) }
      }
    }
    if !byNumber.places.isEmpty, !byToken.places.isEmpty {
      tally.devices.sort { ($0.count, $0.index) < ($1.count, $1.index) }
    }
    return tally
  }

  /// Moves each counter once for a message.
  func countBadges(_ tally: inout BadgeTally) throws(RegistryError) {
    guard !tally.devices.isEmpty else { return }
    let devices = tally.devices
    // What each took when its message counted, and what its counter is at.
    var found = [(taken: Int64?, badge: Int64)](repeating: (nil, 0), count: devices.count)
    try session.runRows(SQL.takenAndBadge, [.ints(devices.map(\.message)), .ints(devices.map(\.counter))]) { row, result in
      found[row] = (result.optionalInt(0), result.int(1))
    }
    var taken: [Place: Int64] = [:]
    var badges: [Int64: Int64] = [:]
    var noted: [(device: BadgeTally.Device, badge: Int64)] = []
    for (row, device) in devices.enumerated() {
      let place = Place(message: device.message, counter: device.counter)
      var number = found[row].taken ?? taken[place]
      if number == nil {
        let badge =
          switch device.rule {
          case .up, .look: min((badges[device.counter] ?? found[row].badge) + 1, SQL.highestBadge)
          case .set(let badge): badge
          }
        number = badge
        if device.rule != .look {
          taken[place] = badge
          badges[device.counter] = badge
          noted.append((device, badge))
        }
      }
      tally.numbers[device.count][device.index] = number
    }
    try session.runRows(
      SQL.noteBadge,
      [
        .ints(noted.map(\.device.message)), .ints(noted.map(\.device.counter)), .ints(noted.map(\.device.now)),
        .ints(noted.map(\.badge)),
      ]
    ) { _, _ in }
    try setBadges(badges, SQL.countBadge)
  }

  /// A message on a device.
  private struct Place: Hashable {
    let message: Int64
    let counter: Int64
  }

  /// Devices whose counters are asked for, by their numbers or by platform and token.
  private struct Asked {
    /// The message, and the device's place among its devices.
    var places: [(count: Int, index: Int)] = []
    var apps: [Int64] = []
    var numbers: [Int64] = []
    var tokens: [[UInt8]] = []
    var counters: [Int64?] = []

    mutating func append(_ count: Int, _ index: Int, _ app: Int64, number: Int64, _ token: [UInt8]? = nil) {
      places.append((count, index))
      apps.append(app)
      numbers.append(number)
      if let token { tokens.append(token) }
      counters.append(nil)
    }

    var columns: [SQLColumn] { [.ints(apps), .ints(numbers), .blobs(tokens)] }

    func columns(of rows: [Int]) -> [SQLColumn] {
      [.ints(rows.map { apps[$0] }), .ints(rows.map { numbers[$0] }), .blobs(rows.map { tokens[$0] })]
    }
  }

  func counter(ofDevice id: Int64) throws(RegistryError) -> Int64? {
    var counter: Int64?
    try session.runRows(SQL.counterByNumber, [.ints([id])]) { _, row in counter = row.int(0) }
    return counter
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

  func setBadges(_ badges: [Int64: Int64], _ statement: RowsStatement = SQL.setBadge) throws(RegistryError) {
    let sorted = badges.sorted { $0.key < $1.key }
    try session.runRows(statement, [.ints(sorted.map(\.key)), .ints(sorted.map(\.value))]) { _, _ in }
  }
}

extension SQL {
  /// What APNs takes.
  static let highestBadge = Int64(Int32.max)
  static let counterByNumber = RowsStatement("SELECT \(counterOfDevice) FROM devices d WHERE d.id = ?1", .int)
  static let counterByToken = RowsStatement(
    "SELECT \(counterOfDevice) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3",
    .int, .int, .blob)
  /// A push that was on its way to a token counts for the device that has another one by now.
  static let counterByReplacedToken = RowsStatement("SELECT \(counterOfDevice) \(byReplacedToken)", .int, .int, .blob)
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
  static let takenAndBadge = RowsStatement(
    """
    SELECT (SELECT badge FROM notes WHERE message = ?1 AND device = ?2), (SELECT badge FROM badges WHERE device = ?2)
    """, .int, .int)
  static let noteBadge = RowsStatement(
    """
    INSERT INTO notes (message, device, noted_at, badge) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT (message, device) DO UPDATE SET badge = excluded.badge
    """, .int, .int, .int, .int)
}
