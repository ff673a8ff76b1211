import Wire

/// Builds the body of a push: `aps`, then the data keys and the block's own keys.
enum APNsPayload {
  /// If the payload is too large and there is a page, builds it again with the page's address instead of `data.ext`.
  static func make(
    _ request: SendRequest, _ aps: APSContent, _ type: PushType, _ settings: borrowing APNsSettings,
    _ context: borrowing TranslationContext, limit: Int, usesPage: inout Bool
  ) throws(Rejection) -> [UInt8] {
    do throws(Rejection) { return try make(request, aps, type, settings, context, limit, page: nil) } catch {
      guard error.code == .messageTooBig, let page = context.page, request.extensionNode != nil else { throw error }
      usesPage = true
      return try make(request, aps, type, settings, context, limit, page: page)
    }
  }

  private static func make(
    _ request: SendRequest, _ aps: APSContent, _ type: PushType, _ settings: borrowing APNsSettings,
    _ context: borrowing TranslationContext, _ limit: Int, page: [UInt8]?
  ) throws(Rejection) -> [UInt8] {
    let document = request.document
    var payload: [UInt8] = []
    payload.reserveCapacity(min(document.bytes.count + 64, 2 * limit))
    payload.append(#"{"aps":"#)
    if type == .background {
      // GCM's own keys (a category, `mutable_content`) are left out instead of refused.
      if let rejection = aps.excessInBackground(document) { throw rejection }
      payload.append(background)
    } else {
      if type == .liveactivity { try refuseIncompleteActivity(aps, document) }
      let start = payload.count
      aps.append(request, withAlert: true, isUPMC: settings.isUPMC && type == .alert, to: &payload)
      if type.needsNoAPS, payload.count == start + 2 { payload.removeSubrange(1...) }
    }
    let hasObject = settings.isUPMC && MPSObject.isWanted(request, aps, type)
    if hasObject { MPSObject.append(request, topic: settings.topic, context, .init(page: page), to: &payload) }
    try appendData(
      request, replacedBy: customNames(aps, document, type, limit), isUPMC: hasObject, page: page, to: &payload)
    if let block = aps.payload {
      for (name, value) in document.members(of: block) where !document.isString(name, "aps") {
        payload.appendMember(name, value, of: document)
      }
    }
    payload.append(0x7D)
    if payload.count + Placeholder.badgeDigits + Placeholder.pushKeyDigits > limit {
      let bytes = aps.hasPlaceholders || hasObject ? Placeholder.count(payload[...]) : payload.count
      guard bytes <= limit else { throw tooBig(bytes, type, limit, isFilled: bytes != payload.count) }
    }
    return payload
  }

  static let background: StaticString = #"{"content-available":1}"#

  /// - Parameter isFilled: `bytes` counts the badge or push key of each device with the most digits it can have.
  private static func tooBig(_ bytes: Int, _ type: PushType, _ limit: Int, isFilled: Bool = false) -> Rejection {
    Rejection(
      .messageTooBig,
      "an APNs payload of \(isFilled ? "up to " : "")\(bytes) bytes, at most \(limit) allowed for push type \(String(decoding: type.word, as: UTF8.self))"
    )
  }

  /// Apple ("Starting and updating Live Activities …"): APNs accepts a push without these keys, but the device drops it.
  static func refuseIncompleteActivity(_ aps: APSContent, _ document: JSONDocument) throws(Rejection) {
    func isMissing(_ key: APSKey) -> Bool {
      guard let override = aps.override, let node = document.value(key.wireName, of: override) else { return true }
      return document.kind(node) == .null
    }
    func refuse(_ key: APSKey, _ why: String) -> Rejection {
      Rejection(.invalidParameters, "apns.payload.aps.\(key.wireName): missing, \(why)")
    }
    for key in [APSKey.timestamp, .event] where isMissing(key) { throw refuse(key, "a live activity's push needs it") }
    guard let override = aps.override, let event = document.value(APSKey.event.wireName, of: override),
      !document.isString(event, "end")
    else { return }
    if isMissing(.contentState) { throw refuse(.contentState, "a live activity's start and update need it") }
    guard document.isString(event, "start") else { return }
    for key in [APSKey.attributesType, .attributes] where isMissing(key) {
      throw refuse(key, "starting a live activity needs it")
    }
    if !aps.hasAlert { throw refuse(.alert, "starting a live activity needs it") }
  }

  /// GS-025: data keys beside `aps` under their own names, as strings. A null counts as absent.
  private static func appendData(
    _ request: SendRequest, replacedBy custom: Set<[UInt8]>, isUPMC: Bool, page: [UInt8]?, to payload: inout [UInt8]
  ) throws(Rejection) {
    guard let data = request.dataNode else { return }
    let document = request.document
    try payload.appendDataMembers(of: data, in: document, page: page) { (name) throws(Rejection) in
      if document.isString(name, "aps") {
        throw Rejection(.invalidDataKey, "data.aps: reserved by APNs, at byte \(document.offset(name))")
      }
      return isUPMC && document.isString(name, SendRequest.extensionKey)
        || !custom.isEmpty && custom.contains(document.string(name))
    }
  }

  /// The block's keys beside `aps`. Refuses more keys than a payload can hold before it compares any.
  private static func customNames(
    _ aps: APSContent, _ document: JSONDocument, _ type: PushType, _ limit: Int
  ) throws(Rejection) -> Set<[UInt8]> {
    guard let block = aps.payload, document.count(block) > (aps.override == nil ? 0 : 1) else { return [] }
    // The shortest member has five bytes: `"a":1`.
    guard document.count(block) * 5 <= limit else { throw tooBig(document.count(block) * 5, type, limit) }
    var names: Set<[UInt8]> = []
    for (name, _) in document.members(of: block) { names.insert(document.string(name)) }
    return names
  }
}

extension [UInt8] {
  /// Appends the members of `data` as strings, without nulls. Neighbours that stay as they are written are copied together.
  /// - Parameters:
  ///   - page: replaces the value of `ext`.
  ///   - isLeftOut: asked for each name.
  @inline(__always)
  mutating func appendDataMembers<Refusal: Error>(
    of data: Int, in document: JSONDocument, page: [UInt8]?, isLeftOut: (Int) throws(Refusal) -> Bool
  ) throws(Refusal) {
    var run = 0..<0
    var members = document.memberCursor(of: data)
    while let (name, value) = members.next(in: document) {
      if document.kind(value) == .null { continue }
      if try isLeftOut(name) { continue }
      let source = page == nil ? document.plainMember(name, value) : nil
      if let source, source.lowerBound == run.upperBound + 1 {
        run = run.lowerBound..<source.upperBound
        continue
      }
      appendMembers(run, of: document)
      run = source ?? 0..<0
      if source == nil { appendDataMember(name, value, of: document, page: page) }
    }
    appendMembers(run, of: document)
  }

  /// Appends members as they are written in the source. An empty range has none.
  fileprivate mutating func appendMembers(_ source: Range<Int>, of document: JSONDocument) {
    guard !source.isEmpty else { return }
    appendMemberSeparator()
    append(copying: document.bytes.span.extracting(source))
  }

  /// Appends a member of `data` as a string: other scalars as written, arrays and objects as compact JSON (FCM legacy HTTP
  /// reference: "other types are converted to strings on delivery"). A `page` replaces the value of `ext`.
  private mutating func appendDataMember(_ name: Int, _ value: Int, of document: JSONDocument, page: [UInt8]?) {
    appendMemberSeparator()
    document.appendQuoted(name, to: &self)
    append(0x3A)
    if let page, document.isString(name, SendRequest.extensionKey) { return appendJSONString(page) }
    appendDataValue(value, of: document)
  }

  mutating func appendDataValue(_ value: Int, of document: JSONDocument) {
    switch document.kind(value) {
    case .array, .object:
      var text: [UInt8] = []
      document.append(value, to: &text)
      appendJSONString(text)
    default: document.appendQuoted(value, to: &self)
    }
  }
}
