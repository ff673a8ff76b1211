extension LossReport {
  /// Reports the losses of a translation for web push by examining the request again.
  mutating func explain(_ request: SendRequest, _ content: WebPushContent) {
    var explanation = WebPushExplanation(report: self, request: request, content: content)
    explanation.explain()
    self = explanation.report
  }
}

private struct WebPushExplanation {
  private(set) var report: LossReport
  let request: SendRequest
  let content: WebPushContent

  private var document: JSONDocument { request.document }

  mutating func explain() {
    for key in NotificationKey.allCases where request.notification[key] != nil { explain(key) }
    // The request doesn't name this badge, so it isn't lost.
    if request.countsBadge, content.isShown, content.winner(over: "app_badge", document) == nil {
      explainBadge(.automaticBadge)
    }
    explainData()
    explainFlags()
    explainPriority()
    explainLifetime()
    explainCollapseKey()
    explainOthers()
    for name in request.ignoredNames where !report.isFull { add(.unknownName, field: document.path(to: name)) }
  }

  // MARK: Entries

  private mutating func add(_ rule: MappingRule, field: String? = nil, words: String? = nil) {
    report.add(rule, .webpush, field: field, words: words)
  }

  private mutating func drop(_ rule: MappingRule, _ field: String, _ words: String) {
    report.add(rule.source, field, .dropped, words)
  }

  private mutating func addLost(_ field: String, to winner: String, _ rest: String = "") {
    drop(.webpushBlock, field, "\(winner) wins\(rest)")
  }

  // MARK: Notification and data

  private mutating func explain(_ key: NotificationKey) {
    let field = "notification.\(key.wireName)"
    switch key {
    case .clickAction: explainClickAction(field)
    case .badge:
      let isCounter = if case .automatic? = request.badge { true } else { false }
      explainBadge(isCounter ? .automaticBadge : .badge)
    case .sound: add(document.kind(request.notification[.sound] ?? 0) == .object ? .soundObject : .sound, field: field)
    default:
      guard let (_, rule) = MappingRule.ofNotification.first(where: { $0.0 == key }) else { return }
      guard let translated = WebPushContent.fields.first(where: { $0.key == key }) else { return add(rule, field: field) }
      if let winner = content.winner(over: translated.name, document) {
        addLost(field, to: winner)
      } else if !content.isShown {
        drop(rule, field, Self.nothingShown)
      } else if translated.node(in: request) == nil {
        drop(rule, field, "not an https URL")
      } else {
        add(rule, field: field)
      }
    }
  }

  private static let nothingShown = "nothing is shown without a title or a body"

  private mutating func explainClickAction(_ field: String) {
    if let winner = content.winnerOverClickAction(request) {
      addLost(field, to: winner)
    } else if !content.isShown {
      add(.categoryWithoutAlert, field: field)
    } else if request.secureURL(.clickAction) == nil {
      drop(.clickAction, field, "not an https URL")
    } else {
      add(.clickAction, field: field)
    }
  }

  private mutating func explainBadge(_ rule: MappingRule) {
    let field = "notification.badge"
    if let winner = content.winner(over: "app_badge", document) {
      addLost(field, to: winner)
    } else if !content.isShown {
      drop(rule, field, Self.nothingShown)
    } else {
      switch (rule, WebPushContent.badge(request)) {
      case (_, nil): drop(rule, field, "apns.payload.aps.badge takes it away, so nothing is counted")
      case (.automaticBadge, .number?):
        add(rule, field: field, words: "app_badge, as apns.payload.aps.badge has it, in notification and beside it")
      default: add(rule, field: field)
      }
    }
  }

  private mutating func explainData() {
    if !content.isShown { add(.dataOnly, field: "\(request.hasData ? "data" : "webpush.data") (nothing to show)") }
    guard let data = request.dataNode else { return }
    for (name, value) in document.members(of: data) where !report.isFull {
      if document.kind(value) == .null {
        add(.dataNull, field: document.path(to: value))
      } else if content.replaces(document.string(name)) {
        drop(.webpushBlock, document.path(to: name), "webpush.data has a key of the same name")
      } else if document.kind(value) != .string {
        add(.dataConverted, field: document.path(to: value))
      }
    }
  }

  private mutating func explainFlags() {
    if request.contentAvailable { add(.contentAvailable) }
    guard request.mutableContent else { return }
    if let winner = content.winner(over: "mutable", document) {
      addLost("mutable_content", to: winner)
    } else {
      add(content.isShown ? .mutableContent : .mutableWithoutAlert, field: "mutable_content")
    }
  }

  // MARK: Options

  private func isOwn(_ header: WebPushHeader) -> Bool { header.node(in: request) != nil }

  private mutating func addLost(_ field: String, to header: WebPushHeader, _ rest: String = "") {
    addLost(field, to: "webpush.headers.\(header.rawValue)", rest)
  }

  private mutating func explainPriority() {
    if request.priority != nil {
      if isOwn(.urgency) {
        addLost("priority", to: .urgency)
      } else if request.priority == .normal, request.delayWhileIdle {
        drop(.priority, "priority", "delay_while_idle makes it lower")
      } else {
        add(.priority)
      }
    }
    guard request.delayWhileIdle else { return }
    if isOwn(.urgency) {
      addLost("delay_while_idle", to: .urgency)
    } else if request.priority == .high {
      drop(.delayWhileIdle, "delay_while_idle", "no counterpart, and priority says high")
    } else {
      add(.delayWhileIdle)
    }
  }

  private mutating func explainLifetime() {
    if request.timeToLive != nil {
      // `time_to_live` limits the request's life in the fleet even if the block overrides it.
      guard isOwn(.ttl) else { return add(.timeToLive) }
      addLost("time_to_live", to: .ttl, " there; time_to_live still ends the request in the fleet")
    } else if request.android(.ttl) != nil, !isOwn(.ttl) {
      add(.androidLifetime, field: "\(request.hasAndroidV2 ? "android_v2" : "android").ttl (no time_to_live)")
    }
  }

  private mutating func explainCollapseKey() {
    if isOwn(.topic) { add(.collapseKey, field: "webpush.headers.Topic", words: "a hash of it") }
    guard request.collapseKey != nil else { return }
    if isOwn(.topic) { addLost("collapse_key", to: .topic) } else { add(.collapseKey) }
  }

  private mutating func explainOthers() {
    if request.restrictedPackageNameNode != nil { add(.packageName) }
    if request.isDryRun { add(.dryRun) }
    if request.hasAndroidV2 { add(.androidV2Block) }
    if request.fcmOptionsNode != nil { add(.options, field: "fcm_options") }
    guard let options = request.webpush(.fcmOptions) else { return }
    // Beside the link there is only the label for FCM's statistics.
    for (name, value) in document.members(of: options) where !document.isString(name, "link") && document.kind(value) != .null {
      add(.options, field: "webpush.fcm_options.analytics_label")
    }
  }
}
