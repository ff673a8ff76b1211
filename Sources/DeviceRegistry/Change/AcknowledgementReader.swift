import PushCore

extension Acknowledgement {
  /// Bytes that a message of acknowledgements may have: room for a thousand of them.
  public static let mostBytes = 1 << 20
  public static let mostTogether = 1_000

  /// Reads one object, or an array of up to ``mostTogether``. Strict, as changes are: one that can't be read refuses all, by its place.
  /// - Parameters:
  ///   - size: bytes that it had before it was cut to what is kept of it.
  ///   - defaultApp: what `app` is where it is missing.
  ///   - messageID: the message's own id, by which a forced badge is told from another; nil where it has none.
  ///   - now: unix milliseconds, what `at` is where it is missing.
  public static func parse(
    _ body: [UInt8], size: UInt64, defaultApp: [UInt8]?, messageID: [UInt8]?, now: Int64
  ) -> Result<[Acknowledgement], ChangeRefusal> {
    guard size <= mostBytes else {
      return .failure(ChangeRefusal(.invalidParameters, "too large: \(size) bytes, acknowledgements may have \(mostBytes)"))
    }
    do throws(ChangeRefusal) {
      let document: JSONDocument
      do throws(JSONError) {
        document = try JSONDocument(body, limits: JSONLimits(bytes: mostBytes, depth: 3))
      } catch {
        throw ChangeRefusal(.invalidJSON, error.description)
      }
      let reader = AcknowledgementReader(document: document, defaultApp: defaultApp, messageID: messageID, now: now)
      return .success(try reader.all())
    } catch {
      return .failure(error)
    }
  }
}

/// The fields of an acknowledgement (docs/schema/acknowledgement.schema.json).
enum AcknowledgementField: String, CaseIterable {
  case op, app, registration, token, installation, at, seqno, badge
  /// The user of the device; `cuid` is what UPMC's libraries call it.
  case user, cuid
  case messageID = "message_id"
  case pushKey = "push_key"
  case badgeOption = "badge_option"
  /// A device's word that it has acknowledged already; nothing follows from it.
  case feedback
}

private struct AcknowledgementReader {
  let document: JSONDocument
  let defaultApp: [UInt8]?
  let messageID: [UInt8]?
  let now: Int64

  private typealias Values = [AcknowledgementField: Int]

  func all() throws(ChangeRefusal) -> [Acknowledgement] {
    guard document.kind(document.root) == .array else { return [try one(document.root, 0, "")] }
    let count = document.count(document.root)
    guard (1...Acknowledgement.mostTogether).contains(count) else {
      throw ChangeRefusal(.invalidParameters, "\(count) acknowledgements, 1 to \(Acknowledgement.mostTogether) allowed")
    }
    var all: [Acknowledgement] = []
    all.reserveCapacity(count)
    for element in document.elements(of: document.root) { all.append(try one(element, all.count, "[\(all.count)]")) }
    return all
  }

  /// - Parameter place: where it stands, for who looks for what is wrong; empty for one alone.
  private func one(_ node: Int, _ index: Int, _ place: String) throws(ChangeRefusal) -> Acknowledgement {
    do throws(ChangeRefusal) { return try acknowledgement(node, index) } catch {
      throw place.isEmpty ? error : ChangeRefusal(error.code, "\(place): \(error.reason)")
    }
  }

  private func acknowledgement(_ node: Int, _ index: Int) throws(ChangeRefusal) -> Acknowledgement {
    let values = try values(of: node)
    guard let op = values[.op], document.kind(op) == .string else {
      throw ChangeRefusal(.invalidParameters, "op: expected one of received, read, badge")
    }
    let at = try time(values)
    var acknowledgement = Acknowledgement(
      app: try app(values), device: try device(values), operation: .badge(1), at: at ?? now)
    acknowledgement.user = try user(values)
    switch document.text(op) {
    case "received":
      try refuse(values, [.badge, .badgeOption], "received")
      acknowledgement.operation = .received(try message(values))
    case "read": acknowledgement.operation = .read(try message(values), try rule(values))
    case "badge":
      try refuse(values, [.messageID, .pushKey, .seqno], "badge")
      let badge = try forced(values)
      acknowledgement.operation = .badge(badge)
      if let messageID {
        acknowledgement.occasion = messageID + Array("[\(index)]".utf8)
      } else if let at {
        acknowledgement.occasion = Array("\(badge) at \(at)".utf8)
      }
    default: throw ChangeRefusal(.invalidParameters, "op: expected one of received, read, badge")
    }
    return acknowledgement
  }

  private func values(of node: Int) throws(ChangeRefusal) -> Values {
    guard document.kind(node) == .object else {
      throw ChangeRefusal(.invalidParameters, "expected an object, found \(document.kind(node).words)")
    }
    var values: Values = [:]
    for (name, value) in document.members(of: node) {
      let key = document.text(name)
      guard let field = AcknowledgementField(rawValue: key) else {
        let meant = Spelling.suggestion(for: key, among: AcknowledgementField.allCases.map(\.rawValue))
        throw ChangeRefusal(
          .invalidParameters, "\(document.pathComponent(name)): unknown key at byte \(document.offset(name))\(meant)")
      }
      values[field] = value
    }
    return values
  }

  private func refuse(_ values: Values, _ fields: [AcknowledgementField], _ operation: String) throws(ChangeRefusal) {
    for field in fields where values[field] != nil {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): not a field of \(operation)")
    }
  }

  // MARK: values

  private func app(_ values: Values) throws(ChangeRefusal) -> [UInt8] {
    let app = values[.app] == nil ? defaultApp ?? [] : try text(values, .app)
    guard app.isUTF8 else { throw ChangeRefusal(.invalidParameters, "app: not UTF-8") }
    if let rule = ChangeField.app.broken(by: app) { throw ChangeRefusal(.invalidParameters, "app: \(rule)") }
    return app
  }

  private func user(_ values: Values) throws(ChangeRefusal) -> [UInt8]? {
    guard values[.user] == nil || values[.cuid] == nil else {
      throw ChangeRefusal(.invalidParameters, "cuid: not beside user")
    }
    guard let field = [AcknowledgementField.user, .cuid].first(where: { values[$0] != nil }) else { return nil }
    let user = try text(values, field)
    if let rule = ChangeField.user.broken(by: user) { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(rule)") }
    return user
  }

  /// Exactly one of registration, token, installation.
  private func device(_ values: Values) throws(ChangeRefusal) -> DeviceReference {
    let given = [
      (AcknowledgementField.registration, ChangeField.registration), (.token, .token), (.installation, .installation),
    ]
    .filter { values[$0.0] != nil }
    guard given.count == 1, let (field, rules) = given.first else {
      throw ChangeRefusal(.invalidParameters, "expected exactly one of registration, token, installation")
    }
    let text = try text(values, field)
    if let rule = rules.broken(by: text) { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(rule)") }
    return try rules.reference(text)
  }

  /// Exactly one of message_id, push_key, seqno.
  private func message(_ values: Values) throws(ChangeRefusal) -> MessageReference {
    let given = [AcknowledgementField.messageID, .pushKey, .seqno].filter { values[$0] != nil }
    guard given.count == 1, let field = given.first else {
      throw ChangeRefusal(.invalidParameters, "expected exactly one of message_id, push_key, seqno")
    }
    let number = try number(values, field)
    let name: [UInt8]
    if let number { name = Array(String(number).utf8) } else { name = try text(values, field) }
    guard (1...255).contains(name.count) else {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(name.count) bytes, 1 to 255 allowed")
    }
    switch field {
    case .pushKey:
      guard let key = MessageKey.key(ofPushKey: name) else {
        throw ChangeRefusal(.invalidParameters, "push_key: expected 40 hexadecimal digits")
      }
      return .key(key...key)
    case .seqno:
      guard name.count <= 16, name.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
        let number = UInt64(String(decoding: name, as: UTF8.self)), let keys = MessageKey.keys(ofNumber: number)
      else {
        throw ChangeRefusal(.invalidParameters, "seqno: expected a number of up to 53 bits")
      }
      return .key(keys)
    default: return .id(name)
    }
  }

  private func rule(_ values: Values) throws(ChangeRefusal) -> BadgeRule {
    let option = values[.badgeOption] == nil ? Array("keep".utf8) : try text(values, .badgeOption)
    switch String(decoding: option, as: UTF8.self) {
    case "keep": return .keep
    case "reset": return .reset
    case "update": return .update(try badge(values))
    default: throw ChangeRefusal(.invalidParameters, "badge_option: expected keep, reset or update")
    }
  }

  /// What the counter is forced to.
  private func forced(_ values: Values) throws(ChangeRefusal) -> Int64 {
    guard values[.badgeOption] != nil else { return try badge(values) }
    guard try text(values, .badgeOption) == Array("reset".utf8), values[.badge] == nil else {
      throw ChangeRefusal(.invalidParameters, "badge_option: of a badge only reset, without a number")
    }
    return 0
  }

  private func badge(_ values: Values) throws(ChangeRefusal) -> Int64 {
    guard let number = try number(values, .badge), (1...1_000).contains(number) else {
      throw ChangeRefusal(.invalidParameters, "badge: expected a whole number from 1 to 1000")
    }
    return number
  }

  private func time(_ values: Values) throws(ChangeRefusal) -> Int64? {
    guard values[.at] != nil else { return nil }
    guard let time = Timestamp.milliseconds(of: try text(values, .at)), time >= 0 else {
      throw ChangeRefusal(.invalidParameters, "at: expected a time like 2026-11-20T21:22:00.123Z")
    }
    return time
  }

  private func text(_ values: Values, _ field: AcknowledgementField) throws(ChangeRefusal) -> [UInt8] {
    guard let node = values[field], document.kind(node) == .string else {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): expected a string")
    }
    return document.string(node)
  }

  /// Nil where the value is no number.
  private func number(_ values: Values, _ field: AcknowledgementField) throws(ChangeRefusal) -> Int64? {
    guard let node = values[field], document.kind(node) == .number else { return nil }
    do throws(JSONNumberError) { return Int64(try document.integer(node)) } catch {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): expected a whole number")
    }
  }
}
