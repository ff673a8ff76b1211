/// Writes `message.apns`, for tokens of FCM that belong to Apple devices: they get what they would get by APNs. The request's `apns`
/// block wins key by key.
struct ApnsConfig {
  /// Nil where nothing is for an Apple device: then the block stands as it came.
  let delivery: AppleDelivery?
  /// As ``FCMSettings/upmcTopic``.
  let upmcTopic: [UInt8]?
  /// What `data.mps` says; nil where there is none.
  let object: [UInt8]?
  /// The address that stands in the place of `data.ext`, as the whole message has no room for it.
  let page: [UInt8]?
  /// The `mps` object has the address of a page.
  private(set) var usesPage = false

  init(delivery: AppleDelivery?, upmcTopic: [UInt8]? = nil, object: [UInt8]? = nil, page: [UInt8]? = nil) {
    self.object = object
    self.delivery = delivery
    self.upmcTopic = upmcTopic
    self.page = page
  }

  mutating func append(
    _ request: borrowing SendRequest, _ context: borrowing TranslationContext, to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let mark = body.count
    body.appendMemberSeparator()
    body.append(contentsOf: #""apns":{"#.utf8)
    let start = body.count
    appendHeaders(request, to: &body)
    if let delivery { try appendPayload(request, delivery, context, to: &body) }
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

  private mutating func appendPayload(
    _ request: borrowing SendRequest, _ delivery: AppleDelivery, _ context: borrowing TranslationContext,
    to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let content = delivery.content
    if delivery.pushType == .liveactivity { try APNsPayload.refuseIncompleteActivity(content, document) }
    let isBackground = delivery.pushType == .background
    let isUPMC = upmcTopic != nil && delivery.pushType == .alert && content.hasAlert
    let says =
      isBackground || isUPMC || content.hasRichAlert || request.contentAvailable || (request.mutableContent && content.hasAlert)
      || request.notification[.badge] != nil || request.countsBadge || request.notification[.sound] != nil
      || request.notification[.clickAction] != nil
    guard says || content.payload != nil else { return }
    body.appendMemberSeparator()
    body.append(contentsOf: #""payload":"#.utf8)
    let start = body.count
    body.append(contentsOf: #"{"#.utf8)
    if isBackground {
      body.append(contentsOf: #""aps":"#.utf8)
      body.append(contentsOf: APNsPayload.background.utf8)
    } else if says || content.override != nil {
      body.append(contentsOf: #""aps":"#.utf8)
      content.append(request, withAlert: content.hasRichAlert, isUPMC: isUPMC, to: &body)
    }
    if let payload = content.payload {
      for (name, value) in document.members(of: payload) where !document.isString(name, "aps") {
        body.appendMember(name, value, of: document)
      }
    }
    let object = isUPMC && MPSObject.isWanted(request, content, delivery.pushType) ? upmcTopic : nil
    if let object { appendObject(request, topic: object, context, from: start, to: &body) }
    body.append(0x7D)
    let bytes = content.hasBlanks || object != nil ? Blank.count(body[start...]) : body.count - start
    guard bytes <= FCMMessage.payloadLimit else {
      throw Rejection(
        .messageTooBig,
        "an apns.payload of \(bytes) bytes, at most \(FCMMessage.payloadLimit) allowed by FCM")
    }
  }
}

extension ApnsConfig {
  /// Appends `mps`. FCM sends the device `data` beside it, so `ext` stands there already: the object has it where there is room for both, else the
  /// address of a page that has it, where there is one.
  /// - Parameter start: of the payload.
  private mutating func appendObject(
    _ request: borrowing SendRequest, topic: [UInt8], _ context: borrowing TranslationContext, from start: Int,
    to body: inout [UInt8]
  ) {
    let mark = body.count
    MPSObject.append(request, topic: topic, context, .init(page: page), to: &body)
    guard request.extensionNode != nil else { return }
    let room = FCMMessage.payloadLimit - FCMMessage.countedBytes(request, page: page, object) - 1
    if Blank.count(body[start...]) <= room { return usesPage = page != nil }
    body.removeSubrange(mark...)
    usesPage = context.page != nil
    MPSObject.append(request, topic: topic, context, context.page.map { .page($0) } ?? .none, to: &body)
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
