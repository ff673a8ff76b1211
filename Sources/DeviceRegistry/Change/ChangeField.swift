import PushCore

/// The fields of a change (docs/schema/registry-change.schema.json). The raw value is the key in JSON and the column in CSV.
enum ChangeField: String, CaseIterable {
  case op, app
  case platform, token, installation, environment, sender, user, name, locale, topics, kind, activity
  case timeZone = "time_zone"
  case appVersion = "app_version"
  case registeredAt = "registered_at"
  case registration, topic, tokens, users, group
  case notificationKey = "notification_key"
  case notificationKeyName = "notification_key_name"
  case registrationIDs = "registration_ids"

  /// The columns of `devices import`, in the order of an export.
  static let columns: [ChangeField] = [
    .app, .platform, .token, .installation, .environment, .sender, .user, .name, .locale, .timeZone, .appVersion, .topics,
    .kind, .activity, .registeredAt,
  ]

  /// What one text of the field must be, in words; nil when it is.
  func broken(by text: [UInt8]) -> String? {
    guard !text.isEmpty else { return "must not be empty" }
    switch self {
    case .topic, .topics:
      guard case .success(.topic) = Target.classify(Array("/topics/".utf8) + Self.topicName(text)) else {
        return "a topic's name has 1 to 899 of the characters a-z A-Z 0-9 - _ . ~ %"
      }
      return nil
    case .user, .users:
      return TextForm.isUserID(text[...]) ? nil : TextForm.userIDRule
    case .environment:
      return Self.environment(text) == nil ? Self.expected(["production", "sandbox"], notOneOf: text) : nil
    case .registeredAt:
      return Timestamp.milliseconds(of: text) == nil ? "expected a time like 2026-11-20T21:22:00.123Z" : nil
    case .kind:
      return Self.kind(text) == nil ? Self.expected(TokenKind.allCases.map(\.name), notOneOf: text) : nil
    case .platform:
      return Self.platform(text) == nil ? Self.expected(["apns", "fcm"], notOneOf: text) : nil
    default:
      guard text.count <= most else { return "\(text.count) bytes, at most \(most) allowed" }
      guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return "holds a control character" }
      return nil
    }
  }

  private static func expected(_ words: [String], notOneOf text: [UInt8]) -> String {
    let known = words.dropLast().joined(separator: ", ") + (words.last.map { " or \($0)" } ?? "")
    return "expected \(known)\(Spelling.suggestion(for: String(decoding: text, as: UTF8.self), among: words))"
  }

  /// Bytes.
  var most: Int {
    switch self {
    case .token: 4096
    case .name: 1024
    case .locale, .timeZone, .appVersion: 64
    default: 255
    }
  }

  static func platform(_ text: [UInt8]) -> Platform? {
    if text == Array("apns".utf8) { return .apns }
    return text == Array("fcm".utf8) ? .fcm : nil
  }

  static func kind(_ text: [UInt8]) -> TokenKind? { TokenKind.allCases.first { text.elementsEqual($0.name.utf8) } }

  static func environment(_ text: [UInt8]) -> DeviceEnvironment? {
    DeviceEnvironment.allCases.first { $0.name.map { Array($0.utf8) == text } ?? false }
  }

  /// A topic's name, which may come with the prefix that sends use.
  static func topicName(_ text: [UInt8]) -> [UInt8] {
    text.starts(with: "/topics/".utf8) ? Array(text.dropFirst(8)) : text
  }

  /// A provider's token in the form it is stored in; nil when it can't be one. It may come with the prefix that sends use; a Firebase
  /// installation's id always has it, and keeps it.
  static func token(_ text: [UInt8], _ platform: Platform) -> [UInt8]? {
    let prefix = Array((platform == .apns ? "apns:" : "fcm:").utf8)
    let isWhole = text.starts(with: prefix) || platform == .fcm && FCMAddress(text[...]) == .installation
    switch Target.classify(isWhole ? text : prefix + text) {
    case .success(.apns(let token)), .success(.fcm(let token)): return token
    default: return nil
    }
  }

  /// A token or a registration, by its form.
  static func device(_ text: [UInt8]) -> DeviceReference {
    switch Target.classify(text) {
    case .success(.apns(let token)): .token(.apns, token)
    case .success(.fcm(let token)): .token(.fcm, token)
    case .success(.registration(let id)): .registration(id)
    default: .invalid
    }
  }

  /// The device that `token`, `registration` or `installation` names.
  func reference(_ text: [UInt8]) throws(ChangeRefusal) -> DeviceReference {
    if self == .installation { return .installation(text) }
    let reference = ChangeField.device(text)
    if case .registration = reference { return reference }
    guard self == .token, reference != .invalid else {
      throw ChangeRefusal(.invalidRegistration, "\(rawValue): not \(self == .token ? "a token" : "an issued registration")")
    }
    return reference
  }
}
