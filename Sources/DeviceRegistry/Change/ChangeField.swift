import PushCore
import Wire

/// The fields of a change (docs/schema/registry-change.schema.json). The raw value is the JSON key and the CSV column.
enum ChangeField: String, CaseIterable {
  case op, app
  case platform, token, installation, environment, sender, user, name, locale, topics, kind, activity
  /// A browser's subscription: one object in JSON, three columns in CSV.
  case subscription, endpoint, p256dh, auth
  case applicationServerKey = "application_server_key"
  case timeZone = "time_zone"
  case appVersion = "app_version"
  case registeredAt = "registered_at"
  case registration, topic, tokens, users, group
  case notificationKey = "notification_key"
  case notificationKeyName = "notification_key_name"
  case registrationIDs = "registration_ids"

  private static let ofAnyDevice: [ChangeField] = [
    .app, .platform, .token, .installation, .environment, .sender, .user, .name, .locale, .timeZone, .appVersion, .topics,
    .kind, .activity, .registeredAt,
  ]
  /// The fields of `register`, in the order of an export.
  static let registering = ofAnyDevice + [.subscription, .applicationServerKey]
  /// The columns of `devices import`, in the order of an export.
  static let columns = ofAnyDevice + subscriptionColumns + [.applicationServerKey]
  static let subscriptionColumns: [ChangeField] = [.endpoint, .p256dh, .auth]

  /// - Parameter name: the name for the error text if it isn't this field's.
  func check(_ text: [UInt8], named name: String? = nil) throws(ChangeRefusal) {
    if let rule = broken(by: text) { throw .invalid("\(name ?? rawValue): \(rule)") }
  }

  /// The rule that a text of this field breaks, in words; nil if it is valid.
  private func broken(by text: [UInt8]) -> String? {
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
      return Self.platform(text) == nil ? Self.expected(Platform.allCases.map(\.word), notOneOf: text) : nil
    case .applicationServerKey:
      return Self.keyID(text) == nil ? "expected a public key of P-256 in Base64, or its id of 16 hexadecimal digits" : nil
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

  /// Maximum bytes.
  var most: Int {
    switch self {
    case .token: 4096
    case .endpoint: WebPushSubscription.longestEndpoint
    case .name: 1024
    case .locale, .timeZone, .appVersion: 64
    default: 255
    }
  }

  static func platform(_ text: [UInt8]) -> Platform? { Platform.allCases.first { text.elementsEqual($0.word.utf8) } }

  /// The id of a VAPID key that is given by its public half or by its id.
  static func keyID(_ text: [UInt8]) -> [UInt8]? {
    let digits = text.compactMap(\.hexValue)
    guard text.count == 16, digits.count == 16 else { return WebPushSubscription.keyID(ofApplicationServerKey: text) }
    return stride(from: 0, to: 16, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
  }

  static func kind(_ text: [UInt8]) -> TokenKind? { TokenKind.allCases.first { text.elementsEqual($0.name.utf8) } }

  static func environment(_ text: [UInt8]) -> DeviceEnvironment? {
    DeviceEnvironment.allCases.first { $0.name.map { Array($0.utf8) == text } ?? false }
  }

  /// Removes the prefix that sends use, if it is there.
  static func topicName(_ text: [UInt8]) -> [UInt8] {
    text.starts(with: "/topics/".utf8) ? Array(text.dropFirst(8)) : text
  }

  /// A provider's token in its stored form; nil if it is invalid. The prefix is optional, except for Firebase installation ids.
  static func token(_ text: [UInt8], _ platform: Platform) -> [UInt8]? {
    let prefix = Array("\(platform.word):".utf8)
    let isWhole = text.starts(with: prefix) || platform == .fcm && FCMAddress(text[...]) == .installation
    switch Target.classify(isWhole ? text : prefix + text) {
    case .success(.apns(let token)), .success(.fcm(let token)): return Array(token)
    default: return nil
    }
  }

  /// Distinguishes tokens, endpoints and registrations by their form.
  static func device(_ text: [UInt8]) -> DeviceReference {
    if isEndpoint(text) { return .token(.webpush, WebPushSubscription.normal(text)) }
    return switch Target.classify(text) {
    case .success(.apns(let token)): .token(.apns, Array(token))
    case .success(.fcm(let token)): .token(.fcm, Array(token))
    case .success(.webpush(let token)): .token(.webpush, Array(token))
    case .success(.registration(let id)): .registration(id)
    default: .invalid
    }
  }

  private static func isEndpoint(_ text: [UInt8]) -> Bool {
    text.count <= WebPushSubscription.longestEndpoint && text.starts(with: "https://".utf8)
      && text.allSatisfy { 0x21...0x7E ~= $0 }
  }

  func reference(_ text: [UInt8]) throws(ChangeRefusal) -> DeviceReference {
    if self == .installation { return .installation(text) }
    let reference = ChangeField.device(text)
    if case .registration = reference { return reference }
    guard self == .token, reference != .invalid else {
      let isSubscription = text.starts(with: "\(Platform.webpush.word):".utf8)
      let expected = isSubscription ? "base64url of a subscription after webpush:" : "a token"
      throw ChangeRefusal(.invalidRegistration, "\(rawValue): not \(self == .token ? expected : "an issued registration")")
    }
    return reference
  }
}
