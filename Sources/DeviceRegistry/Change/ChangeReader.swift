import PushCore

extension RegistryChange {
  /// Bytes that a change may have: room for a thousand tokens of the longest form, and for ten thousand of FCM's usual one.
  public static let mostBytes = 4 << 20

  /// Reads a change from one JSON object. Strict: an unknown key, a key that the operation doesn't have, a wrong type or null is
  /// refused.
  /// - Parameters:
  ///   - size: bytes that it had before it was cut to what is kept of it; nil for a whole one.
  ///   - defaultApp: what `app` is where it is missing.
  ///   - ignored: a key that may be there, and is no field.
  public static func parse(
    _ body: [UInt8], size: UInt64? = nil, defaultApp: [UInt8]? = nil, limits: RegistryLimits = RegistryLimits(),
    ignoring ignored: String? = nil
  ) -> Result<RegistryChange, ChangeRefusal> {
    let size = size ?? UInt64(body.count)
    guard size <= mostBytes else {
      return .failure(ChangeRefusal(.invalidParameters, "too large: \(size) bytes, a change may have \(mostBytes)"))
    }
    do throws(ChangeRefusal) {
      return .success(try ChangeReader(body, defaultApp, limits, ignored).change())
    } catch {
      return .failure(error)
    }
  }
}

/// The operations and which fields each of them has.
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
    case .register: ChangeField.columns
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
  private var values: [ChangeField: Int] = [:]
  private let operation: ChangeOperation
  private let defaultApp: [UInt8]?
  private let limits: RegistryLimits

  init(_ body: [UInt8], _ defaultApp: [UInt8]?, _ limits: RegistryLimits, _ ignored: String?) throws(ChangeRefusal) {
    do throws(JSONError) {
      document = try JSONDocument(body, limits: JSONLimits(bytes: RegistryChange.mostBytes, depth: 4))
    } catch {
      throw ChangeRefusal(.invalidJSON, error.description)
    }
    self.defaultApp = defaultApp
    self.limits = limits
    guard document.kind(document.root) == .object else {
      throw ChangeRefusal(.invalidParameters, "expected an object, found \(document.kind(document.root).words)")
    }
    for (name, value) in document.members(of: document.root) {
      let key = document.text(name)
      if key == ignored { continue }
      guard let field = ChangeField(rawValue: key) else {
        let meant = Spelling.suggestion(for: key, among: ChangeField.allCases.map(\.rawValue))
        throw ChangeRefusal(
          .invalidParameters, "\(document.pathComponent(name)): unknown key at byte \(document.offset(name))\(meant)")
      }
      values[field] = value
    }
    if let op = values[.op] {
      guard document.kind(op) == .string, let named = ChangeOperation(rawValue: document.text(op)) else {
        throw ChangeRefusal(
          .invalidParameters, "op: expected one of \(ChangeOperation.allCases.map(\.rawValue).joined(separator: ", "))")
      }
      operation = named
    } else {
      operation = .register
    }
    let foreign = ChangeField.allCases.first { $0 != .op && values[$0] != nil && !operation.fields.contains($0) }
    if let field = foreign {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): not a field of \(operation.rawValue)")
    }
    // It comes from outside too, and not as JSON.
    if values[.app] == nil, let defaultApp {
      guard defaultApp.isUTF8 else { throw ChangeRefusal(.invalidParameters, "app: not UTF-8") }
      try check(.app, defaultApp)
    }
  }

  func change() throws(ChangeRefusal) -> RegistryChange {
    if operation == .register { return .register(try registration()) }
    var app = values[.app] == nil ? defaultApp ?? [] : []
    if app.isEmpty { app = try text(.app) }
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
    for field in ChangeField.columns {
      guard let node = values[field] else { continue }
      if field == .topics {
        for topic in try strings(.topics, atMost: limits.topicsPerDevice) { try builder.set(.topics, topic) }
      } else {
        try builder.set(field, try string(node, field))
      }
    }
    return try builder.registration()
  }

  /// Exactly one of token, registration, installation.
  private func device() throws(ChangeRefusal) -> DeviceReference {
    let given = [ChangeField.token, .registration, .installation].filter { values[$0] != nil }
    guard given.count == 1, let field = given.first else {
      throw ChangeRefusal(.invalidParameters, "expected exactly one of token, registration, installation")
    }
    return try field.reference(try text(field))
  }

  private func devices(_ field: ChangeField) throws(ChangeRefusal) -> [DeviceReference] {
    try strings(field, atMost: limits.batch).map(ChangeField.device)
  }

  private func members() throws(ChangeRefusal) -> GroupMembers {
    guard (values[.users] == nil) != (values[.registrationIDs] == nil) else {
      throw ChangeRefusal(.invalidParameters, "expected exactly one of registration_ids, users")
    }
    guard values[.users] != nil else { return .devices(try devices(.registrationIDs)) }
    let users = try strings(.users, atMost: limits.batch, atLeast: operation == .groupCreate ? 0 : 1)
    for user in users { try check(.users, user) }
    return .users(users)
  }

  private func groupName() throws(ChangeRefusal) -> [UInt8]? {
    values[.notificationKeyName] == nil ? nil : try text(.notificationKeyName)
  }

  /// A group's number may be given as a number or as a text; a notification key is recognised by its form.
  private func group() throws(ChangeRefusal) -> GroupReference {
    guard let node = values[.group] else { throw ChangeRefusal(.invalidParameters, "group: missing") }
    if document.kind(node) == .number {
      do throws(JSONNumberError) { return .name(Array(String(try document.integer(node)).utf8)) } catch {
        throw ChangeRefusal(.invalidParameters, "group: expected a string or an integer")
      }
    }
    let text = try text(.group)
    return RegistryID.kind(of: text) == .group ? .key(text) : .name(text)
  }

  private func topic() throws(ChangeRefusal) -> [UInt8] { ChangeField.topicName(try text(.topic)) }

  // MARK: Values

  private func text(_ field: ChangeField) throws(ChangeRefusal) -> [UInt8] {
    guard let node = values[field] else { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): missing") }
    let text = try string(node, field)
    try check(field, text)
    return text
  }

  private func string(_ node: Int, _ field: ChangeField) throws(ChangeRefusal) -> [UInt8] {
    guard document.kind(node) == .string else {
      throw ChangeRefusal(
        .invalidParameters,
        "\(field.rawValue): expected a string, found \(document.kind(node).words) at byte \(document.offset(node))")
    }
    return document.string(node)
  }

  private func strings(_ field: ChangeField, atMost most: Int, atLeast least: Int? = nil) throws(ChangeRefusal) -> [[UInt8]] {
    guard let node = values[field] else { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): missing") }
    guard document.kind(node) == .array else {
      throw ChangeRefusal(
        .invalidParameters,
        "\(field.rawValue): expected an array, found \(document.kind(node).words) at byte \(document.offset(node))")
    }
    let count = document.count(node)
    guard count <= most, count >= least ?? (field == .topics ? 0 : 1) else {
      throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(count) entries, 1 to \(most) allowed")
    }
    var texts: [[UInt8]] = []
    for element in document.elements(of: node) { texts.append(try string(element, field)) }
    return texts
  }

  private func check(_ field: ChangeField, _ text: [UInt8]) throws(ChangeRefusal) {
    if let rule = field.broken(by: text) { throw ChangeRefusal(.invalidParameters, "\(field.rawValue): \(rule)") }
  }
}
