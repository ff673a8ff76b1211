/// The object `mps` beside `aps`, by which the library of an app acknowledges a push (rules UP-17, UP-19).
enum MPSObject {
  /// Whether a push gets one: it is shown, and the request brings none of its own.
  static func isWanted(_ request: borrowing SendRequest, _ aps: APSContent, _ type: PushType) -> Bool {
    guard type == .alert, aps.hasAlert else { return false }
    if let payload = aps.payload, request.document.value(name, of: payload) != nil { return false }
    return request.dataNode.map { request.document.value(name, of: $0) == nil } ?? true
  }

  static let name = "mps"

  /// As the value of `data.mps`, a string that holds the object: Android's data has strings only. `data.ext` stands beside it.
  /// - Parameter topic: as ``append(_:topic:_:_:to:)`` has it.
  static func text(
    _ request: borrowing SendRequest, topic: [UInt8], _ context: borrowing TranslationContext
  ) -> [UInt8] {
    var object: [UInt8] = []
    append(request, topic: topic, context, .none, to: &object)
    // Without the comma and the name before it.
    return Array(object[(object.firstIndex(of: 0x7B) ?? 0)...])
  }

  /// Whether an Android phone gets one: the request brings none of its own.
  static func isWantedInData(_ request: borrowing SendRequest) -> Bool {
    guard request.apns(.liveActivityToken) == nil else { return false }
    return (request.android(.data) ?? request.dataNode).map { request.document.value(name, of: $0) == nil } ?? true
  }

  /// What its `ext` says.
  enum Extension {
    /// What `data.ext` says.
    case carried
    /// The address of a page that has it.
    case page([UInt8])
    /// There is none.
    case none

    init(page: [UInt8]?) { self = page.map { .page($0) } ?? .carried }
  }

  /// - Parameter topic: the bundle ID.
  static func append(
    _ request: borrowing SendRequest, topic: [UInt8], _ context: borrowing TranslationContext, _ content: Extension,
    to payload: inout [UInt8]
  ) {
    payload.append(contentsOf: #","mps":{"appid":"#.utf8)
    payload.appendJSONString(topic)
    payload.append(contentsOf: #","sender":"admin","seqno":""#.utf8)
    payload.appendDecimal(Int(MessageKey.number(of: MessageKey.of(context.messageID))))
    payload.append(0x22)
    switch (content, request.extensionNode) {
    case (.carried, let node?):
      payload.append(contentsOf: #","ext":"#.utf8)
      payload.appendDataValue(node, of: request.document)
    case (.page(let address), .some):
      payload.append(contentsOf: #","ext":"#.utf8)
      payload.appendJSONString(address)
    case (.none, _), (_, nil): break
    }
    payload.append(contentsOf: #","senddate":""#.utf8)
    // As 2026-11-20T21:22:00.000Z, of which year to hour are told.
    let time = Timestamp.text(context.published)
    payload.append(contentsOf: time.prefix(13).filter(Bytes.isDigit))
    payload.append(contentsOf: (context.isKept ? #"","db_in":"Y","pushkey":""# : #"","db_in":"N","pushkey":""#).utf8)
    payload.append(Blank.pushKey)
    payload.append(contentsOf: #""}"#.utf8)
  }
}
