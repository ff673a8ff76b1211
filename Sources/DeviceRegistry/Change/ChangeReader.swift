import PushCore

extension RegistryChange {
  /// Maximum bytes of a change: room for a thousand tokens of the longest form, or ten thousand usual FCM tokens.
  public static let mostBytes = 4 << 20

  /// Reads a change from one JSON object. Strict: refuses unknown keys, keys of other operations, wrong types and null.
  /// - Parameters:
  ///   - size: bytes before truncation; nil for a complete body.
  ///   - defaultApp: the app if `app` is missing.
  ///   - ignored: a key to ignore.
  public static func parse(
    _ body: [UInt8], size: UInt64? = nil, defaultApp: [UInt8]? = nil, limits: RegistryLimits = RegistryLimits(),
    ignoring ignored: String? = nil
  ) -> Result<RegistryChange, ChangeRefusal> {
    let size = size ?? UInt64(body.count)
    guard size <= mostBytes else {
      return .failure(ChangeRefusal(.invalidParameters, "too large: \(size) bytes, a change may have \(mostBytes)"))
    }
    return Result { () throws(ChangeRefusal) in try ChangeReader(body, defaultApp, limits, ignored).change() }
  }
}

enum ChangeOperation: String, CaseIterable {
  case register, unregister, subscribe, unsubscribe
  case unregisterUser = "unregister_user"
  case groupCreate = "group_create"
  case groupAdd = "group_add"
  case groupRemove = "group_remove"
  case groupJoin = "group_join"
  case groupLeave = "group_leave"

  var fields: [ChangeField] {
    switch self {
    case .register: ChangeField.registering
    case .unregister, .unregisterUser: [.app, .token, .registration, .installation]
    case .subscribe, .unsubscribe: [.app, .topic, .tokens]
    case .groupCreate: [.app, .notificationKeyName, .registrationIDs, .users]
    case .groupAdd, .groupRemove: [.app, .notificationKey, .notificationKeyName, .registrationIDs, .users]
    case .groupJoin, .groupLeave: [.app, .group, .token, .registration, .installation]
    }
  }
}

private struct ChangeReader {
  private let document: JSONDocument
  private let values: [ChangeField: Int]
  private let operation: ChangeOperation
  private let defaultApp: [UInt8]?
  private let limits: RegistryLimits

  init(_ body: [UInt8], _ defaultApp: [UInt8]?, _ limits: RegistryLimits, _ ignored: String?) throws(ChangeRefusal) {
    document = try JSONDocument(change: body, most: RegistryChange.mostBytes, depth: 4)
    values = try document.fields(of: document.root, ignoring: ignored)
    self.defaultApp = defaultApp
    self.limits = limits
    if let op = values[.op] {
      guard document.kind(op) == .string, let named = ChangeOperation(rawValue: document.text(op)) else {
        throw .invalid("op: expected one of \(ChangeOperation.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      operation = named
    } else {
      operation = .register
    }
    let foreign = ChangeField.allCases.first { $0 != .op && values[$0] != nil && !operation.fields.contains($0) }
    if let field = foreign {
      throw .invalid("\(field.rawValue): not a field of \(operation.rawValue)")
    }
    // The default app is also outside input, and it isn't JSON.
    if values[.app] == nil, let defaultApp {
      guard defaultApp.isUTF8 else { throw .invalid("app: not UTF-8") }
      try ChangeField.app.check(defaultApp)
    }
  }

  func change() throws(ChangeRefusal) -> RegistryChange {
    var app = values[.app] == nil ? defaultApp ?? [] : []
    if app.isEmpty, operation != .register { app = try text(.app) }
    switch operation {
    case .register: return .register(try registration())
    case .unregister: return .unregister(app: app, try device())
    case .unregisterUser: return .unregisterUser(app: app, try device())
    case .subscribe: return .subscribe(app: app, topic: try topic(), try devices(.tokens))
    case .unsubscribe: return .unsubscribe(app: app, topic: try topic(), try devices(.tokens))
    case .groupCreate: return .groupCreate(app: app, name: try text(.notificationKeyName), try members())
    case .groupAdd: return .groupAdd(app: app, key: try text(.notificationKey), name: try groupName(), try members())
    case .groupRemove: return .groupRemove(app: app, key: try text(.notificationKey), name: try groupName(), try members())
    case .groupJoin: return .groupJoin(app: app, try group(), try device())
    case .groupLeave: return .groupLeave(app: app, try group(), try device())
    }
  }

  private func registration() throws(ChangeRefusal) -> Registration {
    var builder = RegistrationBuilder(app: defaultApp)
    for field in ChangeField.registering {
      guard let node = values[field] else { continue }
      switch field {
      case .topics:
        for topic in try strings(.topics, atMost: limits.topicsPerDevice) { try builder.set(.topics, topic) }
      case .subscription: builder.subscription = try subscription(node)
      default: try builder.set(field, try string(node, field))
      }
    }
    return try builder.registration()
  }

  private func subscription(_ node: Int) throws(ChangeRefusal) -> WebPushSubscription {
    guard document.kind(node) == .object else {
      throw .invalid("subscription: expected an object, found \(document.kind(node).words) at byte \(document.offset(node))")
    }
    do throws(Rejection) { return try WebPushSubscription(document, node) } catch {
      throw ChangeRefusal(.invalidRegistration, "subscription.\(error.reason)")
    }
  }

  private func device() throws(ChangeRefusal) -> DeviceReference {
    let field = try values.only(.token, .registration, .installation)
    return try field.reference(try text(field))
  }

  private func devices(_ field: ChangeField) throws(ChangeRefusal) -> [DeviceReference] {
    try strings(field, atMost: limits.batch).map(ChangeField.device)
  }

  private func members() throws(ChangeRefusal) -> GroupMembers {
    guard try values.only(.registrationIDs, .users) == .users else { return .devices(try devices(.registrationIDs)) }
    let users = try strings(.users, atMost: limits.batch, atLeast: operation == .groupCreate ? 0 : 1)
    for user in users { try ChangeField.users.check(user) }
    return .users(users)
  }

  private func groupName() throws(ChangeRefusal) -> [UInt8]? {
    values[.notificationKeyName] == nil ? nil : try text(.notificationKeyName)
  }

  /// A group's number may be a number or a string. A notification key is recognised by its form.
  private func group() throws(ChangeRefusal) -> GroupReference {
    guard let node = values[.group] else { throw .invalid("group: missing") }
    if document.kind(node) == .number {
      guard let number = document.integer(node) else { throw .invalid("group: expected a string or an integer") }
      return .name(Array(String(number).utf8))
    }
    let text = try text(.group)
    return RegistryID.kind(of: text) == .group ? .key(text) : .name(text)
  }

  private func topic() throws(ChangeRefusal) -> [UInt8] { ChangeField.topicName(try text(.topic)) }

  private func text(_ field: ChangeField) throws(ChangeRefusal) -> [UInt8] {
    guard let node = values[field] else { throw .invalid("\(field.rawValue): missing") }
    let text = try string(node, field)
    try field.check(text)
    return text
  }

  private func string(_ node: Int, _ field: ChangeField) throws(ChangeRefusal) -> [UInt8] {
    guard document.kind(node) == .string else {
      throw .invalid(
        "\(field.rawValue): expected a string, found \(document.kind(node).words) at byte \(document.offset(node))")
    }
    return document.string(node)
  }

  private func strings(_ field: ChangeField, atMost most: Int, atLeast least: Int? = nil) throws(ChangeRefusal) -> [[UInt8]] {
    guard let node = values[field] else { throw .invalid("\(field.rawValue): missing") }
    guard document.kind(node) == .array else {
      throw .invalid(
        "\(field.rawValue): expected an array, found \(document.kind(node).words) at byte \(document.offset(node))")
    }
    let count = document.count(node)
    guard count <= most, count >= least ?? (field == .topics ? 0 : 1) else {
      throw .invalid("\(field.rawValue): \(count) entries, 1 to \(most) allowed")
    }
    var texts: [[UInt8]] = []
    for element in document.elements(of: node) { texts.append(try string(element, field)) }
    return texts
  }
}
