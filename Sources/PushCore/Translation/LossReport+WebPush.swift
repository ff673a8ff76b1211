/// The losses that are explained in another way for web push than for phones.
extension LossExplanation {
  mutating func explainNotification(_ content: WebPushContent) {
    for key in NotificationKey.allCases where request.notification[key] != nil { explain(key, content) }
    // The request doesn't name this badge, so it isn't lost.
    if request.countsBadge, content.isShown, content.winner(over: "app_badge", document) == nil {
      explainBadge(.automaticBadge, content)
    }
    if !content.isShown { add(.dataOnly, field: "\(request.hasData ? "data" : "webpush.data") (nothing to show)") }
  }

  private mutating func explain(_ key: NotificationKey, _ content: WebPushContent) {
    let field = "notification.\(key.wireName)"
    switch key {
    case .clickAction: explainClickAction(field, content)
    case .badge:
      let isCounter = if case .automatic? = request.badge { true } else { false }
      explainBadge(isCounter ? .automaticBadge : .badge, content)
    case .sound: add(document.kind(request.notification[.sound] ?? 0) == .object ? .soundObject : .sound, field: field)
    default:
      guard let (_, rule) = MappingRule.ofNotification.first(where: { $0.0 == key }) else { return }
      guard let translated = WebPushContent.fields.first(where: { $0.key == key }) else { return add(rule, field: field) }
      if let winner = content.winner(over: translated.name, document) {
        addLost(field, .browsers, to: winner)
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

  private mutating func explainClickAction(_ field: String, _ content: WebPushContent) {
    if let winner = content.winnerOverClickAction(request) {
      addLost(field, .browsers, to: winner)
    } else if !content.isShown {
      add(.categoryWithoutAlert, field: field)
    } else if request.secureURL(.clickAction) == nil {
      drop(.clickAction, field, "not an https URL")
    } else {
      add(.clickAction, field: field)
    }
  }

  private mutating func explainBadge(_ rule: MappingRule, _ content: WebPushContent) {
    let field = "notification.badge"
    if let winner = content.winner(over: "app_badge", document) {
      addLost(field, .browsers, to: winner)
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

  mutating func explainFlags(_ content: WebPushContent) {
    if request.contentAvailable { add(.contentAvailable) }
    guard request.mutableContent else { return }
    if let winner = content.winner(over: "mutable", document) {
      addLost("mutable_content", .browsers, to: winner)
    } else {
      add(content.isShown ? .mutableContent : .mutableWithoutAlert, field: "mutable_content")
    }
  }
}
