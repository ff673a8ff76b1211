/// Writes FCM v1's `message` without its target (FCM HTTP v1 API, `Message`).
struct FCMMessage {
  /// Nil if nothing is for an Apple device; the block `apns` is then passed on unchanged.
  let apple: AppleDelivery?
  let settings: FCMSettings
  /// The value of `data.mps`, or nil.
  let object: [UInt8]?
  /// The address that replaces `data.ext`, or nil.
  let page: [UInt8]?

  init(_ request: SendRequest, _ settings: FCMSettings, _ context: borrowing TranslationContext) {
    self.settings = settings
    apple = try? AppleDelivery(request, standard: settings.defaultPriority, context)
    object = settings.upmcTopic.flatMap { topic in
      MPSObject.isWantedInData(request) ? MPSObject.text(request, topic: topic, context) : nil
    }
    page = Self.page(request, context, object)
  }

  /// Bytes. Limits keys and values of `data` and the notification (Firebase, "Error codes": INVALID_ARGUMENT), and
  /// `apns.payload` as JSON.
  static let payloadLimit = 4096
  /// The same limit for FCM's own topics.
  static let topicPayloadLimit = 2048

  static func payloadLimit(_ request: SendRequest) -> Int {
    if case .one(.fcmTopics) = request.targets { topicPayloadLimit } else { payloadLimit }
  }

  /// The context's page, if the request has no room for `data.ext`.
  private static func page(
    _ request: SendRequest, _ context: borrowing TranslationContext, _ object: [UInt8]?
  ) -> [UInt8]? {
    guard let page = context.page, request.extensionNode != nil, countedBytes(request, object) > payloadLimit(request) else {
      return nil
    }
    return page
  }

  /// Builds the body up to the comma before the target. Sets `usesPage` if the body has the address of a page.
  func head(
    _ request: SendRequest, _ context: borrowing TranslationContext, usesPage: inout Bool
  ) throws(Rejection) -> [UInt8] {
    let document = request.document
    var body: [UInt8] = []
    body.reserveCapacity(document.bytes.count + 128)
    body.append(request.isDryRun ? #"{"validate_only":true,"message":{"# : #"{"message":{"#)
    // FCM makes an alert of the common notification even if the block removes the alert.
    let hasCommon = apple?.content.isAlertTakenAway(document) != true
    if hasCommon { appendNotification(request, to: &body) }
    appendData(request, to: &body)
    appendAndroid(request, context, hasCommon: hasCommon, to: &body)
    // The request contains all counted bytes, except the page's address and the object.
    if document.bytes.count + (page?.count ?? 0) + Self.countedBytes(of: object) > Self.topicPayloadLimit {
      try Self.refuseOversized(request, Self.payloadLimit(request), page: page, object)
    }
    try appendApns(request, context, usesPage: &usesPage, to: &body)
    if page != nil { usesPage = true }
    appendWebpush(request, hasCommon: hasCommon, to: &body)
    if let options = request.fcmOptionsNode { body.appendMember(#""fcm_options":"#, options, of: document) }
    body.appendMemberSeparator()
    return body
  }

  /// Appends title, body and image, which every platform shows; all else is in the platforms' blocks.
  private func appendNotification(_ request: SendRequest, to body: inout [UInt8]) {
    let (title, text, image) = (request.notification[.title], request.notification[.body], request.notification[.image])
    guard title != nil || text != nil || image != nil else { return }
    body.append(#""notification":{"#)
    if let title { body.appendMember(#""title":"#, title, of: request.document) }
    if let text { body.appendMember(#""body":"#, text, of: request.document) }
    if let image { body.appendMember(#""image":"#, image, of: request.document) }
    body.append(0x7D)
  }

  private func appendData(_ request: SendRequest, to body: inout [UInt8]) {
    let object = request.android(.data) == nil ? object : nil
    guard request.dataNode != nil || object != nil else { return }
    let mark = body.count
    body.appendMember(#""data":{"#)
    let start = body.count
    if let data = request.dataNode { body.appendDataMembers(of: data, in: request.document, page: page) { _ in false } }
    if let object { body.appendObjectMember(object) }
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  /// Browsers get GCM's icon and click action too if they are https URLs; the block wins key by key.
  private func appendWebpush(_ request: SendRequest, hasCommon: Bool, to body: inout [UInt8]) {
    let (icon, link) = (request.secureURL(.icon), request.secureURL(.clickAction))
    guard request.blocks != nil || icon != nil || link != nil else { return }
    var shown: [(key: String, node: Int)] = []
    if let icon { shown.append(("icon", icon)) }
    for key in hasCommon ? [] : [NotificationKey.title, .body, .image] {
      if let node = request.notification[key] { shown.append((key.wireName, node)) }
    }
    let mark = body.count
    body.appendMember(#""webpush":{"#)
    let start = body.count
    if let headers = request.webpush(.headers) { body.appendMember(#""headers":"#, headers, of: request.document) }
    if let data = request.webpush(.data) { body.appendMember(#""data":"#, data, of: request.document) }
    append(request.webpush(.notification), named: #""notification":"#, with: shown, request, to: &body)
    append(request.webpush(.fcmOptions), named: #""fcm_options":"#, with: link.map { [("link", $0)] } ?? [], request, to: &body)
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  /// Appends an object of the block with additional members, unless the object has them itself.
  private func append(
    _ object: Int?, named name: StaticString, with members: [(key: String, node: Int)], _ request: SendRequest,
    to body: inout [UInt8]
  ) {
    let document = request.document
    let added = members.filter { member in object.flatMap { document.value(member.key, of: $0) } == nil }
    guard !added.isEmpty else {
      if let object { body.appendMember(name, object, of: document) }
      return
    }
    body.appendMember(name)
    body.append(0x7B)
    for (key, node) in added { body.appendMember(named: key, node, of: document) }
    if let object {
      for (name, value) in document.members(of: object) { body.appendMember(name, value, of: document) }
    }
    body.append(0x7D)
  }

  static func refuseOversized(
    _ request: SendRequest, _ limit: Int, page: [UInt8]?, _ object: [UInt8]?
  ) throws(Rejection) {
    let bytes = Self.countedBytes(request, page: page, object)
    guard bytes > limit else { return }
    throw Rejection(.messageTooBig, "\(bytes) bytes of notification and data for FCM, at most \(limit) allowed")
  }

  /// `android.data` replaces `data` on the device.
  static func countedBytes(_ request: SendRequest, page: [UInt8]? = nil, _ object: [UInt8]? = nil) -> Int {
    let document = request.document
    let ignored = Set(request.ignoredNames)
    var data = request.dataNode.map { document.contentCount(of: $0, without: ignored) } ?? 0
    if let page, let node = request.extensionNode { data += page.count - document.contentCount(node) }
    var bytes = data
    for node in [request.notificationNode, request.android(.notification)] {
      if let node { bytes += document.contentCount(of: node, without: ignored) }
    }
    if let own = request.android(.data) { bytes = max(bytes, bytes - data + document.contentCount(of: own, without: ignored)) }
    return bytes + countedBytes(of: object)
  }

  static func countedBytes(of object: [UInt8]?) -> Int {
    object.map { MPSObject.name.utf8.count + Placeholder.count($0[...]) } ?? 0
  }
}

extension [UInt8] {
  mutating func appendObjectMember(_ object: [UInt8]) {
    appendMember(#""mps":""#)
    for byte in object {
      if byte == 0x22 || byte == 0x5C { append(0x5C) }
      append(byte)
    }
    append(0x22)
  }

  /// - Parameter name: includes quotes and colon, and needs no escaping.
  mutating func appendMember(_ name: StaticString, _ value: Int, of document: JSONDocument) {
    appendMember(name)
    document.append(value, to: &self)
  }
}
