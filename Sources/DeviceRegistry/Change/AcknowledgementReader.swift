import PushCore

extension Acknowledgement {
  /// Maximum bytes of a message with acknowledgements: room for a thousand.
  public static let mostBytes = 1 << 20
  public static let mostTogether = 1_000

  /// Reads one object, or an array of up to ``mostTogether`` objects. Strict: one invalid object refuses all and is named by
  /// its index.
  /// - Parameters:
  ///   - size: bytes before truncation.
  ///   - defaultApp: the app if `app` is missing.
  ///   - messageID: the message's id, which identifies a forced badge; nil if there is none.
  ///   - now: Unix milliseconds; used if `at` is missing.
  public static func parse(
    _ body: [UInt8], size: UInt64, defaultApp: [UInt8]?, messageID: [UInt8]?, now: Int64
  ) -> Result<[Acknowledgement], ChangeRefusal> {
    guard size <= mostBytes else {
      return .failure(ChangeRefusal(.invalidParameters, "too large: \(size) bytes, acknowledgements may have \(mostBytes)"))
    }
    return Result { () throws(ChangeRefusal) in
      let document = try JSONDocument(change: body, most: mostBytes, depth: 3)
      return try AcknowledgementReader(document: document, defaultApp: defaultApp, messageID: messageID, now: now).all()
    }
  }
}

/// The fields of an acknowledgement (docs/schema/acknowledgement.schema.json).
enum AcknowledgementField: String, CaseIterable {
  case op, app, registration, token, installation, at, seqno, badge
  /// The user of the device; UPMC's libraries call it `cuid`.
  case user, cuid
  case messageID = "message_id"
  case pushKey = "push_key"
  case badgeOption = "badge_option"
  /// A device's statement that it has already acknowledged. Ignored.
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
      throw .invalid("\(count) acknowledgements, 1 to \(Acknowledgement.mostTogether) allowed")
    }
    var all: [Acknowledgement] = []
    all.reserveCapacity(count)
    for element in document.elements(of: document.root) { all.append(try one(element, all.count, "[\(all.count)]")) }
    return all
  }

  /// - Parameter place: the index for error texts; empty for a single object.
  private func one(_ node: Int, _ index: Int, _ place: String) throws(ChangeRefusal) -> Acknowledgement {
    do throws(ChangeRefusal) { return try acknowledgement(node, index) } catch {
      throw place.isEmpty ? error : ChangeRefusal(error.code, "\(place): \(error.reason)")
    }
  }

  private func acknowledgement(_ node: Int, _ index: Int) throws(ChangeRefusal) -> Acknowledgement {
    let values: Values = try document.fields(of: node)
    guard let op = values[.op], document.kind(op) == .string else {
      throw .invalid("op: expected one of received, read, badge")
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
    default: throw .invalid("op: expected one of received, read, badge")
    }
    return acknowledgement
  }

  private func refuse(_ values: Values, _ fields: [AcknowledgementField], _ operation: String) throws(ChangeRefusal) {
    for field in fields where values[field] != nil {
      throw .invalid("\(field.rawValue): not a field of \(operation)")
    }
  }

  private func app(_ values: Values) throws(ChangeRefusal) -> [UInt8] {
    let app = values[.app] == nil ? defaultApp ?? [] : try text(values, .app)
    guard app.isUTF8 else { throw .invalid("app: not UTF-8") }
    try ChangeField.app.check(app)
    return app
  }

  private func user(_ values: Values) throws(ChangeRefusal) -> [UInt8]? {
    guard values[.user] == nil || values[.cuid] == nil else { throw .invalid("cuid: not beside user") }
    guard let field = [AcknowledgementField.user, .cuid].first(where: { values[$0] != nil }) else { return nil }
    let user = try text(values, field)
    try ChangeField.user.check(user, named: field.rawValue)
    return user
  }

  private func device(_ values: Values) throws(ChangeRefusal) -> DeviceReference {
    let field = try values.only(.registration, .token, .installation)
    let rules: ChangeField = field == .registration ? .registration : field == .token ? .token : .installation
    let text = try text(values, field)
    try rules.check(text)
    return try rules.reference(text)
  }

  private func message(_ values: Values) throws(ChangeRefusal) -> MessageReference {
    let field = try values.only(.messageID, .pushKey, .seqno)
    let number = try number(values, field)
    let name: [UInt8]
    if let number { name = Array(String(number).utf8) } else { name = try text(values, field) }
    guard (1...255).contains(name.count) else { throw .invalid("\(field.rawValue): \(name.count) bytes, 1 to 255 allowed") }
    switch field {
    case .pushKey:
      guard let key = MessageKey.key(ofPushKey: name) else { throw .invalid("push_key: expected 40 hexadecimal digits") }
      return .key(key...key)
    case .seqno:
      guard name.count <= 16, name.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }),
        let number = UInt64(String(decoding: name, as: UTF8.self)), let keys = MessageKey.keys(ofNumber: number)
      else {
        throw .invalid("seqno: expected a number of up to 53 bits")
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
    default: throw .invalid("badge_option: expected keep, reset or update")
    }
  }

  private func forced(_ values: Values) throws(ChangeRefusal) -> Int64 {
    guard values[.badgeOption] != nil else { return try badge(values) }
    guard try text(values, .badgeOption) == Array("reset".utf8), values[.badge] == nil else {
      throw .invalid("badge_option: of a badge only reset, without a number")
    }
    return 0
  }

  private func badge(_ values: Values) throws(ChangeRefusal) -> Int64 {
    guard let number = try number(values, .badge), (1...1_000).contains(number) else {
      throw .invalid("badge: expected a whole number from 1 to 1000")
    }
    return number
  }

  private func time(_ values: Values) throws(ChangeRefusal) -> Int64? {
    guard values[.at] != nil else { return nil }
    guard let time = Timestamp.milliseconds(of: try text(values, .at)), time >= 0 else {
      throw .invalid("at: expected a time like 2026-11-20T21:22:00.123Z")
    }
    return time
  }

  private func text(_ values: Values, _ field: AcknowledgementField) throws(ChangeRefusal) -> [UInt8] {
    guard let node = values[field], document.kind(node) == .string else {
      throw .invalid("\(field.rawValue): expected a string")
    }
    return document.string(node)
  }

  private func number(_ values: Values, _ field: AcknowledgementField) throws(ChangeRefusal) -> Int64? {
    guard let node = values[field], document.kind(node) == .number else { return nil }
    guard let number = document.integer(node) else { throw .invalid("\(field.rawValue): expected a whole number") }
    return number
  }
}
