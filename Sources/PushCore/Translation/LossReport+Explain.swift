/// What a translation did, found by looking at the request once more: nothing of it is computed on the delivery path.
extension LossReport {
  /// - Parameter movesExtension: `data.ext` stands in `mps`.
  mutating func explain(_ request: borrowing SendRequest, forAPNs delivery: AppleDelivery, movesExtension: Bool) {
    explainNotification(request, .apns, delivery)
    explainDefaultBadge(request, .apns, delivery)
    explainData(request, .apns, replacedBy: delivery.content.payload, movesExtension: movesExtension)
    explainEmulation(request, .apns, delivery)
    explainFlags(request, .apns, delivery)
    explainBackground(request, .apns, delivery)
    explainPriority(request, .apns, delivery)
    explainLifetime(request, .apns, delivery)
    explainCollapseKey(request, .apns, delivery)
    if request.restrictedPackageNameNode != nil { add(.packageName, .apns) }
    if request.isDryRun { add(.dryRun, .apns) }
    if request.blocks?.androidV2 != nil { add(.androidV2Block, .apns) }
    if request.apns(.liveActivityToken) != nil { add(.liveActivityToken, .apns) }
    if request.fcmOptionsNode != nil { add(.options, .apns, field: "fcm_options") }
    if request.apns(.fcmOptions) != nil { add(.options, .apns, field: "apns.fcm_options") }
    explainIgnored(request, .apns)
  }

  /// - Parameter delivery: nil where Apple devices get nothing by FCM.
  mutating func explain(_ request: borrowing SendRequest, forFCM delivery: AppleDelivery?) {
    explainNotification(request, .fcm, delivery)
    explainDefaultBadge(request, .fcm, delivery)
    explainData(request, .fcm, replacedBy: nil)
    if request.dataNode != nil, request.android(.data) != nil { addLost("data", .fcm, .android, "\(Self.block(request)).data") }
    explainEmulation(request, .fcm, delivery)
    explainFlags(request, .fcm, delivery)
    explainBackground(request, .fcm, delivery)
    explainPriority(request, .fcm, delivery)
    explainLifetime(request, .fcm, delivery)
    explainCollapseKey(request, .fcm, delivery)
    if request.restrictedPackageNameNode != nil, request.android(.restrictedPackageName) != nil {
      addLost("restricted_package_name", .fcm, .android, "\(Self.block(request)).restricted_package_name")
    }
    explainAndroidV2(request)
    if request.isDryRun { add(.dryRun, .fcm) }
    explainIgnored(request, .fcm)
  }

  /// The address of a page stands in the place of `data.ext`.
  mutating func addPage(_ platform: Platform) {
    add(.extensionPage, platform, field: "data.ext", words: "too large for the push: kept as a page, whose address is sent")
  }

  /// One entry of a rule, unless the platform carries the field as it is.
  mutating func add(_ rule: MappingRule, _ platform: Platform, field: String? = nil, words: String? = nil) {
    let (row, mapping) = (rule.row, rule.mapping(platform))
    guard let action = mapping.action else { return }
    add(row.rule, field ?? row.field, action, words ?? mapping.words)
  }

  /// What mappings say of `android`, in the paths of the block that the request has.
  private static func spelt(_ words: String, _ request: borrowing SendRequest) -> String {
    guard request.blocks?.androidV2 != nil else { return words }
    return words.replacing("android.notification.", with: "android_v2.remote_notification.notification.")
      .replacing("android.", with: "android_v2.")
  }

  /// Devices that one view of a request speaks of.
  private enum Devices: String {
    case apple = "Apple devices"
    case android = "Android devices"
  }

  /// The request's own block says it for these devices, and so the field doesn't.
  private mutating func addLost(
    _ field: String, _ platform: Platform, _ devices: Devices, _ winner: String, _ rest: String = ""
  ) {
    let rule: MappingRule = devices == .apple ? .apnsBlock : .androidBlock
    let whom = platform == .apns ? "" : "for \(devices.rawValue): "
    add(rule.row.rule, field, .dropped, "\(whom)\(winner) wins\(rest)")
  }

  // MARK: what is shown and carried

  private mutating func explainNotification(
    _ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?
  ) {
    for (key, rule) in Self.notificationRules {
      guard let node = request.notification[key] else { continue }
      let field = "notification.\(key.wireName)"
      let apple = delivery.flatMap { Self.apsWinner(over: key, $0.content, request.document) }
      let android =
        platform == .fcm
        ? AndroidNotificationKey.replacing(key).flatMap { request.androidNotification($0) == nil ? nil : $0 } : nil
      let isDroppedByType = key == .clickAction && delivery?.pushType == .background
      if isDroppedByType {
        add(.categoryWithoutAlert, platform, field: field)
      } else if let apple {
        addLost(field, platform, .apple, apple)
      }
      if let android {
        let place = request.blocks?.androidV2 == nil ? "android" : "android_v2.remote_notification"
        addLost(field, platform, .android, "\(place).notification.\(android.wireName)")
      }
      if key == .badge, platform == .fcm, request.document.isString(node, "auto") {
        explainCounter(request, isForApple: delivery != nil && apple == nil)
        continue
      }
      // What is said of it holds for those for whom nothing else wins.
      let isOnlyForApple = platform == .apns || rule == .badge || rule == .subtitle
      if isOnlyForApple
        ? apple != nil || isDroppedByType || delivery == nil && platform == .fcm : apple != nil && android != nil
      {
        continue
      }
      let isObject = key == .sound && request.document.kind(node) == .object
      // Android plays none of it.
      if isObject, platform == .fcm, android != nil || request.blocks?.androidV2?.isSync == true { continue }
      if isObject, platform == .fcm, request.document.value("name", of: node).map(request.document.kind) != .string {
        add(MappingRule.soundObject.row.rule, field, .dropped, "for Android: it has no name")
        continue
      }
      let isCounter = key == .badge && request.document.isString(node, "auto")
      add(isObject ? .soundObject : isCounter ? .automaticBadge : rule, platform, field: field)
    }
  }

  /// A badge that the application's setting asks for.
  private mutating func explainDefaultBadge(
    _ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?
  ) {
    guard request.countsBadge else { return }
    let isForApple = delivery.map { Self.apsWinner(over: .badge, $0.content, request.document) == nil } ?? false
    if platform == .fcm { return explainCounter(request, isForApple: isForApple) }
    if isForApple { add(.automaticBadge, .apns, field: "notification.badge") }
  }

  /// A badge of `auto` by FCM: what is shown on Android has it as a number, unless it has a number of its own.
  private mutating func explainCounter(_ request: borrowing SendRequest, isForApple: Bool) {
    let isForAndroid =
      request.blocks?.androidV2?.isSync != true && request.androidNotification(.notificationCount) == nil
      && request.notification[.notificationCount] == nil
    let count = Self.spelt("android.notification.notification_count", request)
    let words: String
    switch (isForApple, isForAndroid) {
    case (false, false): return
    case (true, true): words = Self.spelt(MappingRule.automaticBadge.mapping(.fcm).words, request)
    case (true, false): words = "for Apple devices only: apns.payload.aps.badge, the device's counter after one more"
    case (false, true):
      switch request.badgeOfCounter {
      case .automatic?: words = "for Android devices only: \(count), the device's counter after one more"
      case .number?: words = "for Android devices only: \(count), as apns.payload.aps.badge has it"
      case nil:
        return add(
          MappingRule.automaticBadge.row.rule, "notification.badge", .dropped,
          "for Android devices: apns.payload.aps.badge takes it away, so nothing is counted")
      }
    }
    add(.automaticBadge, .fcm, field: "notification.badge", words: words)
  }

  /// The key of the block's `aps` that stands where this one would; nil where it stands itself.
  private static func apsWinner(over key: NotificationKey, _ content: APSContent, _ document: JSONDocument) -> String? {
    guard let override = content.override else { return nil }
    let name: String
    switch key {
    case .badge: name = "badge"
    case .sound: name = "sound"
    case .clickAction: name = "category"
    default:
      guard let field = APSContent.alertFields.first(where: { $0.key == key }), let alert = content.alertOverride else {
        return nil
      }
      guard document.kind(alert) == .object else { return "apns.payload.aps.alert" }
      return document.value(field.name, of: alert) == nil ? nil : "apns.payload.aps.alert.\(field.name)"
    }
    return document.value(name, of: override) == nil ? nil : "apns.payload.aps.\(name)"
  }

  /// - Parameter payload: the block's, whose own keys stand where data keys of the same names would.
  private mutating func explainData(
    _ request: borrowing SendRequest, _ platform: Platform, replacedBy payload: Int?, movesExtension: Bool = false
  ) {
    guard let data = request.dataNode else { return }
    let document = request.document
    let own = payload.map { Set(document.members(of: $0).map { document.string($0.name) }) } ?? []
    for (name, value) in document.members(of: data) where !isFull {
      let kind = document.kind(value)
      if kind == .null {
        add(.dataNull, platform, field: document.path(to: value))
      } else if movesExtension, document.isString(name, SendRequest.extensionKey) {
        add(.extensionMoved, platform, field: document.path(to: value))
        if kind != .string { add(.dataConverted, platform, field: document.path(to: value)) }
      } else if own.contains(document.string(name)) {
        add(MappingRule.apnsBlock.row.rule, document.path(to: name), .dropped, "apns.payload has a key of the same name")
      } else if kind != .string {
        add(.dataConverted, platform, field: document.path(to: value))
      }
    }
  }

  private mutating func explainEmulation(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    guard let delivery, delivery.isEmulated else { return }
    let row = MappingRule.dataOnly.row
    add(
      .dataOnly, platform,
      field: request.hasData
        ? row.field
        : delivery.content.payload == nil
          ? "a request without notification and data" : "apns.payload (nothing to show, no content-available)")
  }

  /// What the block's `aps` says and a background push can't have. APNs' translation refuses what stands beside `content-available`.
  private mutating func explainBackground(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    guard let delivery, delivery.pushType == .background, let override = delivery.content.override else { return }
    let document = request.document
    let whom = platform == .apns ? "" : "for \(Devices.apple.rawValue): "
    if let node = document.value(APSKey.contentAvailable.wireName, of: override), (try? document.integer(node)) != 1 {
      add(.backgroundKey, platform, field: document.path(to: node), words: "\(whom)a background push has 1")
    }
    for (_, value) in delivery.content.namesBeyondBackground(document) where platform == .fcm && !isFull {
      add(.backgroundKey, platform, field: document.path(to: value))
    }
  }

  private mutating func explainFlags(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    guard let delivery else { return }
    let content = delivery.content
    func isOverridden(_ name: String) -> Bool {
      content.override.map { request.document.value(name, of: $0) != nil } ?? false
    }
    if request.contentAvailable {
      if isOverridden("content-available"), delivery.pushType != .background {
        addLost("content_available", platform, .apple, "apns.payload.aps.content-available")
      } else {
        add(.contentAvailable, platform)
      }
    }
    guard request.mutableContent else { return }
    if !content.hasAlert {
      add(.mutableWithoutAlert, platform, field: "mutable_content")
    } else if isOverridden("mutable-content") {
      addLost("mutable_content", platform, .apple, "apns.payload.aps.mutable-content")
    } else {
      add(.mutableContent, platform)
    }
  }

  // MARK: options

  /// The block for Android that the request has.
  private static func block(_ request: borrowing SendRequest) -> String {
    request.blocks?.androidV2 == nil ? "android" : "android_v2"
  }

  /// An option that becomes something else for each kind of device, unless their block has its own.
  private mutating func explainOption(
    _ request: borrowing SendRequest, _ rule: MappingRule, _ field: String, _ platform: Platform,
    apple: (name: String, isOwn: Bool),
    android: (name: String, isOwn: Bool), _ delivery: AppleDelivery?
  ) {
    // What becomes of it for Android is told with the block.
    let isV2Priority = rule == .priority && request.blocks?.androidV2 != nil
    let isForApple = delivery != nil && !apple.isOwn
    let isForAndroid = platform == .fcm && !android.isOwn && !isV2Priority
    // Of how long the request lives in the fleet it decides whatever the block says.
    let rest = rule == .timeToLive ? " there; time_to_live still ends the request in the fleet" : ""
    if delivery != nil, apple.isOwn { addLost(field, platform, .apple, "apns.headers.\(apple.name)", rest) }
    if platform == .fcm, android.isOwn, !isV2Priority {
      addLost(field, platform, .android, "\(Self.block(request)).\(android.name)", rest)
    }
    switch (platform, isForApple, isForAndroid) {
    case (_, false, false): return
    case (.apns, _, _), (.fcm, true, true):
      add(rule, platform, field: field, words: Self.spelt(rule.mapping(platform).words, request))
    case (.fcm, true, false): add(rule, platform, field: field, words: "for \(Devices.apple.rawValue) only: \(apple.name)")
    case (.fcm, false, true):
      // What Android's own option carries as it is makes no entry.
      if rule != .collapseKey {
        add(rule, platform, field: field, words: "for \(Devices.android.rawValue) only: \(Self.block(request)).\(android.name)")
      }
    }
  }

  private mutating func explainPriority(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    if platform == .fcm, request.blocks?.androidV2 != nil {
      if request.priority != nil { add(.androidV2Priority, .fcm, field: "priority") }
      if request.delayWhileIdle { add(.androidV2Priority, .fcm, field: "delay_while_idle") }
      guard delivery != nil else { return }
    }
    let header = request.apnsHeader(.apnsPriority)
    let isHigh = request.priority == .high
    let isBackground = delivery?.pushType == .background
    let cut = platform == .fcm && request.blocks?.androidV2 != nil ? "apns-priority 5" : nil
    if let header, isBackground, request.document.isString(header, "10") {
      add(.backgroundPriority, platform, field: "apns.headers.apns-priority", words: cut)
    }
    if request.priority != nil {
      if isHigh, isBackground, header == nil {
        add(.backgroundPriority, platform, field: "priority", words: cut)
        if platform == .fcm, request.android(.priority) != nil { addLost("priority", platform, .android, "android.priority") }
      } else {
        explainOption(
          request, .priority, "priority", platform, apple: ("apns-priority", header != nil),
          android: ("priority", request.android(.priority) != nil), delivery)
      }
    }
    guard request.delayWhileIdle else { return }
    if isHigh {
      add(MappingRule.delayWhileIdle.row.rule, "delay_while_idle", .dropped, "no counterpart, and priority says high")
    } else {
      explainDelay(request, platform, delivery, hasHeader: header != nil)
    }
  }

  private mutating func explainDelay(
    _ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?, hasHeader: Bool
  ) {
    let hasOwn = request.android(.priority) != nil
    if delivery != nil, hasHeader { addLost("delay_while_idle", platform, .apple, "apns.headers.apns-priority") }
    if platform == .fcm, hasOwn { addLost("delay_while_idle", platform, .android, "android.priority") }
    let isForAndroid = platform == .fcm && !hasOwn && request.blocks?.androidV2 == nil
    switch (delivery != nil && !hasHeader, isForAndroid) {
    case (true, false) where platform == .fcm:
      add(.delayWhileIdle, platform, words: "for \(Devices.apple.rawValue) only: sent with priority 5")
    case (false, true) where delivery != nil:
      add(.delayWhileIdle, platform, words: "for \(Devices.android.rawValue) only: sent with priority NORMAL")
    case (false, false): return
    default: add(.delayWhileIdle, platform)
    }
  }

  private mutating func explainAndroidV2(_ request: borrowing SendRequest) {
    guard let v2 = request.blocks?.androidV2 else { return }
    if !v2.isSync, request.shape == .gcm, request.androidNotification(.image) == nil, let image = request.notification[.image],
      !TextForm.isSecureURL(request.document.string(image))
    {
      add(
        MappingRule.androidV2Block.row.rule, "notification.image", .dropped, "for Android: android_v2 has https URLs only")
    }
    if v2.isSync, request.shape == .gcm, request.hasNotification { add(.backgroundSync, .fcm, field: "notification") }
  }

  private mutating func explainLifetime(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    let isOwn = request.apnsHeader(.apnsExpiration) != nil
    if request.timeToLive != nil {
      explainOption(
        request, .timeToLive, "time_to_live", platform, apple: ("apns-expiration", isOwn),
        android: ("ttl", request.android(.ttl) != nil), delivery)
    } else if request.android(.ttl) != nil, delivery != nil, !isOwn {
      let rule: MappingRule = delivery?.isBroadcast == true ? .channelLifetime : .androidLifetime
      add(
        rule, platform, field: "\(Self.block(request)).ttl (no time_to_live)",
        words: Self.spelt(rule.mapping(platform).words, request))
    }
  }

  private mutating func explainCollapseKey(_ request: borrowing SendRequest, _ platform: Platform, _ delivery: AppleDelivery?) {
    let own = request.apnsHeader(.apnsCollapseId).map(request.document.string)
    if let own, let delivery, let id = delivery.collapseID, id != own {
      // Android has no part in it.
      add(
        .collapseKeyCut, platform, field: "apns.headers.apns-collapse-id",
        words: MappingRule.collapseKeyCut.mapping(.apns).words)
    }
    guard let key = request.collapseKey else { return }
    if delivery?.isBroadcast == true { return add(.channelCollapseKey, platform, field: "collapse_key") }
    let isOwn = own != nil
    if !isOwn, let delivery, let id = delivery.collapseID, id != key {
      add(.collapseKeyCut, platform, field: "collapse_key")
      if platform == .fcm, request.android(.collapseKey) != nil {
        addLost("collapse_key", platform, .android, "\(Self.block(request)).collapse_key")
      }
      return
    }
    explainOption(
      request, .collapseKey, "collapse_key", platform, apple: ("apns-collapse-id", isOwn),
      android: ("collapse_key", request.android(.collapseKey) != nil), delivery)
  }

  private mutating func explainIgnored(_ request: borrowing SendRequest, _ platform: Platform) {
    for name in request.ignoredNames where !isFull { add(.unknownName, platform, field: request.document.path(to: name)) }
  }

  private static let notificationRules: [(NotificationKey, MappingRule)] = [
    (.title, .text), (.body, .text),
    (.subtitle, .subtitle), (.subtitleLocKey, .subtitle), (.subtitleLocArgs, .subtitle), (.badge, .badge), (.sound, .sound),
    (.clickAction, .clickAction), (.titleLocKey, .localisation), (.titleLocArgs, .localisation),
    (.bodyLocKey, .localisation), (.bodyLocArgs, .localisation), (.icon, .icon), (.color, .color), (.tag, .tag),
    (.androidChannelId, .channel), (.image, .android), (.ticker, .android), (.sticky, .android), (.localOnly, .android),
    (.eventTime, .android), (.notificationPriority, .android), (.visibility, .android), (.notificationCount, .android),
    (.defaultSound, .android),
  ]
}

extension AndroidNotificationKey {
  /// The key of `android.notification` that stands where GCM's would; nil where Android has none.
  fileprivate static func replacing(_ key: NotificationKey) -> AndroidNotificationKey? {
    switch key {
    case .androidChannelId: .channelId
    case .badge, .subtitle, .subtitleLocKey, .subtitleLocArgs: nil
    default: allCases.first { $0.wireName == key.wireName }
    }
  }
}
