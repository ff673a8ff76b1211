import PushCore

struct BadgeTally {
  /// A device with a counter.
  struct Device {
    let message: Int64
    let counter: Int64
    /// The badge that the message already has on it; nil if it hasn't been counted.
    var taken: Int64?
    let badge: Int64
    let rule: BadgeCount.Rule
    let now: Int64
    /// Its place in ``BadgeTally/numbers``.
    let count: Int
    let index: Int
    /// The index in ``BadgeTally/pages`` of the page that stores the badge; nil if it has a note.
    let page: Int?
  }

  var devices: [Device] = []
  var apps: [Int64] = []
  var numbers: [[Int64?]] = []
  var pages: [PageBadges] = []

  var isWriting: Bool { devices.contains { $0.rule != .look && $0.taken == nil } }
}

/// Badge counters: one per device, or one per installation with several registered tokens.
extension DeviceStore {
  func tally(_ counts: [Placed<BadgeCount>]) throws(RegistryError) -> BadgeTally {
    var tally = BadgeTally()
    tally.numbers = counts.map { $0.content.devices.map { _ in Int64?.none } }
    var byNumber = Questions()
    var byToken = Questions()
    var subscriptions: [(question: Question, key: TokenKey)] = []
    var last: (name: [UInt8], number: Int64?) = ([], nil)
    for (count, asked) in counts.enumerated() {
      let content = asked.content
      if last.name != content.app { last = (content.app, try knownApp(content.app)) }
      guard let app = last.number else { continue }
      if tally.apps.last != app, !tally.apps.contains(app) { tally.apps.append(app) }
      let message = MessageKey.of(content.messageID)
      if let page = content.page {
        try findOnPage(page, asked, message, count, &tally, others: &byNumber)
        continue
      }
      for (index, device) in content.devices.enumerated() {
        let question = Question(count: count, index: index, message: message)
        switch device {
        case .number(let id): byNumber.add(question, id, content)
        case .token(.webpush, let token):
          subscriptions.append((question, TokenKey(app: app, platform: .webpush, token: token)))
        case .token(let platform, let token): byToken.add(question, app, platform, token, content)
        }
      }
    }
    if !subscriptions.isEmpty {
      for (asked, key) in zip(subscriptions, try stored(subscriptions.map(\.key))) {
        byToken.add(asked.question, key.app, key.platform, key.token, counts[asked.question.count].content)
      }
    }
    let unknown = try find(SQL.counterByToken, byToken, counts, &tally)
    if !unknown.isEmpty {
      let tokens = unknown.flatMap { byToken.values[($0 * SQL.counterByToken.width)...].prefix(3) }
      for (place, id) in zip(unknown, try session.ofEach(SQL.numberByReplacedToken, tokens, { $0.int(0) })) {
        if let id { byNumber.add(byToken.devices[place], id, counts[byToken.devices[place].count].content) }
      }
    }
    _ = try find(SQL.counterByNumber, byNumber, counts, &tally)
    return tally
  }

  /// Devices whose counters are looked up together, and the values of the look-up.
  private struct Questions {
    var devices: [Question] = []
    var values: [SQLValue] = []

    mutating func add(_ question: Question, _ id: Int64, _ count: BadgeCount) {
      devices.append(question)
      values.append(.int(id))
      addMessage(question, count)
    }

    mutating func add(_ question: Question, _ app: Int64, _ platform: Platform, _ token: [UInt8], _ count: BadgeCount) {
      devices.append(question)
      values.append(.int(app))
      values.append(.int(platform))
      values.append(.blob(token))
      addMessage(question, count)
    }

    private mutating func addMessage(_ question: Question, _ count: BadgeCount) {
      values.append(.int(question.message))
      values.append(.blob(count.messageID))
    }
  }

  private struct Question {
    let count: Int
    let index: Int
    let message: Int64

    func device(
      _ asked: Placed<BadgeCount>, _ counter: Int64, _ taken: Int64?, _ badge: Int64, page: Int? = nil
    ) -> BadgeTally.Device {
      .init(
        message: message, counter: counter, taken: taken, badge: badge, rule: asked.content.rule, now: asked.now, count: count,
        index: index, page: page)
    }
  }

  /// - Parameter others: gets those that share a counter, and all if the page's notes aren't known.
  private func findOnPage(
    _ page: BadgeCount.Page, _ asked: Placed<BadgeCount>, _ message: Int64, _ count: Int, _ tally: inout BadgeTally,
    others: inout Questions
  ) throws(RegistryError) {
    let numbers = asked.content.devices.compactMap { if case .number(let id) = $0 { id } else { nil } }
    let place = tally.pages.firstIndex { $0.page == page } ?? tally.pages.count
    if place == tally.pages.count { tally.pages.append(try badges(of: page, asked.content, numbers, message)) }
    let known = tally.pages[place]
    try session.runEach(SQL.counterOnPage, numbers.map { .int($0) }) { index, row in
      let question = Question(count: count, index: index, message: message)
      let id = row.int(0)
      let taken = known.badge(of: id)
      guard taken != nil || row.int(2) == 0 && known.noted != nil else { return others.add(question, id, asked.content) }
      tally.devices.append(question.device(asked, id, taken, row.int(1), page: place))
    }
  }

  /// - Returns: the indices of those without a counter.
  private func find(
    _ statement: Statement, _ asked: Questions, _ counts: [Placed<BadgeCount>], _ tally: inout BadgeTally
  ) throws(RegistryError) -> [Int] {
    var isFound = [Bool](repeating: false, count: asked.devices.count)
    var places: [Int] = []
    var ofCampaigns: [(message: [UInt8], app: [UInt8], device: Int64)] = []
    try session.runEach(statement, asked.values) { index, row in
      isFound[index] = true
      let count = counts[asked.devices[index].count]
      let (counter, taken) = (row.int(0), row.optionalInt(1))
      if taken == nil, row.int(3) != 0 {
        places.append(tally.devices.count)
        ofCampaigns.append((count.content.messageID, count.content.app, counter))
      }
      tally.devices.append(asked.devices[index].device(count, counter, taken, row.int(2)))
    }
    for (place, badge) in zip(places, try badgesOfCampaigns(ofCampaigns)) { tally.devices[place].taken = badge }
    return isFound.indices.filter { !isFound[$0] }
  }

  // MARK: Badges that are stored with the page of a campaign

  private func badges(
    of page: BadgeCount.Page, _ count: BadgeCount, _ numbers: [Int64], _ message: Int64
  ) throws(RegistryError) -> PageBadges {
    let stored = try storedBadges(of: page)
    let range: [SQLValue] = [.int(message), .int(numbers.min()), .int(numbers.max()), .int(Self.mostNoted + 1)]
    let noted = try session.all(SQL.notesInRange, range) { ($0.int(0), $0.int(1)) }
    // Another request with the message's id may have counted the devices too.
    let others: [SQLValue] = [.blob(count.messageID), .text(count.app), .blob(page.campaign)]
    let isAlone = try session.firstInt(SQL.otherCampaign, others) == nil
    return PageBadges(
      page: page, stored: stored ?? [],
      noted: isAlone && noted.count <= Self.mostNoted ? Dictionary(uniqueKeysWithValues: noted) : nil)
  }

  private static let mostNoted = 4_096

  /// The badges that messages of campaigns have on devices; nil for each that has none.
  func badgesOfCampaigns(
    _ asked: [(message: [UInt8], app: [UInt8], device: Int64)]
  ) throws(RegistryError) -> [Int64?] {
    var found = [Int64?](repeating: nil, count: asked.count)
    var places: [BadgeCount.Page: [Int]] = [:]
    let sets: [SQLValue] = asked.flatMap { [.blob($0.message), .text($0.app), .int($0.device)] }
    try session.runEach(SQL.pagesOfMessage, sets) { place, row in
      guard let number = row.optionalInt(1) else { return }
      places[BadgeCount.Page(campaign: row.bytes(0), number: number), default: []].append(place)
    }
    for (page, places) in places {
      guard let record = try storedBadges(of: page) else { continue }
      for place in places { found[place] = found[place] ?? PageBadges.badge(of: asked[place].device, in: record) }
    }
    return found
  }

  private func storedBadges(of page: BadgeCount.Page) throws(RegistryError) -> [UInt8]? {
    try session.first(SQL.badgesOfPage, [.blob(page.campaign), .int(page.number)]) { $0.optionalBytes(0) }
  }

  /// Counts each message once per counter. Counters are processed one by one, each with its messages in order.
  func countBadges(_ tally: inout BadgeTally) throws(RegistryError) {
    let devices = tally.devices
    var noted: [(message: Int64, badge: Int64)] = []
    var notes: [SQLValue] = []
    // The counters that change, each with its badge.
    var moved: [SQLValue] = []
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
          noted.append((device.message, next))
          if let page = device.page {
            tally.pages[page].added.append((device.counter, next))
          } else {
            notes.append(contentsOf: [.int(device.message), .int(device.counter), .int(device.now), .int(next)])
          }
          // The counter has moved before.
          if noted.count > first + 1 { moved.removeLast(2) }
          moved.append(contentsOf: [.int(device.counter), .int(next)])
        }
      }
      tally.numbers[device.count][device.index] = number
    }
    try session.runEach(SQL.noteBadge, notes)
    for page in tally.pages {
      guard let record = page.record else { continue }
      try session.run(SQL.storeBadgesOfPage, [.blob(page.page.campaign), .int(page.page.number), .blob(record)])
    }
    try session.runEach(SQL.countBadge, moved)
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

  func setBadges(_ badges: [Int64: Int64]) throws(RegistryError) {
    try session.runEach(SQL.setBadge, badges.sorted { $0.key < $1.key }.flatMap { [.int($0.key), .int($0.value)] })
  }
}

extension SQL {
  /// The highest badge that APNs accepts.
  static let highestBadge = Int64(Int32.max)
  static let counter = Statement("SELECT \(counterOfDevice) FROM devices d WHERE d.id = ?1")
  /// The counter of a device `d`, the badge that a message has on it, the counter's current badge, and whether a campaign has the
  /// message.
  /// - Parameter id: the number of the parameter with the message's id.
  private static func counterAndBadge(id: Int) -> String {
    "\(counterOfDevice), n.badge, b.badge, (SELECT 1 FROM campaigns c WHERE c.message_id = ?\(id) LIMIT 1)"
  }
  /// - Parameter message: the number of the parameter with the message's key.
  private static func devices(message: Int) -> String {
    """
    devices d LEFT JOIN notes n ON n.message = ?\(message) AND n.device = \(counterOfDevice)
    LEFT JOIN badges b ON b.device = \(counterOfDevice)
    """
  }
  static let counterByNumber = Statement(
    rows: counterAndBadge(id: 3), from: "\(devices(message: 2)) WHERE d.id = ?1", .int, .int, .blob)
  static let counterByToken = Statement(
    rows: counterAndBadge(id: 5), from: "\(devices(message: 4)) WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3",
    .int, .int, .blob, .int, .blob)
  /// The badge of a device that doesn't share its counter, and whether it does.
  static let counterOnPage = Statement(
    rows: "d.id, b.badge, COALESCE(d.counter, (SELECT x.counter FROM devices x WHERE x.counter = d.id LIMIT 1))",
    from: "devices d LEFT JOIN badges b ON b.device = d.id WHERE d.id = ?1", .int)
  static let notesInRange = Statement(
    "SELECT device, badge FROM notes WHERE message = ?1 AND device BETWEEN ?2 AND ?3 AND badge IS NOT NULL LIMIT ?4")
  static let badgesOfPage = Statement("SELECT badges FROM campaign_pages WHERE campaign = ?1 AND page = ?2")
  static let storeBadgesOfPage = Statement("UPDATE campaign_pages SET badges = ?3 WHERE campaign = ?1 AND page = ?2")
  static let otherCampaign = Statement("SELECT 1 FROM campaigns WHERE message_id = ?1 AND app = ?2 AND id <> ?3 LIMIT 1")
  /// The page that includes the device's number, of each campaign with this message.
  static let pagesOfMessage = Statement(
    """
    SELECT c.id, (
      SELECT p.page FROM campaign_pages p WHERE p.campaign = c.id AND p.page_end >= ?3 ORDER BY p.page_end, p.page LIMIT 1)
    FROM campaigns c WHERE c.message_id = ?1 AND c.app = ?2
    """)
  /// A push to a replaced token counts for the device that now has another token.
  static let numberByReplacedToken = Statement(rows: "SELECT d.id \(byReplacedToken)", [.int, .int, .blob])
  static let badge = Statement(rows: "badge", from: "badges WHERE device = ?1", .int)
  static let badgeOfInstallation = Statement(
    "SELECT b.badge FROM devices d JOIN badges b ON b.device = \(counterOfDevice) WHERE d.app = ?1 AND d.installation = ?2 LIMIT 1"
  )
  static let setBadge = Statement(
    into: "badges (device, badge)", values: "?1, ?2", "ON CONFLICT (device) DO UPDATE SET badge = excluded.badge", .int, .int)
  static let countBadge = Statement(
    into: "badges (device, badge, counted)", values: "?1, ?2, 1",
    "ON CONFLICT (device) DO UPDATE SET badge = excluded.badge, counted = 1", .int, .int)
  static let noteBadge = Statement(
    into: "notes (message, device, noted_at, badge)", values: "?1, ?2, ?3, ?4",
    "ON CONFLICT (message, device) DO UPDATE SET badge = excluded.badge", .int, .int, .int, .int)
}
