/// Writes FCM v1's `message` without its target (FCM HTTP v1 API, `Message`).
struct FCMMessage {
  let content: APSContent
  let priority: Priority

  /// Keys and values of `data` and of what is shown (Firebase, "Error codes": INVALID_ARGUMENT), in bytes; and `apns.payload` as JSON.
  static let payloadLimit = 4096

  /// From the opening brace to `"token":`.
  func head(_ request: borrowing SendRequest, _ context: borrowing TranslationContext) throws(Rejection) -> [UInt8] {
    let document = request.document
    var body: [UInt8] = []
    body.reserveCapacity(document.bytes.count + 128)
    body.append(contentsOf: (request.isDryRun ? #"{"validate_only":true,"message":{"# : #"{"message":{"#).utf8)
    let start = body.count
    appendNotification(request, to: &body)
    appendData(request, to: &body)
    AndroidConfig(priority: priority).append(request, context, to: &body)
    // What is shown and carried can't be larger than what stands here.
    if body.count - start > Self.payloadLimit { try refuseOversized(request) }
    try ApnsConfig(content: content).append(request, context, to: &body)
    appendWebpush(request, to: &body)
    if let options = request.fcmOptionsNode { body.appendMember(#""fcm_options":"#, options, of: document) }
    body.appendMemberSeparator()
    body.append(contentsOf: #""token":"#.utf8)
    return body
  }

  /// Title, body and image, which every platform shows; the rest stands in the platforms' blocks.
  private func appendNotification(_ request: borrowing SendRequest, to body: inout [UInt8]) {
    let (title, text, image) = (request.notification[.title], request.notification[.body], request.notification[.image])
    guard title != nil || text != nil || image != nil else { return }
    body.append(contentsOf: #""notification":{"#.utf8)
    if let title { body.appendMember(#""title":"#, title, of: request.document) }
    if let text { body.appendMember(#""body":"#, text, of: request.document) }
    if let image { body.appendMember(#""image":"#, image, of: request.document) }
    body.append(0x7D)
  }

  private func appendData(_ request: borrowing SendRequest, to body: inout [UInt8]) {
    guard let data = request.dataNode else { return }
    let document = request.document
    var isOpen = false
    for (name, value) in document.members(of: data) where document.kind(value) != .null {
      if !isOpen {
        body.appendMemberSeparator()
        body.append(contentsOf: #""data":{"#.utf8)
        isOpen = true
      } else {
        body.append(0x2C)
      }
      body.appendDataMember(name, value, of: document)
    }
    if isOpen { body.append(0x7D) }
  }

  private func appendWebpush(_ request: borrowing SendRequest, to body: inout [UInt8]) {
    guard let webpush = request.blocks?.webpush else { return }
    let mark = body.count
    body.appendMemberSeparator()
    body.append(contentsOf: #""webpush":{"#.utf8)
    let start = body.count
    if let headers = webpush[.headers] { body.appendMember(#""headers":"#, headers, of: request.document) }
    if let data = webpush[.data] { body.appendMember(#""data":"#, data, of: request.document) }
    if let shown = webpush[.notification] { body.appendMember(#""notification":"#, shown, of: request.document) }
    if let options = webpush[.fcmOptions] { body.appendMember(#""fcm_options":"#, options, of: request.document) }
    if body.count == start { body.removeSubrange(mark...) } else { body.append(0x7D) }
  }

  private func refuseOversized(_ request: borrowing SendRequest) throws(Rejection) {
    let bytes = Self.countedBytes(request)
    guard bytes > Self.payloadLimit else { return }
    throw Rejection(.messageTooBig, "\(bytes) bytes of notification and data for FCM, at most \(Self.payloadLimit) allowed")
  }

  /// Counts exactly: UTF-8 bytes of keys and values, without JSON's punctuation. `android.data` replaces `data` on the device.
  static func countedBytes(_ request: borrowing SendRequest) -> Int {
    let document = request.document
    var bytes = 0
    for node in [request.dataNode, request.notificationNode, request.android(.notification)] {
      if let node { bytes += Self.count(node, document) }
    }
    if let data = request.android(.data) {
      bytes = max(bytes, bytes - (request.dataNode.map { Self.count($0, document) } ?? 0) + Self.count(data, document))
    }
    return bytes
  }

  private static func count(_ object: Int, _ document: JSONDocument) -> Int {
    var bytes = 0
    for (name, value) in document.members(of: object) where document.kind(value) != .null {
      bytes += document.utf8Count(name)
      bytes += document.kind(value) == .string ? document.utf8Count(value) : document.compactCount(value)
    }
    return bytes
  }
}

extension [UInt8] {
  /// A member with a name of ours, which comes with quotes and colon.
  mutating func appendMember(_ name: String, _ value: Int, of document: JSONDocument) {
    appendMemberSeparator()
    append(contentsOf: name.utf8)
    document.append(value, to: &self)
  }
}
