/// The content of `aps`: GCM's keys and the `apns` block's `payload.aps`, which wins.
struct APSContent {
  let payload: Int?
  /// The node of the block's `payload.aps`, an object.
  let override: Int?
  /// The node of the block's `alert`; null removes the alert.
  let alertOverride: Int?
  /// True if the push shows an alert text.
  let hasAlert: Bool
  let isVisible: Bool
  /// True if the alert has more than a plain title and body. FCM's own `notification` has only these.
  let hasRichAlert: Bool
  let hasPlaceholders: Bool
  private let isLiveActivity: Bool

  init(_ request: borrowing SendRequest) {
    if case .automatic? = request.badge { hasPlaceholders = true } else { hasPlaceholders = false }
    payload = request.apns(.payload)
    if let payload, let aps = request.document.value("aps", of: payload), request.document.kind(aps) == .object {
      override = aps
    } else {
      override = nil
    }
    let notification = request.notification
    let plain = notification[.title] != nil || notification[.body] != nil
    let rich = Self.richKeys.contains { notification[$0] != nil }
    guard let override else {
      alertOverride = nil
      hasAlert = plain || rich
      hasRichAlert = rich
      isVisible = plain || rich || request.notification[.badge] != nil || request.notification[.sound] != nil
      isLiveActivity = request.apns(.liveActivityToken) != nil
      return
    }
    let document = request.document
    func isPresent(_ name: String, _ translated: Bool) -> Bool {
      guard let node = document.value(name, of: override) else { return translated }
      return document.kind(node) != .null
    }
    alertOverride = document.value("alert", of: override)
    hasAlert = isPresent("alert", plain || rich)
    hasRichAlert = alertOverride != nil || rich
    isVisible =
      hasAlert || isPresent("badge", request.notification[.badge] != nil)
      || isPresent("sound", request.notification[.sound] != nil)
    isLiveActivity =
      request.apns(.liveActivityToken) != nil || isPresent("event", false) || isPresent("content-state", false)
      || isPresent("attributes-type", false)
  }

  func isAlertTakenAway(_ document: JSONDocument) -> Bool { alertOverride.map { document.kind($0) == .null } ?? false }

  /// True if the push is of type alert and shows an alert.
  func isCountable(_ request: SendRequest) -> Bool {
    if let type = request.apnsHeader(.apnsPushType), !request.document.isString(type, "alert") { return false }
    return !isLiveActivity && hasAlert
  }

  var inferredPushType: PushType { isLiveActivity ? .liveactivity : isVisible ? .alert : .background }

  func startsActivity(_ document: JSONDocument) -> Bool {
    guard let override, let event = document.value(APSKey.event.wireName, of: override) else { return false }
    return document.isString(event, "start")
  }

  struct AlertField {
    let key: NotificationKey
    let name: String
    /// With quotes and colon.
    let member: StaticString
  }

  /// GS-091, docs/internals/rules.md.
  static let alertFields: [AlertField] = [
    .init(key: .title, name: "title", member: #""title":"#),
    .init(key: .subtitle, name: "subtitle", member: #""subtitle":"#),
    .init(key: .body, name: "body", member: #""body":"#),
    .init(key: .titleLocKey, name: "title-loc-key", member: #""title-loc-key":"#),
    .init(key: .titleLocArgs, name: "title-loc-args", member: #""title-loc-args":"#),
    .init(key: .subtitleLocKey, name: "subtitle-loc-key", member: #""subtitle-loc-key":"#),
    .init(key: .subtitleLocArgs, name: "subtitle-loc-args", member: #""subtitle-loc-args":"#),
    .init(key: .bodyLocKey, name: "loc-key", member: #""loc-key":"#),
    .init(key: .bodyLocArgs, name: "loc-args", member: #""loc-args":"#),
  ]

  private static let richKeys = alertFields.map(\.key).filter { $0 != .title && $0 != .body }

  /// Appends the `aps` object: translated keys that aren't overridden, then the block's keys. A null removes its key.
  /// - Parameters:
  ///   - withAlert: false if FCM makes the alert of a plain title and body.
  ///   - isUPMC: gives an alert a sound and runs the service extension that acknowledges it (rules UP-19, UP-20).
  func append(_ request: SendRequest, withAlert: Bool, isUPMC: Bool = false, to output: inout [UInt8]) {
    let document = request.document
    output.append(0x7B)
    if withAlert, alertOverride == nil || document.kind(alertOverride ?? 0) == .object {
      appendAlert(request, to: &output)
    }
    if let badge = request.badge, !isOverridden("badge", document) {
      output.appendMember(#""badge":"#)
      output.appendBadge(badge)
    }
    if let sound = request.notification[.sound], !isOverridden("sound", document) {
      output.appendMember(#""sound":"#)
      output.appendSound(sound, of: document)
    } else if isUPMC, hasAlert, !isOverridden("sound", document) {
      output.appendMember(#""sound":"default""#)
    }
    if let action = request.notification[.clickAction], !isOverridden("category", document) {
      output.appendMember(#""category":"#)
      document.appendQuoted(action, to: &output)
    }
    if request.contentAvailable, !isOverridden("content-available", document) {
      output.appendMember(#""content-available":1"#)
    }
    // Service extensions run only for alerts.
    if request.mutableContent || isUPMC, hasAlert, !isOverridden("mutable-content", document) {
      output.appendMember(#""mutable-content":1"#)
    }
    if let override { appendOverride(override, document, withAlert: withAlert, to: &output) }
    output.append(0x7D)
  }

  func isOverridden(_ name: String, _ document: JSONDocument) -> Bool {
    guard let override else { return false }
    return document.value(name, of: override) != nil
  }

  /// The key of the block's `aps` that overrides a key of `notification`; nil if there is none.
  func winner(over key: NotificationKey, _ document: JSONDocument) -> String? {
    if let field = Self.alertFields.first(where: { $0.key == key }) {
      guard let alert = alertOverride else { return nil }
      guard document.kind(alert) == .object else { return "apns.payload.aps.alert" }
      return document.value(field.name, of: alert) == nil ? nil : "apns.payload.aps.alert.\(field.name)"
    }
    let names: [NotificationKey: String] = [.badge: "badge", .sound: "sound", .clickAction: "category"]
    return names[key].flatMap { isOverridden($0, document) ? "apns.payload.aps.\($0)" : nil }
  }

  /// Merges the keys of both alerts; the block's keys win.
  private func appendAlert(_ request: SendRequest, to output: inout [UInt8]) {
    guard hasAlert else { return }
    let document = request.document
    output.appendMember(#""alert":{"#)
    let fields = Self.alertFields
    for index in fields.indices {
      guard let node = request.notification[fields[index].key] else { continue }
      if let alertOverride, document.value(fields[index].name, of: alertOverride) != nil { continue }
      output.appendMember(fields[index].member)
      switch fields[index].key {
      case .titleLocArgs, .subtitleLocArgs, .bodyLocArgs:
        if !request.appendArguments(fields[index].key, to: &output) { output.append("[]") }
      default: document.appendQuoted(node, to: &output)
      }
    }
    if let alertOverride {
      for (name, value) in document.members(of: alertOverride) where document.kind(value) != .null {
        output.appendMember(name, value, of: document)
      }
    }
    output.append(0x7D)
  }

  private func appendOverride(_ override: Int, _ document: JSONDocument, withAlert: Bool, to output: inout [UInt8]) {
    for (name, value) in document.members(of: override) where document.kind(value) != .null {
      let isMergedAlert = value == alertOverride && withAlert && document.kind(value) == .object
      if !isMergedAlert { output.appendMember(name, value, of: document) }
    }
  }
}

extension [UInt8] {
  @inline(__always)
  mutating func appendMemberSeparator() {
    if let last, last != 0x7B { append(0x2C) }
  }

  /// Appends a member, or the beginning of one, as it is written in JSON.
  mutating func appendMember(_ text: StaticString) {
    appendMemberSeparator()
    append(text)
  }

  /// - Parameter name: needs no escaping.
  mutating func appendMember(named name: String, _ value: Int, of document: JSONDocument) {
    appendMember("\"")
    append(copying: name.utf8.span)
    append("\":")
    document.append(value, to: &self)
  }

  mutating func appendBadge(_ badge: SendRequest.Badge) {
    switch badge {
    case .automatic: append(Placeholder.badge)
    case .number(let number): appendDecimal(number)
    }
  }

  /// Appends a sound's name, or Apple's dictionary with `critical` as a number, never a boolean.
  fileprivate mutating func appendSound(_ sound: Int, of document: JSONDocument) {
    guard document.kind(sound) == .object else { return document.append(sound, to: &self) }
    append(0x7B)
    for (name, value) in document.members(of: sound) where document.kind(value) != .null {
      appendMemberSeparator()
      document.appendQuoted(name, to: &self)
      append(0x3A)
      if let flag = document.bool(value) { append(flag ? 0x31 : 0x30) } else { document.append(value, to: &self) }
    }
    append(0x7D)
  }

  mutating func appendMember(_ name: Int, _ value: Int, of document: JSONDocument) {
    appendMemberSeparator()
    document.appendQuoted(name, to: &self)
    append(0x3A)
    document.append(value, to: &self)
  }
}
