extension FCMMessage {
  /// Appends `message.android`, or `message.android_v2` for a request with that block, which wins key by key.
  /// - Parameter hasCommon: the message's common `notification` has title, body and image.
  func appendAndroid(
    _ request: SendRequest, _ context: borrowing TranslationContext, hasCommon: Bool, to body: inout [UInt8]
  ) {
    let document = request.document
    let isV2 = request.hasAndroidV2
    body.appendMember(isV2 ? #""android_v2":{"# : #""android":{"#)
    if let key = request.android(.collapseKey) ?? request.collapseKeyNode {
      body.appendMember(#""collapse_key":"#, key, of: document)
    }
    if let node = request.android(.priority) {
      body.appendMember(#""priority":"#, node, of: document)
    } else if request.shape == .gcm, !isV2 {
      let priority = request.priority ?? (request.delayWhileIdle ? .normal : settings.defaultPriority)
      body.appendMember(priority == .high ? #""priority":"HIGH""# : #""priority":"NORMAL""#)
    }
    body.appendMember(#""ttl":""#)
    body.appendDecimal(Self.secondsLeft(request, context))
    body.append(#"s""#)
    if let name = request.packageNode {
      // A request may name the application instead of its package.
      if let package = settings.package, document.string(name) == package.ofApp {
        body.appendMember(#""restricted_package_name":"#)
        body.appendSafeJSONString(package.name)
      } else {
        body.appendMember(#""restricted_package_name":"#, name, of: document)
      }
    }
    if isV2 { appendMessage(request, hasCommon, to: &body) } else { appendShown(request, hasCommon, isV2: false, to: &body) }
    if request.blocks != nil {
      for key in Self.carried {
        guard let node = request.android(key) else { continue }
        if key == .data, let object {
          appendOwnData(node, object, document, to: &body)
        } else {
          body.appendMember(named: key.wireName, node, of: document)
        }
      }
    }
    body.append(0x7D)
  }

  /// Adds `mps` to Android's own data, which replaces the message's data.
  private func appendOwnData(_ data: Int, _ object: [UInt8], _ document: JSONDocument, to body: inout [UInt8]) {
    body.appendMember(#""data":{"#)
    for (name, value) in document.members(of: data) { body.appendMember(name, value, of: document) }
    body.appendObjectMember(object)
    body.append(0x7D)
  }

  /// GS-062: the rest of the lifetime in whole seconds; 0 means "now or never". `android.ttl` wins over `time_to_live`, but
  /// doesn't extend an earlier expiration of the message.
  static func secondsLeft(_ request: SendRequest, _ context: borrowing TranslationContext) -> Int64 {
    if (request.androidTimeToLive ?? request.timeToLive) == 0 { return 0 }
    var deadline = context.deadline
    if let own = request.androidTimeToLive, let common = request.timeToLive {
      deadline = context.deadline(own, insteadOf: common)
    }
    guard deadline > context.now else { return 0 }
    return min((deadline - context.now) / 1000, Int64(RequestLimits.longestTimeToLive))
  }

  /// Appends the kind of message of `android_v2`.
  private func appendMessage(_ request: SendRequest, _ hasCommon: Bool, to body: inout [UInt8]) {
    body.appendMemberSeparator()
    guard request.android(.backgroundSync) == nil else { return body.append(#""background_sync":{}"#) }
    body.append(#""remote_notification":{"#)
    appendShown(request, hasCommon, isV2: true, to: &body)
    if let flag = request.remoteNotification(.mutableContent) {
      body.appendMember(#""mutable_content":"#, flag, of: request.document)
    }
    if let flag = request.remoteNotification(.useAsV1DataMessage) {
      body.appendMember(#""use_as_v1_data_message":"#, flag, of: request.document)
    }
    body.append(0x7D)
  }

  /// Appends the `notification`. In `android_v2` it also has title, body and image: FCM doesn't document that it uses the common `notification` there.
  private func appendShown(_ request: SendRequest, _ hasCommon: Bool, isV2: Bool, to body: inout [UInt8]) {
    let isTranslated = request.shape == .gcm && request.hasNotification
    let carriesCommon = !hasCommon || (isV2 && isTranslated)
    guard isTranslated || carriesCommon || request.countsBadge || request.android(.notification) != nil else { return }
    let document = request.document
    var isOpen = false
    let fields = Self.fields
    // Blocks and counters may fill any field.
    let isPlain = request.blocks == nil && !request.countsBadge
    var places = isPlain ? Self.places(of: request.notification.present) : 1 &<< UInt32(fields.count) &- 1
    while places != 0 {
      let index = places.trailingZeroBitCount
      places &= places &- 1
      // A copy of the whole field would retain its name.
      let field = fields[index].key
      let node = request.androidNotification(field)
      let key = (isTranslated ? fields[index].source : nil) ?? (carriesCommon ? fields[index].common : nil)
      var source = node == nil ? key.flatMap { request.notification[$0] } : nil
      // Android shows the counter beside the app's icon.
      if field == .notificationCount, node == nil, source == nil, isTranslated, case .automatic? = request.badge {
        source = request.notification[.badge]
      }
      let counts = request.countsBadge && field == .notificationCount && node == nil && source == nil
      guard node != nil || source != nil || counts else { continue }
      let mark = body.count
      body.appendMemberSeparator()
      if !isOpen { body.append(#""notification":{"#) }
      body.append(contentsOf: fields[index].member)
      if let node {
        document.append(node, to: &body)
      } else if counts {
        guard Self.appendCounter(request, to: &body) else {
          body.removeSubrange(mark...)
          continue
        }
      } else if let source, let key, !Self.append(key, source, fields[index].form(inV2: isV2), request, to: &body) {
        body.removeSubrange(mark...)
        continue
      }
      isOpen = true
    }
    if isOpen { body.append(0x7D) }
  }

  /// False if Android has no use for the value.
  private static func append(
    _ key: NotificationKey, _ node: Int, _ form: Form, _ request: SendRequest, to body: inout [UInt8]
  ) -> Bool {
    switch form {
    case .plain: request.document.append(node, to: &body)
    case .secureURL:
      guard TextForm.isSecureURL(request.document.string(node)) else { return false }
      request.document.append(node, to: &body)
    case .arguments: return request.appendArguments(key, to: &body)
    case .count where request.document.isString(node, "auto"): return appendCounter(request, to: &body)
    case .count:
      guard let count = request.count(key) else { return false }
      body.appendDecimal(count)
    case .flag:
      guard let flag = request.flag(key) else { return false }
      body.append(flag ? "true" : "false")
    case .sound:
      guard request.document.kind(node) == .object else {
        request.document.append(node, to: &body)
        return true
      }
      guard let name = request.document.value("name", of: node), request.document.kind(name) == .string else { return false }
      request.document.append(name, to: &body)
    }
    return true
  }

  /// False if the badge is removed.
  private static func appendCounter(_ request: SendRequest, to body: inout [UInt8]) -> Bool {
    guard let badge = request.badgeOfCounter else { return false }
    body.appendBadge(badge)
    return true
  }

  private enum Form { case plain, secureURL, arguments, count, flag, sound }

  private struct Field {
    let key: AndroidNotificationKey
    /// With quotes and colon.
    let member: [UInt8]
    /// Nil if GCM has no such key, or if the common `notification` has it.
    let source: NotificationKey?
    let common: NotificationKey?
    let form: Form
    init(
      _ key: AndroidNotificationKey, _ source: NotificationKey? = nil, _ form: Form = .plain, common: NotificationKey? = nil
    ) {
      self.common = common
      self.key = key
      member = Array("\"\(key.wireName)\":".utf8)
      self.source = source
      self.form = form
    }

    /// True if Android may show the key's value here.
    func takes(_ name: NotificationKey) -> Bool {
      source == name || common == name || key == .notificationCount && name == .badge
    }

    /// Only `android_v2` requires https.
    func form(inV2: Bool) -> Form { form == .secureURL && !inV2 ? .plain : form }
  }

  /// The key of `android.notification` that overrides GCM's key; nil if Android has none.
  static func androidKey(replacing key: NotificationKey) -> AndroidNotificationKey? {
    fields.first { $0.source == key || $0.common == key }?.key
  }

  private static let fields: [Field] = [
    .init(.title, common: .title), .init(.body, common: .body), .init(.icon, .icon), .init(.color, .color),
    .init(.sound, .sound, .sound), .init(.tag, .tag),
    .init(.clickAction, .clickAction), .init(.titleLocKey, .titleLocKey), .init(.titleLocArgs, .titleLocArgs, .arguments),
    .init(.bodyLocKey, .bodyLocKey), .init(.bodyLocArgs, .bodyLocArgs, .arguments), .init(.channelId, .androidChannelId),
    .init(.ticker, .ticker), .init(.sticky, .sticky, .flag), .init(.eventTime, .eventTime),
    .init(.localOnly, .localOnly, .flag),
    .init(.notificationPriority, .notificationPriority), .init(.defaultSound, .defaultSound, .flag),
    .init(.defaultVibrateTimings), .init(.defaultLightSettings), .init(.vibrateTimings), .init(.visibility, .visibility),
    .init(.notificationCount, .notificationCount, .count), .init(.lightSettings),
    .init(.image, nil, .secureURL, common: .image),
    .init(.bypassProxyNotification), .init(.proxy), .init(.id),
  ]

  /// One bit for each of the `fields` in which Android may show a value.
  /// - Parameter present: one bit for each ``NotificationKey``.
  private static func places(of present: UInt32) -> UInt32 {
    var (places, rest): (UInt32, UInt32) = (0, present)
    while rest != 0 {
      places |= placesOfKeys[rest.trailingZeroBitCount]
      rest &= rest &- 1
    }
    return places
  }

  private static let placesOfKeys: [UInt32] = NotificationKey.allCases.map { name in
    fields.indices.reduce(0) { fields[$1].takes(name) ? $0 | 1 &<< UInt32($1) : $0 }
  }

  private static let carried: [AndroidKey] = [
    .data, .fcmOptions, .directBootOk, .bandwidthConstrainedOk, .restrictedSatelliteOk,
  ]
}
