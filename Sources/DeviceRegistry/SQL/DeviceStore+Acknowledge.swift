import PushCore

/// Stores acknowledgements, each only once, in one transaction per batch.
extension DeviceStore {
  /// Stores acknowledgements in one transaction: all if it returns, none if it throws. Each device's receipt and read of a
  /// message is stored once, even if repeated. A read also applies its badge rule.
  public func acknowledge(
    _ acknowledgements: [Acknowledgement], wantsReceipts: Bool, now: Int64
  ) throws(RegistryError) -> [AcknowledgementOutcome] {
    guard !acknowledgements.isEmpty else { return [] }
    var apps: [[UInt8]: Int64] = [:]
    for name in Set(acknowledgements.map(\.app)) { apps[name] = try knownApp(name) }
    return try transaction(.notes(of: apps.values.sorted())) { () throws(RegistryError) in
      let devices = try acknowledgingDevices(acknowledgements, apps)
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

  private func acknowledgingDevices(
    _ acknowledgements: [Acknowledgement], _ apps: [[UInt8]: Int64]
  ) throws(RegistryError) -> [Found?] {
    var devices = try found(
      acknowledgements.map { acknowledgement in
        apps[acknowledgement.app].map { (acknowledgement.device, $0) } ?? (.invalid, 0)
      }, withReplaced: true)
    let named = acknowledgements.indices.filter { acknowledgements[$0].user != nil }
    let users = try names(of: named.compactMap { devices[$0]?.user })
    for index in named where devices[index]?.user.flatMap({ users[$0] }) != acknowledgements[index].user {
      devices[index] = nil
    }
    return devices
  }

  private func messages(of acknowledgements: [Acknowledgement], _ devices: [Found?]) throws(RegistryError) -> [Noted?] {
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
    try session.runEach(SQL.messageByKey, byKey.map { [.int($0.keys.lowerBound), .int($0.keys.upperBound)] }) { place, row in
      messages[byKey[place].index] = Noted(key: row.int(0), id: row.bytes(1))
    }
    return messages
  }

  private func note(
    _ acknowledgements: [Acknowledgement], _ devices: [Found?], _ messages: [Noted?], _ now: Int64
  ) throws(RegistryError) -> [Bool] {
    var isNew = [Bool](repeating: false, count: acknowledgements.count)
    var (received, read, forced): ([Asked], [Asked], [Asked]) = ([], [], [])
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
    for (statement, sets) in [(SQL.noteReceived, received), (SQL.noteRead, read), (SQL.noteForced, forced)] {
      try session.runEach(statement, sets.map(\.values)) { index, _ in isNew[sets[index].index] = true }
    }
    return isNew
  }

  private func applyBadgeRules(
    _ acknowledgements: [Acknowledgement], _ devices: [Found?], _ isNew: [Bool]
  ) throws(RegistryError) {
    var rules: [(counter: Int64, rule: BadgeRule)] = []
    for (index, acknowledgement) in acknowledgements.enumerated() where isNew[index] {
      guard let counter = devices[index]?.counter else { continue }
      switch acknowledgement.operation {
      case .received: continue
      case .read(_, let rule): rules.append((counter, rule))
      case .badge(let number): rules.append((counter, .update(number)))
      }
    }
    var badges = try badges(of: rules.map(\.counter))
    let before = badges
    for (counter, rule) in rules {
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
    var counts: [AcknowledgedSend: (received: Int, read: Int)] = [:]
    for (index, acknowledgement) in acknowledgements.enumerated() where isNew[index] {
      guard let message = messages[index], let event = acknowledgement.operation.event else { continue }
      let send = AcknowledgedSend(app: acknowledgement.app, message: message.id)
      if event == .read { counts[send, default: (0, 0)].read += 1 } else { counts[send, default: (0, 0)].received += 1 }
    }
    try session.runEach(
      SQL.countForCampaign, counts.map { [.blob($0.message), .text($0.app), .int($1.received), .int($1.read)] })
  }

  private func addReceipts(
    _ acknowledgements: [Acknowledgement], _ devices: [Found?], _ messages: [Noted?],
    _ outcomes: inout [AcknowledgementOutcome]
  ) throws(RegistryError) {
    let withReceipt = outcomes.indices.filter { index in
      switch outcomes[index] {
      case .noted: true
      case .repeated: acknowledgements[index].isRedelivered
      case .unknown: false
      }
    }
    let users = try names(of: withReceipt.compactMap { devices[$0]?.user })
    let badges = try badges(of: withReceipt.compactMap { devices[$0]?.counter })
    let times = try times(of: withReceipt.map { [.int(messages[$0]?.key), .int(devices[$0]?.counter)] })
    for (index, times) in zip(withReceipt, times) {
      let acknowledgement = acknowledgements[index]
      guard let device = devices[index], let message = messages[index], let event = acknowledgement.operation.event else {
        continue
      }
      let receipt = Receipt(
        event: event, app: acknowledgement.app, messageID: message.id, registration: device.key.registration,
        user: device.user.flatMap { users[$0] }, at: (event == .received ? times.received : times.read) ?? acknowledgement.at,
        badge: badges[device.counter] ?? 0)
      if case .noted = outcomes[index] { outcomes[index] = .noted(receipt) } else { outcomes[index] = .repeated(receipt) }
    }
  }

  private func names(of users: [Int64]) throws(RegistryError) -> [Int64: [UInt8]] {
    try session.byNumber(SQL.userByID, users) { $0.bytes(0) }
  }

  func times(of notes: [[SQLValue]]) throws(RegistryError) -> [AcknowledgementTimes] {
    try session.ofEach(SQL.noteTimes, notes) { row in
      AcknowledgementTimes(received: row.optionalInt(0), read: row.optionalInt(1))
    }
    .map { $0 ?? AcknowledgementTimes() }
  }
}

/// The acknowledged message, or the occasion of a forced badge.
struct Noted {
  let key: Int64
  let id: [UInt8]
}

struct AcknowledgedSend: Hashable {
  let app: [UInt8]
  let message: [UInt8]
}

extension SQL {
  static let messageByKey = Statement("SELECT message, id FROM messages WHERE message BETWEEN ?1 AND ?2 LIMIT 1")
  static let userByID = Statement("SELECT name FROM users WHERE id = ?1")

  /// Each returns a row if it is new.
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
