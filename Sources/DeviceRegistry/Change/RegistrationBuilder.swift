import PushCore

struct RegistrationBuilder {
  private var app: [UInt8]?
  private var platform: Platform?
  private var token: [UInt8]?
  /// Of web push. In CSV, it comes as columns.
  var subscription: WebPushSubscription?
  private var columns: [ChangeField: [UInt8]] = [:]
  private var keyID: [UInt8]?
  private var rest = Registration(app: [], platform: .apns, token: [])

  init(app: [UInt8]? = nil) { self.app = app }

  mutating func set(_ field: ChangeField, _ text: [UInt8]) throws(ChangeRefusal) {
    try field.check(text)
    switch field {
    case .app: app = text
    case .platform: platform = ChangeField.platform(text)
    case .token: token = text
    case .endpoint, .p256dh, .auth: columns[field] = text
    case .applicationServerKey: keyID = ChangeField.keyID(text)
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
    default: throw .invalid("\(field.rawValue): not a field of register")
    }
  }

  func registration() throws(ChangeRefusal) -> Registration {
    guard let app else { throw .invalid("app: missing") }
    guard let platform else { throw .invalid("platform: missing") }
    let stored = platform == .webpush ? try subscribedToken() : try issuedToken(platform)
    if rest.name != nil, rest.user == nil { throw .invalid("name: without a user") }
    if rest.environment != nil, platform != .apns { throw .invalid("environment: only for apns") }
    if let kind = rest.kind, kind != .alert, platform != .apns {
      throw .invalid("kind: \(kind.name) only for apns")
    }
    guard (rest.activity != nil) == (rest.kind == .liveActivity) else {
      throw .invalid(
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

  private func issuedToken(_ platform: Platform) throws(ChangeRefusal) -> [UInt8] {
    let other: ChangeField? =
      subscription != nil ? .subscription : !columns.isEmpty ? .endpoint : keyID != nil ? .applicationServerKey : nil
    if let other { throw .invalid("\(other.rawValue): only for webpush") }
    guard let token else { throw .invalid("token: missing") }
    guard let stored = ChangeField.token(token, platform) else {
      throw ChangeRefusal(
        .invalidRegistration,
        platform == .apns
          ? "token: expected an even number of 2 to 200 hexadecimal digits"
          : "token: a byte beyond a-z A-Z 0-9 _ : . % -, or fid: without an installation's 22 characters")
    }
    return stored
  }

  private func subscribedToken() throws(ChangeRefusal) -> [UInt8] {
    guard token == nil else { throw .invalid("token: not for webpush, which has a subscription") }
    guard let subscription = try registered() else { throw .invalid("subscription: missing") }
    return subscription.token(keyID: keyID ?? WebPushSubscription.noKeyID)
  }

  private func registered() throws(ChangeRefusal) -> WebPushSubscription? {
    guard !columns.isEmpty else { return subscription }
    if let field = ChangeField.subscriptionColumns.first(where: { columns[$0] == nil }) {
      throw .invalid("\(field.rawValue): missing")
    }
    do throws(Rejection) {
      return try WebPushSubscription(
        endpoint: columns[.endpoint] ?? [], p256dh: columns[.p256dh] ?? [], auth: columns[.auth] ?? [])
    } catch {
      throw ChangeRefusal(.invalidRegistration, error.reason.replacing("keys.", with: ""))
    }
  }
}
