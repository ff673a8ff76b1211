/// What a request puts into `aps`: GCM's keys, and the `apns` block's `payload.aps`, whose keys win.
struct APSContent {
  /// The node of the block's `payload`, an object.
  let payload: Int?
  /// The node of its `aps`, an object.
  let override: Int?
  /// The node of its `alert`; null counts as "none at all".
  let alertOverride: Int?
  /// Something a person sees or hears.
  let hasAlert: Bool
  let isVisible: Bool
  /// An alert that a plain title and body don't say: for FCM, whose own `notification` has only those.
  let hasRichAlert: Bool
  /// Its badge is filled in for each device.
  let hasBlanks: Bool
  private let isLiveActivity: Bool

  init(_ request: borrowing SendRequest) {
    let document = request.document
    if case .automatic? = request.badge { hasBlanks = true } else { hasBlanks = false }
    payload = request.apns(.payload)
    if let payload, let aps = document.value("aps", of: payload), document.kind(aps) == .object {
      override = aps
    } else {
      override = nil
    }
    var plain = false
    var rich = false
    for field in Self.alertFields where request.notification[field.key] != nil {
      if field.key == .title || field.key == .body { plain = true } else { rich = true }
    }
    guard let override else {
      alertOverride = nil
      hasAlert = plain || rich
      hasRichAlert = rich
      isVisible = plain || rich || request.notification[.badge] != nil || request.notification[.sound] != nil
      isLiveActivity = request.apns(.liveActivityToken) != nil
      return
    }
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

  /// The block says that there is none.
  func isAlertTakenAway(_ document: JSONDocument) -> Bool { alertOverride.map { document.kind($0) == .null } ?? false }

  /// Whether an alert is shown, by a push of that type.
  func isCountable(_ request: borrowing SendRequest) -> Bool {
    if let type = request.apnsHeader(.apnsPushType), !request.document.isString(type, "alert") { return false }
    return !isLiveActivity && hasAlert
  }

  /// For a request that names none: what the payload is.
  var inferredPushType: PushType { isLiveActivity ? .liveactivity : isVisible ? .alert : .background }

  /// Whether `aps.event` is `start`.
  func startsActivity(_ document: JSONDocument) -> Bool {
    guard let override, let event = document.value(APSKey.event.wireName, of: override) else { return false }
    return document.isString(event, "start")
  }

  struct AlertField {
    let key: NotificationKey
    let name: String
    /// With quotes and colon.
    let member: [UInt8]
    var isArguments: Bool { key == .titleLocArgs || key == .subtitleLocArgs || key == .bodyLocArgs }

    init(_ key: NotificationKey, _ name: String) {
      self.key = key
      self.name = name
      member = Array("\"\(name)\":".utf8)
    }
  }

  /// GS-091, docs/rules.md.
  static let alertFields: [AlertField] = [
    .init(.title, "title"), .init(.subtitle, "subtitle"), .init(.body, "body"), .init(.titleLocKey, "title-loc-key"),
    .init(.titleLocArgs, "title-loc-args"), .init(.subtitleLocKey, "subtitle-loc-key"),
    .init(.subtitleLocArgs, "subtitle-loc-args"), .init(.bodyLocKey, "loc-key"), .init(.bodyLocArgs, "loc-args"),
  ]
}

extension APSContent {
  /// Members of `aps` as bytes: a string's bytes would be copied one by one.
  private enum Member {
    static let alert = Array(#""alert":{"#.utf8)
    static let badge = Array(#""badge":"#.utf8)
    static let sound = Array(#""sound":"#.utf8)
    static let category = Array(#""category":"#.utf8)
    static let contentAvailable = Array(#""content-available":1"#.utf8)
    static let mutableContent = Array(#""mutable-content":1"#.utf8)
  }

  /// Appends `aps`'s object: what is translated and not overridden, then the block's keys; a null there takes the key away.
  ///
  /// - Parameters:
  ///   - withAlert: FCM makes the alert of a plain title and body itself.
  ///   - isUPMC: an alert has a sound, and the service extension that acknowledges it runs (rules UP-19, UP-20).
  func append(_ request: borrowing SendRequest, withAlert: Bool, isUPMC: Bool = false, to output: inout [UInt8]) {
    let document = request.document
    output.append(0x7B)
    if withAlert, alertOverride == nil || document.kind(alertOverride ?? 0) == .object {
      appendAlert(request, to: &output)
    }
    if let badge = request.badge, !isOverridden("badge", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: Member.badge)
      switch badge {
      case .automatic: output.append(Blank.badge)
      case .number(let number): output.appendDecimal(number)
      }
    }
    if let sound = request.notification[.sound], !isOverridden("sound", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: Member.sound)
      output.appendSound(sound, of: document)
    } else if isUPMC, hasAlert, !isOverridden("sound", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: #""sound":"default""#.utf8)
    }
    if let action = request.notification[.clickAction], !isOverridden("category", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: Member.category)
      document.appendQuoted(action, to: &output)
    }
    if request.contentAvailable, !isOverridden("content-available", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: Member.contentAvailable)
    }
    // Without an alert no service extension runs.
    if request.mutableContent || isUPMC, hasAlert, !isOverridden("mutable-content", document) {
      output.appendMemberSeparator()
      output.append(contentsOf: Member.mutableContent)
    }
    if let override { appendOverride(override, document, withAlert: withAlert, to: &output) }
    output.append(0x7D)
  }

  private func isOverridden(_ name: String, _ document: JSONDocument) -> Bool {
    guard let override else { return false }
    return document.value(name, of: override) != nil
  }

  /// Both alerts' keys, the block's winning; nothing when there is none.
  private func appendAlert(_ request: borrowing SendRequest, to output: inout [UInt8]) {
    guard hasAlert else { return }
    let document = request.document
    output.appendMemberSeparator()
    output.append(contentsOf: Member.alert)
    for field in Self.alertFields {
      guard let node = request.notification[field.key] else { continue }
      if let alertOverride, document.value(field.name, of: alertOverride) != nil { continue }
      output.appendMemberSeparator()
      output.append(contentsOf: field.member)
      if field.isArguments {
        if !request.appendArguments(field.key, to: &output) { output.append(contentsOf: "[]".utf8) }
      } else {
        document.appendQuoted(node, to: &output)
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
  /// A comma, unless this would be an object's first member.
  @inline(__always)
  mutating func appendMemberSeparator() {
    if let last, last != 0x7B { append(0x2C) }
  }

  /// A sound's name, or Apple's dictionary, in which `critical` is a number and never a boolean.
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

  /// A member as it stands in its document.
  mutating func appendMember(_ name: Int, _ value: Int, of document: JSONDocument) {
    appendMemberSeparator()
    document.appendQuoted(name, to: &self)
    append(0x3A)
    document.append(value, to: &self)
  }
}
