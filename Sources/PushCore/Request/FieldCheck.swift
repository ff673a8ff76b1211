/// Checks values against ``FieldRule``s. An error names the place and the rule.
extension RequestReader {
  func refusal(_ node: Int, _ code: PushError, _ rule: String) -> Rejection {
    let path = document.path(to: node)
    return Rejection(code, "\(path.isEmpty ? "" : path + ": ")\(rule) at byte \(document.offset(node))")
  }

  func unknownKey(_ name: Int, among known: [String] = []) -> Rejection {
    var rejection = refusal(name, .invalidParameters, "unknown key")
    rejection.reason += Spelling.suggestion(for: String(decoding: document.string(name), as: UTF8.self), among: known)
    return rejection
  }

  func wrongType(_ node: Int, expected: String) -> Rejection {
    refusal(node, .invalidParameters, "expected \(expected), found \(document.kind(node).words)")
  }

  /// Sorts an object's members into slots. Null counts as absent; an unknown name is refused (GS-012).
  func fields<Field>(of object: Int, _ table: NameTable<Field>) throws(Rejection) -> FieldSlots<Field> {
    var slots = FieldSlots<Field>()
    guard document.kind(object) == .object else { throw wrongType(object, expected: "an object") }
    for (name, value) in document.members(of: object) {
      guard let field = table.field(name, in: document) else {
        try refuseUnknown(name, table)
        continue
      }
      if document.kind(value) == .null { continue }
      if slots[field] != nil { throw refusal(name, .invalidParameters, "given twice, in both spellings") }
      slots.set(field, value)
    }
    return slots
  }

  /// - Parameter object: nil for an object that is absent.
  func fields<Field>(
    of object: Int?, _ table: NameTable<Field>, _ rule: (Field) -> FieldRule
  ) throws(Rejection) -> FieldSlots<Field> {
    guard let object else { return FieldSlots() }
    let slots = try fields(of: object, table)
    for field in table.fields {
      if let value = slots[field] { try check(value, rule(field)) }
    }
    return slots
  }

  /// Like ``fields(of:_:_:)``, but ignores names that are not in the table or have no rule.
  func checkKnown<Field>(
    in object: Int, _ table: NameTable<Field>, _ rule: (Field) -> FieldRule?
  ) throws(Rejection) {
    for (name, value) in document.members(of: object) where document.kind(value) != .null {
      if let field = table.field(name, in: document), let rule = rule(field) { try check(value, rule) }
    }
  }

  private func checkSound(_ node: Int) throws(Rejection) {
    guard document.kind(node) == .object else { throw wrongType(node, expected: "a string or an object") }
    _ = try strict.fields(of: node, SoundKey.table) { $0 == .name ? .string : $0 == .critical ? .flag : .unit }
  }

  func check(_ node: Int, _ rule: FieldRule) throws(Rejection) {
    let kind = document.kind(node)
    switch rule {
    case .string:
      guard kind == .string else { throw wrongType(node, expected: "a string") }
    case .boolean:
      guard document.bool(node) != nil else { throw wrongType(node, expected: "a boolean") }
    case .looseBoolean: _ = try looseBoolean(node)
    case .count: _ = try count(node)
    case .int32:
      guard kind == .number else { throw wrongType(node, expected: "a number") }
      guard let value = document.integer(node), Int32(exactly: value) != nil else {
        throw refusal(node, .invalidParameters, "expected an integer from -2147483648 to 2147483647")
      }
    case .secureURL: try check(node, "expected an https URL", TextForm.isSecureURL)
    case .counter: if !document.isString(node, "auto") { _ = try count(node) }
    case .color: try check(node, "expected #rrggbb", TextForm.isColor)
    case .sound: if kind != .string { try checkSound(node) }
    case .arguments: try checkArguments(node)
    case .strings:
      guard kind == .array else { throw wrongType(node, expected: "an array of strings") }
      for element in document.elements(of: node) { try check(element, .string) }
    case .oneOf(let words):
      guard kind == .string else { throw wrongType(node, expected: "a string") }
      for word in words where document.isString(node, word.description) { return }
      throw refusal(node, .invalidParameters, "expected one of \(words.map(\.description).joined(separator: ", "))")
    case .duration:
      guard kind == .string, TextForm.durationSeconds(document.string(node)) != nil else {
        throw refusal(node, .invalidParameters, "expected a duration such as \"3.5s\"")
      }
    case .durations:
      guard kind == .array else { throw wrongType(node, expected: "an array of durations") }
      for element in document.elements(of: node) { try check(element, .duration) }
    case .lifetime:
      guard kind == .string, let seconds = TextForm.durationSeconds(document.string(node)),
        seconds <= RequestLimits.longestTimeToLive,
        seconds < RequestLimits.longestTimeToLive || !TextForm.hasFraction(document.string(node))
      else { throw refusal(node, .invalidTTL, "expected a duration from \"0s\" to \"2419200s\"") }
    case .timestamp:
      guard kind == .string, Timestamp.milliseconds(of: document.string(node)) != nil else {
        throw refusal(node, .invalidParameters, "expected a time as RFC 3339 has it")
      }
    case .unit:
      guard let value = document.double(node) else { throw wrongType(node, expected: "a number") }
      guard value >= 0, value <= 1 else { throw refusal(node, .invalidParameters, "expected a number from 0 to 1") }
    case .flag:
      if document.bool(node) != nil { return }
      guard let value = document.integer(node), value == 0 || value == 1 else {
        throw refusal(node, .invalidParameters, "expected 0 or 1")
      }
    case .label:
      guard kind == .string, TextForm.isLabel(document.string(node)) else {
        throw refusal(node, .invalidParameters, "expected at most 50 of the characters a-z A-Z 0-9 - _ . ~ %")
      }
    case .stringMap, .data:
      guard kind == .object else { throw wrongType(node, expected: "an object") }
      for (name, value) in document.members(of: node) {
        if case .data = rule { try refuseReserved(name, isV1: true) }
        try check(value, .string)
      }
    case .object:
      guard kind == .object else { throw wrongType(node, expected: "an object") }
    case .emptyObject:
      guard kind == .object else { throw wrongType(node, expected: "an object") }
      for (name, _) in document.members(of: node) { throw unknownKey(name) }
    case .number:
      guard let value = document.double(node) else { throw wrongType(node, expected: "a number") }
      guard value.isFinite else { throw refusal(node, .invalidParameters, "a number out of range") }
    case .seconds:
      guard kind == .number else { throw wrongType(node, expected: "a number") }
      guard let value = document.integer(node), value >= 0 else {
        throw refusal(node, .invalidParameters, "expected a whole number of seconds, not negative")
      }
    case .name: try check(node, "must not be empty") { !$0.isEmpty }
    case .channel: try check(node, "expected 1 to 256 characters of base64") { TextForm.isChannelID($0[...]) }
    case .badge:
      guard kind == .number else { throw wrongType(node, expected: "a number") }
      _ = try count(node)
    case .bit:
      guard kind == .number else { throw wrongType(node, expected: "a number") }
      try check(node, .flag)
    case .alert:
      if kind == .string { return }
      guard kind == .object else { throw wrongType(node, expected: "a string or an object") }
      try checkKnown(in: node, APSAlertKey.table, \.rule)
    case .criticalSound:
      if kind == .string { return }
      guard kind == .object else { throw wrongType(node, expected: "a string or an object") }
      try checkKnown(in: node, SoundKey.table) { $0 == .name ? .string : $0 == .critical ? .bit : .unit }
    case .localisedText:
      if kind == .string { return }
      guard kind == .object else { throw wrongType(node, expected: "a string or an object") }
      try checkKnown(in: node, APSAlertKey.table) { $0 == .locKey ? .string : $0 == .locArgs ? .strings : nil }
    case .labelOptions:
      _ = try strict.fields(of: node, OptionsKey.labelTable) { _ in .label }
    case .imageOptions:
      _ = try strict.fields(of: node, OptionsKey.imageTable) { $0 == .analyticsLabel ? .label : .string }
    case .linkOptions:
      _ = try strict.fields(of: node, OptionsKey.linkTable) { $0 == .analyticsLabel ? .label : .secureURL }
    case .lightSettings:
      _ = try strict.fields(of: node, LightSettingsKey.table) { $0 == .color ? .lightColor : .duration }
    case .lightColor:
      _ = try strict.fields(of: node, LightColorKey.table) { _ in .unit }
    }
  }

  /// Checks that a node is a string that meets the condition.
  private func check(_ node: Int, _ rule: String, _ isValid: ([UInt8]) -> Bool) throws(Rejection) {
    try check(node, .string)
    guard isValid(document.string(node)) else { throw refusal(node, .invalidParameters, rule) }
  }

  /// A boolean, or "true" or "false"; from a lenient sender also 0 or 1.
  func looseBoolean(_ node: Int) throws(Rejection) -> Bool {
    if let value = document.bool(node) { return value }
    if isLenient, document.kind(node) == .number, let value = document.integer(node), value == 0 || value == 1 {
      return value == 1
    }
    if document.isString(node, "true") { return true }
    if document.isString(node, "false") { return false }
    throw wrongType(node, expected: "a boolean")
  }

  /// An integer from 0 to 2³¹−1, as a number or as a string of digits.
  func count(_ node: Int) throws(Rejection) -> Int {
    guard document.kind(node) == .number || document.kind(node) == .string else {
      throw wrongType(node, expected: "a number or a string of digits")
    }
    guard let value = integer(node), value >= 0, value <= Int64(Int32.max) else {
      throw refusal(node, .invalidParameters, "expected an integer from 0 to 2147483647")
    }
    return Int(value)
  }

  /// The integer of a number or of a string of one to ten digits; nil otherwise.
  func integer(_ node: Int) -> Int64? {
    guard document.kind(node) == .string else { return document.integer(node) }
    let digits = document.slice(node)
    guard (1...10).contains(digits.count), digits.allSatisfy(Bytes.isDigit) else { return nil }
    return digits.reduce(0) { $0 &* 10 &+ Int64($1 &- UInt8(ascii: "0")) }
  }

  /// Rules GS-092 to GS-095: an array of strings (numbers become strings), or a string that holds such an array.
  private func checkArguments(_ node: Int) throws(Rejection) {
    switch document.kind(node) {
    case .array:
      for element in document.elements(of: node) {
        switch document.kind(element) {
        case .string, .number: continue
        default: throw wrongType(element, expected: "a string")
        }
      }
    case .string:
      let inner: JSONDocument
      do { inner = try JSONDocument(document.string(node), limits: limits.json) } catch {
        throw refusal(node, .invalidParameters, "expected a JSON array inside the string (\(error))")
      }
      guard inner.kind(inner.root) == .array else {
        throw refusal(node, .invalidParameters, "expected a JSON array inside the string")
      }
      for element in inner.elements(of: inner.root) where inner.kind(element) != .string && inner.kind(element) != .number {
        throw refusal(node, .invalidParameters, "expected strings in the array inside the string")
      }
    default: throw wrongType(node, expected: "an array of strings")
    }
  }

  /// Refuses reserved keys of `data`: `from`, `message_type`, and the prefixes `google` and `gcm` (FCM's legacy HTTP
  /// reference). In FCM v1's shape the prefixes are `google.` and `gcm.notification.` (reference of `Message`).
  func refuseReserved(_ name: Int, isV1: Bool = false) throws(Rejection) {
    let range = document.source(name)
    guard !range.isEmpty else { return }
    let first = document.bytes[range.lowerBound]
    guard
      first == UInt8(ascii: "f") || first == UInt8(ascii: "g") || first == UInt8(ascii: "m") || first == UInt8(ascii: "\\")
    else { return }
    let key = document.string(name)
    if key.elementsEqual("from".utf8) || key.elementsEqual("message_type".utf8)
      || key.starts(with: (isV1 ? "google." : "google").utf8) || key.starts(with: (isV1 ? "gcm.notification." : "gcm").utf8)
    {
      throw refusal(name, .invalidDataKey, "a reserved key")
    }
  }
}
