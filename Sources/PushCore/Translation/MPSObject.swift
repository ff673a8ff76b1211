/// The object `mps` beside `aps`. The app's library uses it to acknowledge a push (rules UP-17, UP-19).
enum MPSObject {
  /// True if the push shows an alert and the request has no `mps` of its own.
  static func isWanted(_ request: SendRequest, _ aps: APSContent, _ type: PushType) -> Bool {
    guard type == .alert, aps.hasAlert else { return false }
    if let payload = aps.payload, request.document.value(name, of: payload) != nil { return false }
    return request.dataNode.map { request.document.value(name, of: $0) == nil } ?? true
  }

  static let name = "mps"

  /// The value of `data.mps`: the object as a string, because Android's data has only strings. `ext` stays in `data`.
  static func text(
    _ request: SendRequest, topic: [UInt8], _ context: borrowing TranslationContext
  ) -> [UInt8] {
    var object: [UInt8] = []
    append(request, topic: topic, context, .none, to: &object)
    return Array(object[(object.firstIndex(of: 0x7B) ?? 0)...])
  }

  /// True for Android if the request has no `mps` of its own.
  static func isWantedInData(_ request: SendRequest) -> Bool {
    guard request.apns(.liveActivityToken) == nil else { return false }
    return (request.android(.data) ?? request.dataNode).map { request.document.value(name, of: $0) == nil } ?? true
  }

  enum Extension {
    case carried
    /// The address of a page with the value.
    case page([UInt8])
    case none

    init(page: [UInt8]?) { self = page.map { .page($0) } ?? .carried }
  }

  static func append(
    _ request: SendRequest, topic: [UInt8], _ context: borrowing TranslationContext, _ content: Extension,
    to payload: inout [UInt8]
  ) {
    payload.append(#","mps":{"appid":"#)
    payload.appendJSONString(topic)
    payload.append(#","sender":"admin","seqno":""#)
    payload.appendDecimal(Int(MessageKey.number(of: MessageKey.of(context.messageID))))
    payload.append(0x22)
    switch (content, request.extensionNode) {
    case (.carried, let node?):
      payload.append(#","ext":"#)
      payload.appendDataValue(node, of: request.document)
    case (.page(let address), .some):
      payload.append(#","ext":"#)
      payload.appendJSONString(address)
    case (.none, _), (_, nil): break
    }
    payload.append(#","senddate":""#)
    // Year to hour of 2026-11-20T21:22:00.000Z, digits only.
    let time = Timestamp.text(context.published)
    payload.append(contentsOf: time.prefix(13).filter(Bytes.isDigit))
    payload.append(context.isKept ? #"","db_in":"Y","pushkey":""# : #"","db_in":"N","pushkey":""#)
    payload.append(Placeholder.pushKey)
    payload.append(#""}"#)
  }
}
