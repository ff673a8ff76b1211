/// What a translation did, found by looking at the request once more: nothing of it is computed on the delivery path.
extension LossReport {
  mutating func explain(_ request: borrowing SendRequest, as template: APNsTemplate, _ settings: borrowing APNsSettings) {
    explainNotification(request, .apns)
    explainData(request, .apns)
    let content = APSContent(request)
    if template.pushType == .background {
      if request.notification[.clickAction] != nil { add(.categoryWithoutAlert, .apns) }
      if !request.contentAvailable { add(.dataOnly, .apns) }
    }
    explainFlags(request, content, .apns)
    explainReplacedData(request, content)
    explainPriority(request, .apns, isBackground: template.pushType == .background)
    explainLifetime(request)
    explainCollapseKey(request, .apns)
    if request.restrictedPackageNameNode != nil { add(.packageName, .apns) }
    if request.isDryRun { add(.dryRun, .apns) }
    if request.blocks?.androidV2 != nil { add(.androidV2Block, .apns) }
    if template.activityToken != nil { add(.liveActivityToken, .apns) }
    if request.fcmOptionsNode != nil { add(.options, .apns, field: "fcm_options") }
    if request.apns(.fcmOptions) != nil { add(.options, .apns, field: "apns.fcm_options") }
  }

  mutating func explain(_ request: borrowing SendRequest, asFCM content: APSContent) {
    explainNotification(request, .fcm)
    explainData(request, .fcm)
    explainFlags(request, content, .fcm)
    explainPriority(request, .fcm, isBackground: request.contentAvailable && !content.isVisible)
    if request.timeToLive != nil { add(.timeToLive, .fcm) }
    explainCollapseKey(request, .fcm)
    explainAndroidV2(request)
    if request.isDryRun { add(.dryRun, .fcm) }
  }

  /// One entry of a rule, unless the platform carries the field as it is.
  mutating func add(_ rule: MappingRule, _ platform: Platform, field: String? = nil, detail: String = "") {
    let (row, mapping) = (rule.row, rule.mapping(platform))
    guard let action = mapping.action else { return }
    add(row.rule, field ?? row.field, action, mapping.words + detail)
  }

  private mutating func explainNotification(_ request: borrowing SendRequest, _ platform: Platform) {
    for (key, rule) in Self.notificationRules {
      guard let node = request.notification[key] else { continue }
      let isObject = key == .sound && request.document.kind(node) == .object
      let isCounter = key == .badge && request.document.isString(node, "auto")
      add(isObject ? .soundObject : isCounter ? .automaticBadge : rule, platform, field: "notification.\(key.wireName)")
    }
  }

  private mutating func explainData(_ request: borrowing SendRequest, _ platform: Platform) {
    guard let data = request.dataNode else { return }
    for (_, value) in request.document.members(of: data) {
      switch request.document.kind(value) {
      case .string: break
      case .null: add(.dataNull, platform, field: request.document.path(to: value))
      default: add(.dataConverted, platform, field: request.document.path(to: value))
      }
    }
  }

  /// The block's own keys stand where data keys of the same names would.
  private mutating func explainReplacedData(_ request: borrowing SendRequest, _ content: APSContent) {
    guard let data = request.dataNode, let payload = content.payload else { return }
    let document = request.document
    let own = Set(document.members(of: payload).map { document.string($0.name) })
    for (name, _) in document.members(of: data) where own.contains(document.string(name)) {
      add(MappingRule.apnsBlock.row.rule, document.path(to: name), .dropped, "apns.payload has a key of the same name")
    }
  }

  private mutating func explainLifetime(_ request: borrowing SendRequest) {
    if request.timeToLive != nil {
      add(.timeToLive, .apns)
    } else if request.android(.ttl) != nil, request.apnsHeader(.apnsExpiration) == nil {
      add(
        .androidLifetime, .apns,
        field: "\(request.blocks?.androidV2 == nil ? "android" : "android_v2").ttl (no time_to_live)")
    }
  }

  private mutating func explainFlags(_ request: borrowing SendRequest, _ content: APSContent, _ platform: Platform) {
    if request.contentAvailable { add(.contentAvailable, platform) }
    if request.mutableContent {
      add(content.hasAlert ? .mutableContent : .mutableWithoutAlert, platform, field: "mutable_content")
    }
  }

  private mutating func explainPriority(_ request: borrowing SendRequest, _ platform: Platform, isBackground: Bool) {
    if platform == .fcm, request.blocks?.androidV2 != nil {
      if request.priority != nil { add(.androidV2Priority, .fcm, field: "priority") }
      if request.delayWhileIdle { add(.androidV2Priority, .fcm, field: "delay_while_idle") }
      return
    }
    let isHigh = request.priority == .high
    if platform == .apns, let header = request.apnsHeader(.apnsPriority) {
      if isBackground, request.document.isString(header, "10") {
        add(.backgroundPriority, platform, field: "apns.headers.apns-priority")
      }
    } else if request.priority != nil {
      add(isHigh && isBackground ? .backgroundPriority : .priority, platform, field: "priority")
    }
    guard request.delayWhileIdle else { return }
    if isHigh {
      add(MappingRule.delayWhileIdle.row.rule, "delay_while_idle", .dropped, "no counterpart, and priority says high")
    } else {
      add(.delayWhileIdle, platform)
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

  private mutating func explainCollapseKey(_ request: borrowing SendRequest, _ platform: Platform) {
    guard let key = request.collapseKey else { return }
    if key.count > CollapseID.limit {
      add(.collapseKeyCut, platform, field: "collapse_key", detail: " (of \(key.count))")
    } else {
      add(.collapseKey, platform)
    }
  }

  private static let notificationRules: [(NotificationKey, MappingRule)] = [
    (.subtitle, .subtitle), (.subtitleLocKey, .subtitle), (.subtitleLocArgs, .subtitle), (.badge, .badge), (.sound, .sound),
    (.clickAction, .clickAction), (.titleLocKey, .localisation), (.titleLocArgs, .localisation),
    (.bodyLocKey, .localisation), (.bodyLocArgs, .localisation), (.icon, .icon), (.color, .color), (.tag, .tag),
    (.androidChannelId, .channel), (.image, .android), (.ticker, .android), (.sticky, .android), (.localOnly, .android),
    (.eventTime, .android), (.notificationPriority, .android), (.visibility, .android), (.notificationCount, .android),
    (.defaultSound, .android),
  ]
}
