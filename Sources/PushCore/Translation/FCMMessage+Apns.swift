extension FCMMessage {
  /// Appends `message.apns`: FCM tokens of Apple devices get the same content as through APNs. The block `apns` wins key by key.
  /// - Parameter usesPage: becomes true if the `mps` object has the address of a page.
  func appendApns(
    _ request: SendRequest, _ context: borrowing TranslationContext, usesPage: inout Bool, to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let mark = body.count
    body.appendMember(#""apns":{"#)
    let start = body.count
    appendHeaders(request, to: &body)
    if let apple { try appendPayload(request, apple, context, usesPage: &usesPage, to: &body) }
    if let options = request.apns(.fcmOptions) { body.appendMember(#""fcm_options":"#, options, of: document) }
    if let token = request.apns(.liveActivityToken) { body.appendMember(#""live_activity_token":"#, token, of: document) }
    if body.count == start {
      body.removeSubrange(mark...)
    } else {
      body.append(0x7D)
    }
  }

  private func appendHeaders(_ request: SendRequest, to body: inout [UInt8]) {
    let mark = body.count
    body.append(#""headers":{"#)
    let start = body.count
    if let apple { append(apple, request, to: &body) }
    for header in request.apns(.headers) == nil ? [] : APNsHeader.allCases where apple == nil || !Self.isDecided(header) {
      guard let value = request.apnsHeader(header) else { continue }
      body.appendMemberSeparator()
      body.appendJSONString(Array(header.wireName.utf8))
      body.append(0x3A)
      if header == .apnsId { body.appendJSONString(request.apnsID ?? []) } else { request.document.append(value, to: &body) }
    }
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  /// Omits an inferred push type of a live activity: FCM sets it.
  private func append(_ delivery: borrowing AppleDelivery, _ request: SendRequest, to body: inout [UInt8]) {
    if delivery.pushType == .alert || delivery.pushType == .background || request.apnsHeader(.apnsPushType) != nil {
      body.appendHeader(#""apns-push-type":""#, delivery.pushType.word)
    }
    body.appendMember(#""apns-priority":""#)
    body.appendDecimal(delivery.priority)
    body.append(#"","apns-expiration":""#)
    body.appendDecimal(delivery.expiration)
    body.append(0x22)
    if let id = delivery.collapseID {
      body.append(#","apns-collapse-id":"#)
      body.appendJSONString(id)
    }
  }

  /// True for headers whose value already includes the block's.
  private static func isDecided(_ header: APNsHeader) -> Bool {
    switch header {
    case .apnsPushType, .apnsPriority, .apnsExpiration, .apnsCollapseId: true
    case .apnsTopic, .apnsId: false
    }
  }

  private func appendPayload(
    _ request: SendRequest, _ delivery: borrowing AppleDelivery, _ context: borrowing TranslationContext,
    usesPage: inout Bool, to body: inout [UInt8]
  ) throws(Rejection) {
    let document = request.document
    let content = delivery.content
    if delivery.pushType == .liveactivity { try APNsPayload.refuseIncompleteActivity(content, document) }
    let isBackground = delivery.pushType == .background
    let isUPMC = settings.upmcTopic != nil && delivery.pushType == .alert && content.hasAlert
    let says =
      isBackground || isUPMC || content.hasRichAlert || request.contentAvailable || (request.mutableContent && content.hasAlert)
      || request.notification[.badge] != nil || request.countsBadge || request.notification[.sound] != nil
      || request.notification[.clickAction] != nil
    guard says || content.payload != nil else { return }
    body.appendMember(#""payload":{"#)
    let start = body.count - 1
    if isBackground {
      body.append(#""aps":"#)
      body.append(APNsPayload.background)
    } else if says || content.override != nil {
      body.append(#""aps":"#)
      content.append(request, withAlert: content.hasRichAlert, isUPMC: isUPMC, to: &body)
    }
    if let payload = content.payload {
      for (name, value) in document.members(of: payload) where !document.isString(name, "aps") {
        body.appendMember(name, value, of: document)
      }
    }
    let object = isUPMC && MPSObject.isWanted(request, content, delivery.pushType) ? settings.upmcTopic : nil
    if let object { appendObject(request, topic: object, context, from: start, usesPage: &usesPage, to: &body) }
    body.append(0x7D)
    let bytes = content.hasPlaceholders || object != nil ? Placeholder.count(body[start...]) : body.count - start
    guard bytes <= FCMMessage.payloadLimit else {
      throw Rejection(
        .messageTooBig,
        "an apns.payload of \(bytes) bytes, at most \(FCMMessage.payloadLimit) allowed by FCM")
    }
  }

  /// Appends `mps`. FCM sends `data` to the device too, so `ext` is there already. The object repeats `ext` if there is room
  /// for both; otherwise it has the address of the page, if there is one.
  /// - Parameter start: of the payload.
  private func appendObject(
    _ request: SendRequest, topic: [UInt8], _ context: borrowing TranslationContext, from start: Int, usesPage: inout Bool,
    to body: inout [UInt8]
  ) {
    let mark = body.count
    MPSObject.append(request, topic: topic, context, .init(page: page), to: &body)
    guard request.extensionNode != nil else { return }
    let room = FCMMessage.payloadLimit - FCMMessage.countedBytes(request, page: page, object) - 1
    if Placeholder.count(body[start...]) <= room { return usesPage = page != nil }
    body.removeSubrange(mark...)
    usesPage = context.page != nil
    MPSObject.append(request, topic: topic, context, context.page.map { .page($0) } ?? .none, to: &body)
  }
}

extension [UInt8] {
  /// Appends a member that needs no escaping. `name` includes quotes, colon and the first quote of the value.
  fileprivate mutating func appendHeader(_ name: StaticString, _ value: [UInt8]) {
    appendMember(name)
    append(contentsOf: value)
    append(0x22)
  }
}
