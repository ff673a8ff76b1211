/// Reports the losses of a translation by examining the request again. Costs the delivery path nothing.
extension LossReport {
  /// - Parameters:
  ///   - delivery: nil if Apple devices get nothing.
  ///   - movesExtension: true if `data.ext` moves into the object `mps`.
  ///   - content: of a web push.
  mutating func explain(
    _ request: SendRequest, for platform: Platform, _ delivery: AppleDelivery? = nil, movesExtension: Bool = false,
    content: WebPushContent? = nil
  ) {
    var explanation = LossExplanation(report: self, request: request, platform: platform, delivery: delivery, content: content)
    explanation.explain(movesExtension)
    self = explanation.report
  }

  mutating func addPage(_ platform: Platform) {
    add(.extensionPage, platform, field: "data.ext", words: "too large for the push: kept as a page, whose address is sent")
  }

  /// Adds an entry unless the platform carries the field unchanged.
  mutating func add(_ rule: MappingRule, _ platform: Platform, field: String? = nil, words: String? = nil) {
    let mapping = rule.mapping(platform)
    guard let action = mapping.action else { return }
    add(rule.source, field ?? rule.field, action, words ?? mapping.words)
  }
}

struct LossExplanation {
  private(set) var report: LossReport
  let request: SendRequest
  let platform: Platform
  let delivery: AppleDelivery?
  /// Of a web push only.
  let content: WebPushContent?

  enum Devices: String {
    case apple = "Apple devices"
    case android = "Android devices"
    case browsers

    fileprivate var block: MappingRule {
      switch self {
      case .apple: .apnsBlock
      case .android: .androidBlock
      case .browsers: .webpushBlock
      }
    }
  }

  var document: JSONDocument { request.document }
  private var isV2: Bool { request.hasAndroidV2 }
  private var isSync: Bool { request.android(.backgroundSync) != nil }
  private var block: String { isV2 ? "android_v2" : "android" }

  mutating func explain(_ movesExtension: Bool) {
    if let content {
      explainNotification(content)
      explainData(movesExtension)
      explainFlags(content)
    } else {
      explainNotification()
      explainDefaultBadge()
      explainData(movesExtension)
      explainEmulation()
      explainFlags()
      explainBackground()
    }
    explainPriority()
    explainLifetime()
    explainCollapseKey()
    if platform == .fcm {
      if request.restrictedPackageNameNode != nil { addLostToAndroid("restricted_package_name", .restrictedPackageName) }
      explainAndroidV2()
      if request.isDryRun { add(.dryRun) }
    } else {
      if request.packageNode != nil { add(.packageName) }
      if request.isDryRun { add(.dryRun) }
      if isV2 { add(.androidV2Block) }
      if request.apns(.liveActivityToken) != nil { add(.liveActivityToken) }
      if request.fcmOptionsNode != nil { add(.options, field: "fcm_options") }
      explainOwnOptions()
    }
    for name in request.ignoredNames where !report.isFull { add(.unknownName, field: document.path(to: name)) }
  }

  // MARK: Entries

  mutating func add(_ rule: MappingRule, field: String? = nil, words: String? = nil) {
    report.add(rule, platform, field: field, words: words)
  }

  mutating func drop(_ rule: MappingRule, _ field: String, _ words: String) {
    report.add(rule.source, field, .dropped, words)
  }

  /// Adds that the request's own block overrides the field for these devices.
  mutating func addLost(_ field: String, _ devices: Devices, to winner: String, _ rest: String = "") {
    drop(devices.block, field, "\(whom(devices))\(winner) wins\(rest)")
  }

  /// Adds that the block's key overrides the field for Android devices, if it does.
  private mutating func addLostToAndroid(_ field: String, _ key: AndroidKey) {
    if platform == .fcm, request.android(key) != nil { addLost(field, .android, to: "\(block).\(key.wireName)") }
  }

  private func whom(_ devices: Devices) -> String { platform == .fcm ? "for \(devices.rawValue): " : "" }

  /// Adapts words about `android` to the block that the request has.
  private func spelt(_ words: String) -> String {
    guard isV2 else { return words }
    return words.replacing("android.notification.", with: "android_v2.remote_notification.notification.")
      .replacing("android.", with: "android_v2.")
  }

  // MARK: Notification and data

  private mutating func explainNotification() {
    for (key, rule) in MappingRule.ofNotification {
      guard let node = request.notification[key] else { continue }
      let field = "notification.\(key.wireName)"
      let apple = delivery.flatMap { $0.content.winner(over: key, document) }
      let android =
        platform == .fcm
        ? FCMMessage.androidKey(replacing: key).flatMap { request.androidNotification($0) == nil ? nil : $0 } : nil
      let isDroppedByType = key == .clickAction && delivery?.pushType == .background
      if isDroppedByType {
        add(.categoryWithoutAlert, field: field)
      } else if let apple {
        addLost(field, .apple, to: apple)
      }
      if let android { addLost(field, .android, to: spelt("android.notification.\(android.wireName)")) }
      if key == .badge, platform == .fcm, document.isString(node, "auto") {
        explainCounter(isForApple: delivery != nil && apple == nil)
        continue
      }
      // The next entry is for devices without an override.
      let isOnlyForApple = platform == .apns || rule == .badge || rule == .subtitle
      if isOnlyForApple
        ? apple != nil || isDroppedByType || delivery == nil && platform == .fcm : apple != nil && android != nil
      {
        continue
      }
      let isObject = key == .sound && document.kind(node) == .object
      // Android plays no sound here.
      if isObject, platform == .fcm, android != nil || isSync { continue }
      if isObject, platform == .fcm, document.string("name", of: node) == nil {
        drop(.soundObject, field, "for Android: it has no name")
        continue
      }
      let isCounter = key == .badge && document.isString(node, "auto")
      add(isObject ? .soundObject : isCounter ? .automaticBadge : rule, field: field)
    }
  }

  private mutating func explainDefaultBadge() {
    guard request.countsBadge else { return }
    let isForApple = delivery.map { $0.content.winner(over: .badge, document) == nil } ?? false
    if platform == .fcm { return explainCounter(isForApple: isForApple) }
    if isForApple { add(.automaticBadge, field: "notification.badge") }
  }

  /// A badge of `auto` through FCM: Android shows it as a number, unless it has its own number.
  private mutating func explainCounter(isForApple: Bool) {
    let isForAndroid =
      !isSync && request.androidNotification(.notificationCount) == nil
      && request.notification[.notificationCount] == nil
    let count = spelt("android.notification.notification_count")
    let words: String
    switch (isForApple, isForAndroid) {
    case (false, false): return
    case (true, true): words = spelt(MappingRule.automaticBadge.mapping(.fcm).words)
    case (true, false): words = "for Apple devices only: apns.payload.aps.badge, the device's counter plus one"
    case (false, true):
      switch request.badgeOfCounter {
      case .automatic?: words = "for Android devices only: \(count), the device's counter plus one"
      case .number?: words = "for Android devices only: \(count), as apns.payload.aps.badge has it"
      case nil:
        return drop(
          .automaticBadge, "notification.badge",
          "for Android devices: apns.payload.aps.badge takes it away, so nothing is counted")
      }
    }
    add(.automaticBadge, field: "notification.badge", words: words)
  }

  private mutating func explainData(_ movesExtension: Bool) {
    guard let data = request.dataNode else { return }
    // Through APNs, keys of the block's payload override data keys of the same names, and in web pushes those of its data.
    let payload = platform == .apns ? delivery?.content.payload : nil
    let own = content?.ownData ?? payload.map { Set(document.members(of: $0).map { document.string($0.name) }) } ?? []
    let (block, name) = content == nil ? (MappingRule.apnsBlock, "apns.payload") : (.webpushBlock, "webpush.data")
    for (key, value) in document.members(of: data) where !report.isFull {
      let kind = document.kind(value)
      if kind == .null {
        add(.dataNull, field: document.path(to: value))
      } else if movesExtension, document.isString(key, SendRequest.extensionKey) {
        add(.extensionMoved, field: document.path(to: value))
        if kind != .string { add(.dataConverted, field: document.path(to: value)) }
      } else if own.contains(document.string(key)) {
        drop(block, document.path(to: key), "\(name) has a key of the same name")
      } else if kind != .string {
        add(.dataConverted, field: document.path(to: value))
      }
    }
    addLostToAndroid("data", .data)
  }

  private mutating func explainEmulation() {
    guard let delivery, delivery.isEmulated else { return }
    let isEmpty = delivery.content.payload == nil
    add(
      .dataOnly,
      field: request.hasData
        ? nil
        : isEmpty ? "a request without notification and data" : "apns.payload (nothing to show, no content-available)")
  }

  private mutating func explainFlags() {
    guard let delivery else { return }
    let content = delivery.content
    if request.contentAvailable {
      if content.isOverridden("content-available", document), delivery.pushType != .background {
        addLost("content_available", .apple, to: "apns.payload.aps.content-available")
      } else {
        add(.contentAvailable)
      }
    }
    guard request.mutableContent else { return }
    if !content.hasAlert {
      add(.mutableWithoutAlert, field: "mutable_content")
    } else if content.isOverridden("mutable-content", document) {
      addLost("mutable_content", .apple, to: "apns.payload.aps.mutable-content")
    } else {
      add(.mutableContent)
    }
  }

  /// Reports keys of the block's `aps` that a background push can't have. APNs' translation refuses most of them.
  private mutating func explainBackground() {
    guard let delivery, delivery.pushType == .background, let override = delivery.content.override else { return }
    if let node = document.value(APSKey.contentAvailable.wireName, of: override), document.integer(node) != 1 {
      add(.backgroundKey, field: document.path(to: node), words: "\(whom(.apple))a background push has 1")
    }
    for (_, value) in delivery.content.namesBeyondBackground(document) where platform == .fcm && !report.isFull {
      add(.backgroundKey, field: document.path(to: value))
    }
  }

  // MARK: Options

  /// An option that each kind of device gets in its own form, unless its block has the option.
  private mutating func explainOption(
    _ rule: MappingRule, _ header: APNsHeader, _ key: AndroidKey, _ webHeader: WebPushHeader
  ) {
    let field = rule.field
    let isOwnOfApple = request.apnsHeader(header) != nil
    let isOwnOfAndroid = request.android(key) != nil
    // The entry of `android_v2` reports priority for Android.
    let hasAndroid = platform == .fcm && (key != .priority || !isV2)
    // `time_to_live` limits the request's life in the fleet even if a block overrides it.
    let rest = rule == .timeToLive ? " there; time_to_live still ends the request in the fleet" : ""
    if isOwn(webHeader) { return addLost(field, .browsers, to: "webpush.headers.\(webHeader.rawValue)", rest) }
    if delivery != nil, isOwnOfApple { addLost(field, .apple, to: "apns.headers.\(header.wireName)", rest) }
    if hasAndroid, isOwnOfAndroid { addLost(field, .android, to: "\(block).\(key.wireName)", rest) }
    let isDelay = rule == .delayWhileIdle
    switch (delivery != nil && !isOwnOfApple, hasAndroid && !isOwnOfAndroid) {
    case (false, false) where content == nil: return
    case (true, false) where platform == .fcm:
      add(rule, words: "for Apple devices only: \(isDelay ? "sent with priority 5" : header.wireName)")
    case (false, true) where delivery != nil || !isDelay:
      // Android's own collapse key is carried unchanged, so there is no entry.
      guard rule != .collapseKey else { return }
      add(rule, words: "for Android devices only: \(isDelay ? "sent with priority NORMAL" : "\(block).\(key.wireName)")")
    default: add(rule, words: spelt(rule.mapping(platform).words))
    }
  }

  /// True if a web push gets this header field from the request's block.
  private func isOwn(_ header: WebPushHeader) -> Bool { content != nil && header.node(in: request) != nil }

  private mutating func explainPriority() {
    if platform == .fcm, isV2 {
      if request.priority != nil { add(.androidV2Priority, field: "priority") }
      if request.delayWhileIdle { add(.androidV2Priority, field: "delay_while_idle") }
      guard delivery != nil else { return }
    }
    let header = request.apnsHeader(.apnsPriority)
    let isHigh = request.priority == .high
    let isBackground = delivery?.pushType == .background
    let cut = platform == .fcm && isV2 ? "apns-priority 5" : nil
    if let header, isBackground, document.isString(header, "10") {
      add(.backgroundPriority, field: "apns.headers.apns-priority", words: cut)
    }
    if isHigh, isBackground, header == nil {
      add(.backgroundPriority, field: "priority", words: cut)
      addLostToAndroid("priority", .priority)
    } else if content != nil, request.priority == .normal, request.delayWhileIdle, !isOwn(.urgency) {
      drop(.priority, "priority", "delay_while_idle makes it lower")
    } else if request.priority != nil {
      explainOption(.priority, .apnsPriority, .priority, .urgency)
    }
    guard request.delayWhileIdle else { return }
    if isHigh, !isOwn(.urgency) {
      drop(.delayWhileIdle, "delay_while_idle", "no counterpart, and priority says high")
    } else {
      explainOption(.delayWhileIdle, .apnsPriority, .priority, .urgency)
    }
  }

  private mutating func explainLifetime() {
    guard request.timeToLive == nil else { return explainOption(.timeToLive, .apnsExpiration, .ttl, .ttl) }
    let isOwn = content == nil ? delivery == nil || request.apnsHeader(.apnsExpiration) != nil : isOwn(.ttl)
    guard request.android(.ttl) != nil, !isOwn else { return }
    let rule: MappingRule = delivery?.isBroadcast == true ? .channelLifetime : .androidLifetime
    add(rule, field: "\(block).ttl (no time_to_live)", words: spelt(rule.mapping(platform).words))
  }

  private mutating func explainCollapseKey() {
    if isOwn(.topic) { add(.collapseKey, field: "webpush.headers.Topic", words: "a hash of it") }
    let own = request.apnsHeader(.apnsCollapseId).map(document.string)
    let id = delivery?.collapseID
    if let own, let id, id != own {
      add(
        .collapseKeyCut, field: "apns.headers.apns-collapse-id", words: MappingRule.collapseKeyCut.mapping(.apns).words)
    }
    guard let key = request.collapseKey else { return }
    if delivery?.isBroadcast == true { return add(.channelCollapseKey, field: "collapse_key") }
    guard own == nil, let id, id != key else { return explainOption(.collapseKey, .apnsCollapseId, .collapseKey, .topic) }
    add(.collapseKeyCut, field: "collapse_key")
    addLostToAndroid("collapse_key", .collapseKey)
  }

  /// The options for FCM in the platform's own block.
  private mutating func explainOwnOptions() {
    guard content != nil else {
      if request.apns(.fcmOptions) != nil { add(.options, field: "apns.fcm_options") }
      return
    }
    guard let options = request.webpush(.fcmOptions) else { return }
    // Beside the link there is only the label for FCM's statistics.
    for (name, value) in document.members(of: options) where !document.isString(name, "link") && document.kind(value) != .null {
      add(.options, field: "webpush.fcm_options.analytics_label")
    }
  }

  private mutating func explainAndroidV2() {
    guard isV2, request.shape == .gcm else { return }
    if !isSync, request.androidNotification(.image) == nil, let image = request.notification[.image],
      !TextForm.isSecureURL(document.string(image))
    {
      drop(.androidV2Block, "notification.image", "for Android: android_v2 has https URLs only")
    }
    if isSync, request.hasNotification { add(.backgroundSync, field: "notification") }
  }
}

extension MappingRule {
  /// The rules of the keys of `notification`.
  static let ofNotification: [(NotificationKey, MappingRule)] = [
    (.title, .text), (.body, .text),
    (.subtitle, .subtitle), (.subtitleLocKey, .subtitle), (.subtitleLocArgs, .subtitle), (.badge, .badge), (.sound, .sound),
    (.clickAction, .clickAction), (.titleLocKey, .localisation), (.titleLocArgs, .localisation),
    (.bodyLocKey, .localisation), (.bodyLocArgs, .localisation), (.icon, .icon), (.color, .color), (.tag, .tag),
    (.androidChannelId, .channel), (.image, .image), (.ticker, .android), (.sticky, .android), (.localOnly, .android),
    (.eventTime, .android), (.notificationPriority, .android), (.visibility, .android), (.notificationCount, .android),
    (.defaultSound, .android),
  ]
}
