import PushCore

/// Checks a send request as strictly as the real service: unknown fields, wrong types, targets, sizes.
struct FCMMessageCheck {
  let document: JSONDocument
  private(set) var violations: [FCMError.FieldViolation] = []
  /// The target's key in scripts; empty without a usable target.
  private(set) var scriptKey: [UInt8] = []
  private(set) var isValidateOnly = false
  /// The most bytes of the payload. A topic or a condition accepts fewer than a device.
  private(set) var payloadLimit = 4096

  mutating func run() throws(FCMError) {
    check(document.root, FCMSchema.request, "")
    if !violations.isEmpty {
      throw FCMError(
        status: 400, code: "INVALID_ARGUMENT", message: "Invalid JSON payload received. \(violations[0].description)",
        violations: violations)
    }
    if let flag = field("validate_only", of: document.root) { isValidateOnly = document.bool(flag) ?? false }
    guard let message = field("message", of: document.root) else { throw invalid("message", "The message is not set.") }
    try checkTarget(message)
    try checkAndroid(message)
    try checkData(message)
    try checkSize(message)
  }

  // MARK: Types

  private mutating func check(_ node: Int, _ kind: FCMSchema.Kind, _ path: String) {
    // In Protocol Buffers' JSON mapping, null is an absent field.
    if document.kind(node) == .null { return }
    switch kind {
    case .string: require(document.kind(node) == .string, node, path, "a string")
    case .bool: require(document.bool(node) != nil, node, path, "true or false")
    case .integer: require(document.integer(node) != nil, node, path, "an integer")
    case .number: require(document.kind(node) == .number, node, path, "a number")
    case .duration: require(isDuration(node), node, path, "a duration such as \"3.5s\"")
    case .timestamp: require(isTimestamp(node), node, path, "an RFC 3339 time")
    case .word(let words):
      require(words.contains { document.isString(node, $0) }, node, path, "one of \(words.joined(separator: ", "))")
    case .free: require(document.kind(node) == .object, node, path, "an object")
    case .stringMap: checkStringMap(node, path)
    case .list(let element):
      guard document.kind(node) == .array else { return require(false, node, path, "a list") }
      for (index, value) in document.elements(of: node).enumerated() { check(value, element, "\(path)[\(index)]") }
    case .object(let fields): checkObject(node, fields, path)
    }
  }

  private mutating func checkObject(_ node: Int, _ fields: [String: FCMSchema.Kind], _ path: String) {
    guard document.kind(node) == .object else { return require(false, node, path, "an object") }
    var seen: Set<String> = []
    for (name, value) in document.members(of: node) {
      let given = document.text(name)
      // `collapseKey` and `collapse_key` are the same field (Protocol Buffers' JSON mapping).
      let field = spelling(given, separator: "_")
      let place = path.isEmpty ? field : "\(path).\(field)"
      guard let kind = fields[field] else {
        let at = path.isEmpty ? "" : " at '\(path)'"
        violations.append(.init(field: path, description: "Unknown name \"\(given)\"\(at): Cannot find field."))
        continue
      }
      if !seen.insert(field).inserted { violations.append(.init(field: place, description: "Field is given twice.")) }
      check(value, kind, place)
    }
  }

  private mutating func checkStringMap(_ node: Int, _ path: String) {
    guard document.kind(node) == .object else { return require(false, node, path, "a map of strings") }
    for (index, (_, value)) in document.members(of: node).enumerated() where document.kind(value) != .string {
      violations.append(
        .init(field: "\(path)[\(index)].value", description: "Invalid value at '\(path)[\(index)].value' (TYPE_STRING)"))
    }
  }

  private mutating func require(_ holds: Bool, _ node: Int, _ path: String, _ wanted: String) {
    guard !holds else { return }
    violations.append(
      .init(field: path, description: "Invalid value at '\(path)': \(document.kind(node).words) is not \(wanted)"))
  }

  private func isDuration(_ node: Int) -> Bool {
    guard document.kind(node) == .string else { return false }
    let text = document.string(node)
    guard text.last == UInt8(ascii: "s") else { return false }
    let parts = text.dropLast().split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
    return (1...2).contains(parts.count) && parts.allSatisfy { !$0.isEmpty && $0.allSatisfy { $0 &- 0x30 < 10 } }
      && parts[0].count <= 12 && (parts.count == 1 || parts[1].count <= 9)
  }

  private func isTimestamp(_ node: Int) -> Bool {
    guard document.kind(node) == .string else { return false }
    let text = document.string(node)
    return text.count >= 20 && text[4] == UInt8(ascii: "-") && text[10] == UInt8(ascii: "T")
      && (text.last == UInt8(ascii: "Z") || text.suffix(6).contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "-") })
  }

  // MARK: Meaning

  private mutating func checkTarget(_ message: Int) throws(FCMError) {
    let given = ["token", "fid", "topic", "condition"].filter { field($0, of: message) != nil }
    guard let name = given.first else { throw invalid("message", "Recipient of the message is not set.") }
    guard given.count == 1 else {
      throw .unreadable("message", "Invalid value (oneof), oneof field 'target' is already set. Cannot set '\(given[1])'")
    }
    let value = field(name, of: message).map { document.string($0) } ?? []
    switch name {
    case "token":
      // Set for a refused token too: a script may answer before the token is checked.
      scriptKey = value
      let isToken = !value.isEmpty && value.count <= 4096 && value.allSatisfy { Self.tokenCharacters.contains($0) }
      guard isToken else { throw FCMError.table["INVALID_ARGUMENT"] ?? invalid("message.token", "not a token") }
    case "fid":
      let isID =
        value.count == 22 && "cdef".utf8.contains(value[0]) && value.allSatisfy { Self.installationCharacters.contains($0) }
      guard isID else { throw invalid("message.fid", "Invalid installation id") }
      scriptKey = Array("fid:".utf8) + value
    case "topic":
      let isTopic = !value.isEmpty && value.count <= 900 && value.allSatisfy { Self.topicCharacters.contains($0) }
      guard isTopic else { throw invalid("message.topic", "Malformed topic name") }
      scriptKey = Array("/topics/".utf8) + value
      payloadLimit = 2048
    default:
      guard (try? Condition.parse(value)) != nil else {
        throw invalid("message.condition", "Invalid condition expression provided.")
      }
      scriptKey = value
      payloadLimit = 2048
    }
  }

  /// Only one of `android` and `android_v2` may be set, and the second needs exactly one of its two kinds (Google,
  /// "AndroidConfigV2").
  private func checkAndroid(_ message: Int) throws(FCMError) {
    guard let second = field("android_v2", of: message) else { return }
    if field("android", of: message) != nil {
      throw invalid("message.android_v2", "android and android_v2 cannot both be set.")
    }
    let kinds = ["remote_notification", "background_sync"].filter { field($0, of: second) != nil }
    guard kinds.count != 2 else {
      throw .unreadable(
        "message.android_v2", "Invalid value (oneof), oneof field is already set. Cannot set 'background_sync'")
    }
    guard kinds.count == 1 else {
      throw invalid("message.android_v2", "One of remote_notification and background_sync must be set.")
    }
  }

  private func android(_ message: Int) -> Int? { field("android", of: message) ?? field("android_v2", of: message) }

  /// Checks reserved keys and the lifetime (Google, "Message").
  private func checkData(_ message: Int) throws(FCMError) {
    let android = android(message)
    for data in [field("data", of: message), android.flatMap { field("data", of: $0) }].compactMap({ $0 }) {
      for (name, _) in document.members(of: data) {
        let key = document.text(name)
        let isReserved = key == "from" || key == "message_type" || key.hasPrefix("google") || key.hasPrefix("gcm")
        if isReserved { throw invalid("message.data", "Invalid data payload key: \(key)") }
      }
    }
    guard let ttl = android.flatMap({ field("ttl", of: $0) }) else { return }
    let digits = document.string(ttl).prefix { $0 &- 0x30 < 10 }
    let seconds = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - 0x30) }
    let block = field("android", of: message) == nil ? "android_v2" : "android"
    if seconds > 2_419_200 { throw invalid("message.\(block).ttl", "Invalid ttl: at most four weeks") }
  }

  /// At most 4,096 bytes of payload, 2,048 to a topic (Google, "ErrorCode"). Counts the texts of keys and values.
  private func checkSize(_ message: Int) throws(FCMError) {
    var size = 0
    let android = android(message)
    let second = android.flatMap { field("remote_notification", of: $0) }.flatMap { field("notification", of: $0) }
    let parts = [
      android.flatMap { field("data", of: $0) } ?? field("data", of: message), second ?? field("notification", of: message),
      android.flatMap { field("notification", of: $0) },
    ]
    for part in parts.compactMap({ $0 }) {
      for (name, value) in document.members(of: part) { size += document.utf8Count(name) + document.utf8Count(value) }
    }
    guard size <= payloadLimit else { throw invalid("message", "Android message is too big") }
  }

  /// The value of a field in either spelling; nil if it is absent or null.
  private func field(_ name: String, of node: Int) -> Int? {
    for (key, value) in document.members(of: node)
    where document.kind(value) != .null && spelling(document.text(key), separator: "_") == name {
      return value
    }
    return nil
  }

  private func invalid(_ field: String, _ description: String) -> FCMError {
    FCMError(
      status: 400, code: "INVALID_ARGUMENT", message: description, errorCode: "INVALID_ARGUMENT",
      violations: [.init(field: field, description: description)])
  }

  private static let installationCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_".utf8)
  private static let tokenCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_:".utf8)
  private static let topicCharacters = Set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~%".utf8)
}
