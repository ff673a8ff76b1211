/// The delivery of a request to an Apple device, the same through APNs and FCM.
struct AppleDelivery {
  let content: APSContent
  let pushType: PushType
  /// True for a background push that the request didn't ask for. It replaces GCM's own connection to the app (GS-010).
  let isEmulated: Bool
  let priority: Int
  /// Unix seconds; 0: one attempt, not stored.
  let expiration: Int64
  let collapseID: [UInt8]?
  let isBroadcast: Bool

  /// Throws if nothing in the request is for an Apple device.
  /// - Parameter isBroadcast: for a channel, which accepts live activities only and no collapse id.
  init(
    _ request: borrowing SendRequest, standard: Priority, _ context: borrowing TranslationContext, isBroadcast: Bool = false
  ) throws(Rejection) {
    let content = APSContent(request)
    let named = request.apnsHeader(.apnsPushType).flatMap { PushType(word: request.document.string($0)) }
    let type = named ?? (isBroadcast ? .liveactivity : content.inferredPushType)
    let isAsked = named != nil || request.contentAvailable || content.asksForBackground(request.document)
    if type == .background, !isAsked, Self.isForOthersOnly(request, content) { throw Self.nothing }
    self.content = content
    self.isBroadcast = isBroadcast
    pushType = type
    isEmulated = type == .background && !isAsked
    priority = Self.priority(request, type, standard)
    expiration = Self.expiration(request, context, isBroadcast: isBroadcast)
    collapseID =
      isBroadcast
      ? nil
      : request.apnsHeader(.apnsCollapseId).flatMap { CollapseID.header(request.document.string($0)) }
        ?? CollapseID.make(request)
  }

  private static let nothing = Rejection(
    .nothingForPlatform, "nothing in the request is for an Apple device: no text, badge, sound, data or apns.payload")

  /// True if only Android or the web show the content and there is no data: a background push would wake the app for nothing.
  /// An empty request wakes the app on purpose.
  private static func isForOthersOnly(_ request: SendRequest, _ content: APSContent) -> Bool {
    guard content.payload.map({ request.document.count($0) == 0 }) ?? true, !request.hasData else { return false }
    return request.hasNotification || request.android(.remoteNotification) != nil || request.android(.notification) != nil
      || request.android(.data) != nil
      || WebpushKey.allCases.contains { request.webpush($0) != nil }
  }

  /// GS-054; GS-057: APNs refuses 10 for a background push. In FCM v1's shape the default is 10, as in FCM.
  private static func priority(_ request: SendRequest, _ type: PushType, _ standard: Priority) -> Int {
    var priority: Int
    if let node = request.apnsHeader(.apnsPriority) {
      priority = request.document.isString(node, "10") ? 10 : request.document.isString(node, "5") ? 5 : 1
    } else if request.shape == .fcmV1 {
      priority = 10
    } else {
      priority = request.priority ?? (request.delayWhileIdle ? .normal : standard) == .high ? 10 : 5
    }
    return type == .background ? min(priority, 5) : priority
  }

  /// GS-063: 0 means "now or never". For a channel the default is 0, which a channel that stores nothing requires.
  private static func expiration(
    _ request: SendRequest, _ context: borrowing TranslationContext, isBroadcast: Bool
  ) -> Int64 {
    if let expiration = request.apnsExpiration { return expiration }
    if isBroadcast, request.timeToLive == nil { return 0 }
    return (request.timeToLive ?? request.androidTimeToLive) == 0 || context.deadline <= context.now
      ? 0 : context.deadline / 1000
  }
}

extension APSContent {
  func asksForBackground(_ document: JSONDocument) -> Bool {
    guard let override, let node = document.value("content-available", of: override) else { return false }
    return document.integer(node) == 1
  }
}

extension SendRequest {
  /// The value of `apns.headers.apns-expiration` in Unix seconds.
  public var apnsExpiration: Int64? {
    // Validated: at most twelve digits.
    apnsHeader(.apnsExpiration).map { document.string($0).reduce(0) { $0 * 10 + Int64($1 & 15) } }
  }

  var hasData: Bool {
    guard let dataNode else { return false }
    for (_, value) in document.members(of: dataNode) where document.kind(value) != .null { return true }
    return false
  }
}
