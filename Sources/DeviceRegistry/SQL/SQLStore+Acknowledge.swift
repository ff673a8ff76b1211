import PushCore

/// What devices say of messages: noted once each, in one transaction for as many as come together.
extension SQLStore {
  func acknowledge(
    _ acknowledgements: [Acknowledgement], wantsReceipts: Bool, now: Int64
  ) throws(RegistryError) -> [AcknowledgementOutcome] {
    guard !acknowledgements.isEmpty else { return [] }
    var apps: [Int64] = []
    for name in Set(acknowledgements.map(\.app)) {
      if let app = try knownApp(name) { apps.append(app) }
    }
    return try transaction(.notes(of: apps)) { () throws(RegistryError) in
      let devices = try speakers(acknowledgements)
      let messages = try sent(try messages(of: acknowledgements, devices), acknowledgements, devices)
      let isNew = try note(acknowledgements, devices, messages, now)
      try applyBadgeRules(acknowledgements, devices, isNew)
      try countForCampaigns(acknowledgements, messages, isNew)
      var outcomes = acknowledgements.indices.map { index -> AcknowledgementOutcome in
        guard devices[index] != nil, messages[index] != nil else { return .unknown }
        return isNew[index] ? .noted(nil) : .repeated(nil)
      }
      if wantsReceipts { try addReceipts(acknowledgements, devices, messages, &outcomes) }
      return outcomes
    }
  }

  // MARK: who says what

  private func speakers(_ acknowledgements: [Acknowledgement]) throws(RegistryError) -> [Speaker?] {
    var speakers = [Speaker?](repeating: nil, count: acknowledgements.count)
    var byToken: [(Int, [SQLValue])] = []
    var byKey: [(Int, [SQLValue])] = []
    var byInstallation: [(Int, [SQLValue])] = []
    for (index, acknowledgement) in acknowledgements.enumerated() {
      guard let app = try knownApp(acknowledgement.app) else { continue }
      switch acknowledgement.device {
      case .token(let platform, let token): byToken.append((index, [.int(app), .int(Int64(platform.rawValue)), .blob(token)]))
      case .registration(let text):
        if let key = RegistryKey(text, .registration) { byKey.append((index, [.int(key.id), .int(key.salt), .int(app)])) }
      case .installation(let name): byInstallation.append((index, [.int(app), .text(name)]))
      case .invalid: continue
      }
    }
    try fill(&speakers, SQL.speakerByToken, byToken)
    try fill(&speakers, SQL.speakerByReplacedToken, byToken.filter { speakers[$0.0] == nil })
    try fill(&speakers, SQL.speakerByKey, byKey)
    try fill(&speakers, SQL.speakerByAlias, byKey.filter { speakers[$0.0] == nil })
    try fill(&speakers, SQL.speakerByInstallation, byInstallation)
    try dropOthers(acknowledgements, &speakers)
    return speakers
  }

  /// Devices that aren't of the user whom the acknowledgement names.
  private func dropOthers(_ acknowledgements: [Acknowledgement], _ speakers: inout [Speaker?]) throws(RegistryError) {
    let named = acknowledgements.indices.filter { acknowledgements[$0].user != nil }
    guard !named.isEmpty else { return }
    let users = try names(of: Set(named.compactMap { speakers[$0]?.user }))
    for index in named where speakers[index]?.user.flatMap({ users[$0] }) != acknowledgements[index].user {
      speakers[index] = nil
    }
  }

  private func fill(
    _ speakers: inout [Speaker?], _ statement: Statement, _ asked: [(Int, [SQLValue])]
  ) throws(RegistryError) {
    guard !asked.isEmpty else { return }
    var found: [(Int, Speaker)] = []
    try session.runEach(statement, asked.map(\.1)) { index, row in
      let key = RegistryKey(id: row.int(0), salt: row.int(1))
      found.append((asked[index].0, Speaker(key: key, user: row.optionalInt(2), counter: row.int(3))))
    }
    for (index, speaker) in found { speakers[index] = speaker }
  }

  private func messages(
    of acknowledgements: [Acknowledgement], _ devices: [Speaker?]
  ) throws(RegistryError) -> [Noted?] {
    var messages = [Noted?](repeating: nil, count: acknowledgements.count)
    var byKey: [(index: Int, keys: ClosedRange<Int64>)] = []
    for index in acknowledgements.indices where devices[index] != nil {
      switch acknowledgements[index].operation {
      case .received(.id(let id)), .read(.id(let id), _): messages[index] = Noted(key: MessageKey.of(id), id: id)
      case .badge:
        messages[index] = Noted(key: acknowledgements[index].occasion.map { MessageKey.of(occasion: $0) } ?? 0, id: [])
      case .received(.key(let keys)), .read(.key(let keys), _): byKey.append((index, keys))
      }
    }
    if !byKey.isEmpty {
      try session.runEach(SQL.messageByKey, byKey.map { [.int($0.keys.lowerBound), .int($0.keys.upperBound)] }) { place, row in
        messages[byKey[place].index] = Noted(key: row.int(0), id: row.bytes(1))
      }
    }
    return messages
  }

  // MARK: noted once

  private func note(
    _ acknowledgements: [Acknowledgement], _ devices: [Speaker?], _ messages: [Noted?], _ now: Int64
  ) throws(RegistryError) -> [Bool] {
    var isNew = [Bool](repeating: false, count: acknowledgements.count)
    var received: [(index: Int, values: [SQLValue])] = []
    var read: [(index: Int, values: [SQLValue])] = []
    var forced: [(index: Int, values: [SQLValue])] = []
    for (index, acknowledgement) in acknowledgements.enumerated() {
      guard let device = devices[index], let message = messages[index] else { continue }
      let place: [SQLValue] = [.int(message.key), .int(device.counter), .int(now)]
      switch acknowledgement.operation {
      case .received: received.append((index, place + [.int(acknowledgement.at)]))
      case .read: read.append((index, place + [.int(acknowledgement.at)]))
      case .badge where acknowledgement.occasion == nil: isNew[index] = true
      case .badge: forced.append((index, place))
      }
    }
    for (statement, sets) in [(SQL.noteReceived, received), (SQL.noteRead, read), (SQL.noteForced, forced)] where !sets.isEmpty
    {
      try session.runEach(statement, sets.map(\.values)) { index, _ in isNew[sets[index].index] = true }
    }
    return isNew
  }

  private func applyBadgeRules(
    _ acknowledgements: [Acknowledgement], _ devices: [Speaker?], _ isNew: [Bool]
  ) throws(RegistryError) {
    func rule(_ index: Int) -> BadgeRule? {
      guard isNew[index] else { return nil }
      switch acknowledgements[index].operation {
      case .received: return nil
      case .read(_, let rule): return rule
      case .badge(let number): return .update(number)
      }
    }
    let counted = acknowledgements.indices.filter { rule($0) != nil }
    var badges = try badges(of: counted.compactMap { devices[$0]?.counter })
    let before = badges
    for index in counted {
      guard let counter = devices[index]?.counter, let rule = rule(index) else { continue }
      switch rule {
      case .keep: badges[counter] = max(0, (badges[counter] ?? 0) - 1)
      case .reset: badges[counter] = 0
      case .update(let number): badges[counter] = number
      }
    }
    try setBadges(badges.filter { $1 != before[$0] ?? 0 })
  }

  private func countForCampaigns(
    _ acknowledgements: [Acknowledgement], _ messages: [Noted?], _ isNew: [Bool]
  ) throws(RegistryError) {
    var counts: [AcknowledgedSend: (received: Int64, read: Int64)] = [:]
    for (index, acknowledgement) in acknowledgements.enumerated() where isNew[index] {
      guard let message = messages[index] else { continue }
      let send = AcknowledgedSend(app: acknowledgement.app, message: message.id)
      switch acknowledgement.operation {
      case .received: counts[send, default: (0, 0)].received += 1
      case .read: counts[send, default: (0, 0)].read += 1
      case .badge: continue
      }
    }
    let sets: [[SQLValue]] = counts.map {
      [.blob($0.message), .text($0.app), .int($1.received), .int($1.read)]
    }
    if !sets.isEmpty { try session.runEach(SQL.countForCampaign, sets) { _, _ in } }
  }

  // MARK: receipts

  private func addReceipts(
    _ acknowledgements: [Acknowledgement], _ devices: [Speaker?], _ messages: [Noted?],
    _ outcomes: inout [AcknowledgementOutcome]
  ) throws(RegistryError) {
    let withReceipt = outcomes.indices.filter { index in
      switch outcomes[index] {
      case .noted: true
      case .repeated: acknowledgements[index].isRedelivered
      case .unknown: false
      }
    }
    let users = try names(of: Set(withReceipt.compactMap { devices[$0]?.user }))
    let badges = try badges(of: withReceipt.compactMap { devices[$0]?.counter })
    let times = try times(of: withReceipt.map { [.int(messages[$0]?.key), .int(devices[$0]?.counter)] })
    for (place, index) in withReceipt.enumerated() {
      guard let device = devices[index], let message = messages[index] else { continue }
      let event: Receipt.Event
      switch acknowledgements[index].operation {
      case .received: event = .received
      case .read: event = .read
      case .badge: continue
      }
      let receipt = Receipt(
        event: event, app: acknowledgements[index].app, messageID: message.id, registration: device.key.registration,
        user: device.user.flatMap { users[$0] },
        at: (event == .received ? times[place].received : times[place].read) ?? acknowledgements[index].at,
        badge: badges[device.counter] ?? 0)
      if case .noted = outcomes[index] { outcomes[index] = .noted(receipt) } else { outcomes[index] = .repeated(receipt) }
    }
  }

  private func names(of users: Set<Int64>) throws(RegistryError) -> [Int64: [UInt8]] {
    var names: [Int64: [UInt8]] = [:]
    let ids = users.sorted()
    guard !ids.isEmpty else { return names }
    try session.runEach(SQL.userByID, ids.map { [.int($0)] }) { index, row in names[ids[index]] = row.bytes(0) }
    return names
  }

  func times(of notes: [[SQLValue]]) throws(RegistryError) -> [AcknowledgementTimes] {
    var times = [AcknowledgementTimes](repeating: AcknowledgementTimes(), count: notes.count)
    guard !notes.isEmpty else { return times }
    try session.runEach(SQL.noteTimes, notes) { index, row in
      times[index] = AcknowledgementTimes(received: row.optionalInt(0), read: row.optionalInt(1))
    }
    return times
  }
}

/// A device that speaks.
struct Speaker {
  let key: RegistryKey
  let user: Int64?
  /// Whose notes and badge these are, shared by an installation's devices.
  let counter: Int64
}

/// The message, or the occasion, that is noted.
struct Noted {
  let key: Int64
  let id: [UInt8]
}

struct AcknowledgedSend: Hashable {
  let app: [UInt8]
  let message: [UInt8]
}

extension SQL {
  private static let speaker = "SELECT d.id, d.salt, d.user_id, \(counterOfDevice)"
  static let speakerByToken = Statement("\(speaker) FROM devices d WHERE d.app = ?1 AND d.platform = ?2 AND d.token = ?3")
  static let speakerByReplacedToken = Statement("\(speaker) \(byReplacedToken)")
  static let speakerByKey = Statement("\(speaker) FROM devices d WHERE d.id = ?1 AND d.salt = ?2 AND d.app = ?3")
  static let speakerByAlias = Statement(
    "\(speaker) FROM aliases a JOIN devices d ON d.id = a.device WHERE a.id = ?1 AND a.salt = ?2 AND d.app = ?3")
  static let speakerByInstallation = Statement(
    "\(speaker) FROM devices d WHERE d.app = ?1 AND d.installation = ?2 ORDER BY d.id LIMIT 1")
  static let messageByKey = Statement("SELECT message, id FROM messages WHERE message BETWEEN ?1 AND ?2 LIMIT 1")
  static let userByID = Statement("SELECT name FROM users WHERE id = ?1")

  /// Each gives a row where it is new.
  static let noteReceived = note("received_at")
  static let noteRead = note("read_at")
  static let noteForced = Statement(
    "INSERT INTO notes (message, device, noted_at) VALUES (?1, ?2, ?3) ON CONFLICT (message, device) DO NOTHING RETURNING 1")
  private static func note(_ column: String) -> Statement {
    Statement(
      """
      INSERT INTO notes (message, device, noted_at, \(column)) VALUES (?1, ?2, ?3, ?4)
      ON CONFLICT (message, device) DO UPDATE SET \(column) = excluded.\(column) WHERE notes.\(column) IS NULL RETURNING 1
      """)
  }
  static let noteTimes = Statement("SELECT received_at, read_at FROM notes WHERE message = ?1 AND device = ?2")
  static let countForCampaign = Statement(
    "UPDATE campaigns SET received = received + ?3, opened = opened + ?4 WHERE message_id = ?1 AND app = ?2")
}
