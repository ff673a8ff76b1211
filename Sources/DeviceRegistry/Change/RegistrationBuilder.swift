import PushCore

/// Puts a registration together from texts, whether they come from JSON or from CSV.
struct RegistrationBuilder {
  private var app: [UInt8]?
  private var platform: Platform?
  private var token: [UInt8]?
  private var rest = Registration(app: [], platform: .apns, token: [])

  init(app: [UInt8]? = nil) { self.app = app }

  mutating func set(_ field: ChangeField, _ text: [UInt8]) throws(ChangeRefusal) {
    if let rule = field.broken(by: text) { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(rule)") }
    switch field {
    case .app: app = text
    case .platform: platform = ChangeField.platform(text)
    case .token: token = text
    case .installation: rest.installation = text
    case .environment: rest.environment = ChangeField.environment(text)
    case .sender: rest.sender = text
    case .user: rest.user = text
    case .name: rest.name = text
    case .locale: rest.locale = text
    case .timeZone: rest.timeZone = text
    case .appVersion: rest.appVersion = text
    case .kind: rest.kind = ChangeField.kind(text)
    case .activity: rest.activity = text
    case .registeredAt: rest.registeredAt = Timestamp.milliseconds(of: text)
    case .topics: rest.topics.append(ChangeField.topicName(text))
    default: throw ChangeRefusal(.invalidParameters, "\(field.rawValue): not a field of register")
    }
  }

  func registration() throws(ChangeRefusal) -> Registration {
    guard let app else { throw ChangeRefusal(.invalidParameters, "app: missing") }
    guard let platform else { throw ChangeRefusal(.invalidParameters, "platform: missing") }
    guard let token else { throw ChangeRefusal(.invalidParameters, "token: missing") }
    guard let stored = ChangeField.token(token, platform) else {
      throw ChangeRefusal(
        .invalidRegistration,
        platform == .apns
          ? "token: expected an even number of 2 to 200 hexadecimal digits"
          : "token: a byte beyond a-z A-Z 0-9 _ : . % -, or fid: without an installation's 22 characters")
    }
    if rest.name != nil, rest.user == nil { throw ChangeRefusal(.invalidParameters, "name: without a user") }
    if rest.environment != nil, platform != .apns { throw ChangeRefusal(.invalidParameters, "environment: only for apns") }
    if let kind = rest.kind, kind != .alert, platform != .apns {
      throw ChangeRefusal(.invalidParameters, "kind: \(kind.name) only for apns")
    }
    guard (rest.activity != nil) == (rest.kind == .liveActivity) else {
      throw ChangeRefusal(
        .invalidParameters,
        rest.activity == nil ? "activity: missing, a live activity's token needs it" : "activity: only of kind live_activity")
    }
    var registration = rest
    registration.app = app
    registration.platform = platform
    registration.token = stored
    if registration.topics.count > 1 {
      var seen: Set<[UInt8]> = []
      registration.topics.removeAll { !seen.insert($0).inserted }
    }
    return registration
  }
}
