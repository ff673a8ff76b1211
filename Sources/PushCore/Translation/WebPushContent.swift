/// The content of a push for a browser: the notification's translated keys and the block's `webpush.notification`, which wins,
/// and the data.
///
/// With a title and an `https` link it is a declarative push: the browser shows it by itself and opens the link. A browser that
/// doesn't know declarative pushes hands it to the page's service worker, like any other push. Therefore one form is for all
/// browsers. `mutable` and `app_badge` are in two places, because the Push API's draft and WebKit disagree.
struct WebPushContent {
  /// The node of the block's notification, an object.
  private let override: Int?
  /// The node of the link: the block's own `navigate`, `fcm_options.link`, or an `https` click action.
  private let link: Int?
  /// The names of the block's data, which replace those of `data`.
  let ownData: Set<[UInt8]>
  /// True if there is a notification: a title, a body, or any key of the block.
  let isShown: Bool
  let isDeclarative: Bool
  let hasData: Bool

  init(_ request: SendRequest) {
    let document = request.document
    let own = request.webpush(.notification)
    override = own
    func value(_ name: String, _ translated: Int?) -> Int? {
      guard let own, let node = document.value(name, of: own) else { return translated }
      return document.kind(node) == .null ? nil : node
    }
    let title = value("title", request.notification[.title])
    isShown =
      title != nil || value("body", request.notification[.body]) != nil
      || own.map { document.members(of: $0).contains { document.kind($0.value) != .null } } ?? false
    link = Self.optionsLink(request) ?? request.secureURL(.clickAction)
    let navigate = value("navigate", link)
    isDeclarative =
      title.map { document.kind($0) == .string && !document.source($0).isEmpty } ?? false
      && navigate.map { document.kind($0) == .string && TextForm.isSecureURL(document.string($0)) } ?? false
    ownData = Set(request.webpush(.data).map { document.members(of: $0).map { document.string($0.name) } } ?? [])
    hasData = !ownData.isEmpty || request.hasData
  }

  static let nothing = Rejection(
    .nothingForPlatform, "nothing in the request is for a browser: no title, body, data or webpush.notification")

  private static func optionsLink(_ request: SendRequest) -> Int? {
    guard let options = request.webpush(.fcmOptions), let link = request.document.value("link", of: options) else { return nil }
    return request.document.kind(link) == .null ? nil : link
  }

  /// A translated key of `notification`.
  struct Field {
    let key: NotificationKey
    let name: String
    /// True if browsers take `https` URLs only.
    var isAddress = false

    func node(in request: SendRequest) -> Int? { isAddress ? request.secureURL(key) : request.notification[key] }
  }

  static let fields = [
    Field(key: .title, name: "title"), Field(key: .body, name: "body"), Field(key: .icon, name: "icon", isAddress: true),
    Field(key: .image, name: "image", isAddress: true), Field(key: .tag, name: "tag"),
  ]

  /// The block's node, also a null, which removes the key.
  private func own(_ name: String, _ document: JSONDocument) -> Int? { override.flatMap { document.value(name, of: $0) } }

  /// The block's key that wins over a key of the notification; nil if there is none.
  func winner(over name: String, _ document: JSONDocument) -> String? {
    own(name, document) == nil ? nil : "webpush.notification.\(name)"
  }

  /// The key that wins over the click action as link; nil if there is none.
  func winnerOverClickAction(_ request: SendRequest) -> String? {
    winner(over: "navigate", request.document) ?? (Self.optionsLink(request) == nil ? nil : "webpush.fcm_options.link")
  }

  /// Bytes of content that every push service takes: 4,096 (RFC 8030 §7.2) without the header, the tag and the delimiter of the
  /// encryption (RFC 8291 §4).
  static let limit = 3993

  /// The payload. If `data` doesn't fit in both places, it is in one. If that is too large and there is a page, its address is sent
  /// instead of `data.ext`.
  func payload(
    _ request: SendRequest, _ context: borrowing TranslationContext, usesPage: inout Bool
  ) throws(Rejection) -> [UInt8] {
    var (bytes, isFilled) = (0, false)
    for page in request.hasExtension && context.page != nil ? [nil, context.page] : [nil] {
      for repeatsData in [true, false] {
        let payload = payload(request, messageID: context.messageID, page: page, repeatsData: repeatsData)
        bytes = Placeholder.count(payload[...])
        isFilled = bytes != payload.count
        guard bytes > Self.limit else {
          usesPage = page != nil
          return payload
        }
      }
    }
    throw Rejection(
      .messageTooBig, "a web push of \(isFilled ? "up to " : "")\(bytes) bytes, at most \(Self.limit) allowed")
  }

  /// - Parameter repeatsData: writes `data` in the notification and beside it. Otherwise it is in the notification of a declarative
  ///   push, and beside that of any other push.
  private func payload(
    _ request: SendRequest, messageID: [UInt8], page: [UInt8]?, repeatsData: Bool
  ) -> [UInt8] {
    var payload: [UInt8] = []
    payload.reserveCapacity(min(request.document.bytes.count + 128, 2 * Self.limit))
    payload.append(0x7B)
    if isDeclarative { payload.append(#""web_push":8030"#) }
    if isShown {
      payload.appendMember(#""notification":{"#)
      appendKeys(request, to: &payload)
      if repeatsData || isDeclarative, own("data", request.document) == nil { appendData(request, page: page, to: &payload) }
      appendBadge(request, isBeside: false, to: &payload)
      appendMutable(request, isBeside: false, to: &payload)
      payload.append(0x7D)
    }
    if repeatsData || !isDeclarative { appendData(request, page: page, to: &payload) }
    if isShown {
      appendBadge(request, isBeside: true, to: &payload)
      appendMutable(request, isBeside: true, to: &payload)
    }
    payload.appendMember(#""fcmMessageId":"#)
    payload.appendSafeJSONString(messageID)
    payload.append(0x7D)
    return payload
  }

  private func appendKeys(_ request: SendRequest, to payload: inout [UInt8]) {
    let document = request.document
    for field in Self.fields where own(field.name, document) == nil {
      if let node = field.node(in: request) { payload.appendMember(named: field.name, node, of: document) }
    }
    if let link, own("navigate", document) == nil { payload.appendMember(#""navigate":"#, link, of: document) }
    guard let override else { return }
    for (name, value) in document.members(of: override) where document.kind(value) != .null {
      payload.appendMember(name, value, of: document)
    }
  }

  private func appendData(_ request: SendRequest, page: [UInt8]?, to payload: inout [UInt8]) {
    guard hasData else { return }
    let document = request.document
    payload.appendMember(#""data":{"#)
    if let data = request.dataNode {
      payload.appendDataMembers(of: data, in: document, page: page) {
        !ownData.isEmpty && ownData.contains(document.string($0))
      }
    }
    if let own = request.webpush(.data) {
      for (name, value) in document.members(of: own) { payload.appendMember(name, value, of: document) }
    }
    payload.append(0x7D)
  }

  /// - Parameter isBeside: the place is beside the notification, which has the block's own value already.
  private func appendBadge(_ request: SendRequest, isBeside: Bool, to payload: inout [UInt8]) {
    let document = request.document
    if let own = own("app_badge", document) {
      if isBeside, document.kind(own) != .null { payload.appendMember(#""app_badge":"#, own, of: document) }
      return
    }
    guard let badge = Self.badge(request) else { return }
    payload.appendMember(#""app_badge":"#)
    payload.appendBadge(badge)
  }

  /// `auto` shows the device's counter, which a badge for iPhones may set.
  static func badge(_ request: SendRequest) -> SendRequest.Badge? {
    if case .automatic? = request.badge { request.badgeOfCounter } else { request.badge }
  }

  private func appendMutable(_ request: SendRequest, isBeside: Bool, to payload: inout [UInt8]) {
    let document = request.document
    if let own = own("mutable", document) {
      if isBeside, document.kind(own) != .null { payload.appendMember(#""mutable":"#, own, of: document) }
    } else if request.mutableContent {
      payload.appendMember(#""mutable":true"#)
    }
  }
}
