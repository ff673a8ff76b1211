/// Writes `message.apns`, for tokens of FCM that belong to Apple devices: they get what they would get by APNs. The request's `apns`
/// block wins key by key.
struct ApnsConfig {
  /// Nil where nothing is for an Apple device: then the block stands as it came.
  let delivery: AppleDelivery?

  func append(_ request: borrowing SendRequest, to body: inout [UInt8]) throws(Rejection) {
    let document = request.document
    let mark = body.count
    body.appendMemberSeparator()
    body.append(contentsOf: #""apns":{"#.utf8)
    let start = body.count
    appendHeaders(request, to: &body)
    if let delivery { try appendPayload(request, delivery, to: &body) }
    if let options = request.apns(.fcmOptions) { body.appendMember(#""fcm_options":"#, options, of: document) }
    if let token = request.apns(.liveActivityToken) { body.appendMember(#""live_activity_token":"#, token, of: document) }
    if body.count == start {
      body.removeSubrange(mark...)
    } else {
      body.append(0x7D)
    }
  }

  private func appendHeaders(_ request: borrowing SendRequest, to body: inout [UInt8]) {
    let mark = body.count
    body.append(contentsOf: #""headers":{"#.utf8)
    let start = body.count
    if let delivery { append(delivery, request, to: &body) }
    for header in request.apns(.headers) == nil ? [] : APNsHeader.allCases where delivery == nil || !Self.isDecided(header) {
      guard let value = request.apnsHeader(header) else { continue }
      body.appendMemberSeparator()
      body.appendJSONString(Array(header.wireName.utf8))
      body.append(0x3A)
      if header == .apnsId { body.appendJSONString(request.apnsID ?? []) } else { request.document.append(value, to: &body) }
    }
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  /// FCM finds the push type of a live activity itself.
  private func append(_ delivery: AppleDelivery, _ request: borrowing SendRequest, to body: inout [UInt8]) {
    if delivery.pushType == .alert || delivery.pushType == .background || request.apnsHeader(.apnsPushType) != nil {
      body.appendHeader(#""apns-push-type":""#, delivery.pushType.word)
    }
    body.appendMemberSeparator()
    body.append(contentsOf: #""apns-priority":""#.utf8)
    body.appendDecimal(delivery.priority)
    body.append(contentsOf: #"","apns-expiration":""#.utf8)
    body.appendDecimal(delivery.expiration)
    body.append(0x22)
    if let id = delivery.collapseID {
      body.append(contentsOf: #","apns-collapse-id":"#.utf8)
      body.appendJSONString(id)
    }
  }

  /// What stands there was made of the block's own value already.
  private static func isDecided(_ header: APNsHeader) -> Bool {
    switch header {
    case .apnsPushType, .apnsPriority, .apnsExpiration, .apnsCollapseId: true
    case .apnsTopic, .apnsId: false
    }
  }

  private func appendPayload(
    _ request: borrowing SendRequest, _ delivery: AppleDelivery, to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let content = delivery.content
    if delivery.pushType == .liveactivity { try APNsPayload.refuseIncompleteActivity(content, document) }
    // Of one that is named although something is shown, FCM has to judge.
    let isBackground = delivery.pushType == .background && !content.isVisible
    let says =
      isBackground || content.hasRichAlert || request.contentAvailable || (request.mutableContent && content.hasAlert)
      || request.notification[.badge] != nil || request.notification[.sound] != nil
      || request.notification[.clickAction] != nil
    guard says || content.payload != nil else { return }
    body.appendMemberSeparator()
    body.append(contentsOf: #""payload":"#.utf8)
    let start = body.count
    body.append(contentsOf: #"{"#.utf8)
    if isBackground {
      body.append(contentsOf: #""aps":{"content-available":1"#.utf8)
      if let override = content.override {
        for (name, value) in document.members(of: override)
        where document.kind(value) != .null && !document.isString(name, "content-available") {
          body.appendMember(name, value, of: document)
        }
      }
      body.append(0x7D)
    } else if says || content.override != nil {
      body.append(contentsOf: #""aps":"#.utf8)
      content.append(request, withAlert: content.hasRichAlert, to: &body)
    }
    if let payload = content.payload {
      for (name, value) in document.members(of: payload) where !document.isString(name, "aps") {
        body.appendMember(name, value, of: document)
      }
    }
    body.append(0x7D)
    let bytes = content.hasBlanks ? Blank.count(body[start...]) : body.count - start
    guard bytes <= FCMMessage.payloadLimit else {
      throw Rejection(
        .messageTooBig,
        "an apns.payload of \(bytes) bytes, at most \(FCMMessage.payloadLimit) allowed by FCM")
    }
  }
}

extension [UInt8] {
  /// A member whose name, with quotes and colon and the value's first quote, and value need no escaping.
  fileprivate mutating func appendHeader(_ name: String, _ value: [UInt8]) {
    appendMemberSeparator()
    append(contentsOf: name.utf8)
    append(contentsOf: value)
    append(0x22)
  }
}
