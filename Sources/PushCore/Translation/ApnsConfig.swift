/// Writes `message.apns`, for tokens of FCM that belong to Apple devices: what the request says for them, and nothing by default, so
/// that a message for Android carries no ballast. The request's `apns` block wins key by key.
struct ApnsConfig {
  let content: APSContent

  func append(
    _ request: borrowing SendRequest, _ context: borrowing TranslationContext, to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let mark = body.count
    body.appendMemberSeparator()
    body.append(contentsOf: #""apns":{"#.utf8)
    let start = body.count
    appendHeaders(request, context, to: &body)
    try appendPayload(request, to: &body)
    if let options = request.apns(.fcmOptions) { body.appendMember(#""fcm_options":"#, options, of: document) }
    if let token = request.apns(.liveActivityToken) { body.appendMember(#""live_activity_token":"#, token, of: document) }
    if body.count == start {
      body.removeSubrange(mark...)
    } else {
      body.append(0x7D)
    }
  }

  /// A translated header stands where the request names its option; the block's own come as they are.
  private func appendHeaders(
    _ request: borrowing SendRequest, _ context: borrowing TranslationContext, to body: inout [UInt8]
  ) {
    let isTranslated = request.shape == .gcm
    let isBackground =
      isTranslated && request.contentAvailable && !content.isVisible && request.apnsHeader(.apnsPushType) == nil
    let mark = body.count
    body.append(contentsOf: #""headers":{"#.utf8)
    let start = body.count
    if isBackground { body.appendHeader("apns-push-type", "background") }
    if request.apnsHeader(.apnsPriority) == nil, isTranslated, request.priority != nil || isBackground {
      body.appendHeader("apns-priority", request.priority == .high && !isBackground ? "10" : "5")
    }
    if request.apnsHeader(.apnsExpiration) == nil, isTranslated, request.timeToLive != nil {
      let seconds = request.timeToLive == 0 || context.deadline <= context.now ? 0 : context.deadline / 1000
      body.appendHeader("apns-expiration", String(seconds))
    }
    if request.apnsHeader(.apnsCollapseId) == nil, let key = request.collapseKey, let id = CollapseID.make(key) {
      body.appendMemberSeparator()
      body.append(contentsOf: #""apns-collapse-id":"#.utf8)
      body.appendJSONString(id)
    }
    if let headers = request.apns(.headers) {
      for (name, value) in request.document.members(of: headers) where request.document.kind(value) != .null {
        body.appendMember(name, value, of: request.document)
      }
    }
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  private func appendPayload(_ request: borrowing SendRequest, to body: inout [UInt8]) throws(Rejection) {
    let document = request.document
    let says =
      content.hasRichAlert || request.contentAvailable || (request.mutableContent && content.hasAlert)
      || request.notification[.badge] != nil || request.notification[.sound] != nil
      || request.notification[.clickAction] != nil
    guard says || content.payload != nil else { return }
    body.appendMemberSeparator()
    body.append(contentsOf: #""payload":"#.utf8)
    let start = body.count
    body.append(contentsOf: #"{"#.utf8)
    if says || content.override != nil {
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
  /// A member whose name and value need no escaping.
  fileprivate mutating func appendHeader(_ name: String, _ value: String) {
    appendMemberSeparator()
    append(0x22)
    append(contentsOf: name.utf8)
    append(contentsOf: #"":""#.utf8)
    append(contentsOf: value.utf8)
    append(0x22)
  }
}
