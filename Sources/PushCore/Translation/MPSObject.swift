/// The object `mps` beside `aps`, by which the library of an app acknowledges a push (rules UP-17, UP-19).
enum MPSObject {
  /// Whether a push gets one: it is shown, and the request brings none of its own.
  static func isWanted(
    _ request: borrowing SendRequest, _ aps: APSContent, _ type: PushType, _ settings: borrowing APNsSettings
  ) -> Bool {
    guard settings.isUPMC, type == .alert, aps.hasAlert else { return false }
    if let payload = aps.payload, request.document.value(name, of: payload) != nil { return false }
    return request.dataNode.map { request.document.value(name, of: $0) == nil } ?? true
  }

  private static let name = "mps"

  /// - Parameter page: stands in the place of what the request says in `ext`.
  static func append(
    _ request: borrowing SendRequest, _ settings: borrowing APNsSettings, _ context: borrowing TranslationContext,
    page: [UInt8]?, to payload: inout [UInt8]
  ) {
    payload.append(contentsOf: #","mps":{"appid":"#.utf8)
    payload.appendJSONString(settings.topic)
    payload.append(contentsOf: #","sender":"admin","seqno":""#.utf8)
    payload.appendDecimal(Int(MessageKey.number(of: MessageKey.of(context.messageID))))
    payload.append(0x22)
    if let node = request.extensionNode {
      payload.append(contentsOf: #","ext":"#.utf8)
      if let page { payload.appendJSONString(page) } else { payload.appendDataValue(node, of: request.document) }
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
