/// What an Apple device is to get by a request: decided once, whether APNs takes it there or FCM.
struct AppleDelivery {
  let content: APSContent
  let pushType: PushType
  /// A background push that nobody asked for: it stands in for GCM's own connection to the app (GS-010).
  let isEmulated: Bool
  /// 1, 5 or 10.
  let priority: Int
  /// Unix seconds; 0: one attempt, nothing stored.
  let expiration: Int64
  /// 1 to 64 bytes.
  let collapseID: [UInt8]?
  /// It goes to a channel.
  let isBroadcast: Bool

  /// Nil where nothing in the request is for an Apple device: it is left in peace.
  /// - Parameter isBroadcast: it goes to a channel, which takes live activities and no collapse id.
  init?(
    _ request: borrowing SendRequest, standard: Priority, _ context: borrowing TranslationContext, isBroadcast: Bool = false
  ) {
    let content = APSContent(request)
    let named = request.apnsHeader(.apnsPushType).flatMap { PushType(word: request.document.string($0)) }
    let type = named ?? (isBroadcast ? .liveactivity : content.inferredPushType)
    let isAsked = named != nil || request.contentAvailable || content.asksForBackground(request.document)
    if type == .background, !isAsked, Self.isForOthersOnly(request, content) { return nil }
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

  /// In the place of a push.
  static let nothing = Rejection(
    .nothingForPlatform, "nothing in the request is for an Apple device: no text, badge, sound, data or apns.payload")

  /// What it shows only Android or the web shows, and there is no data: a background push would wake the app for nothing. A request that
  /// has nothing at all wakes it on purpose.
  private static func isForOthersOnly(_ request: borrowing SendRequest, _ content: APSContent) -> Bool {
    guard content.payload.map({ request.document.count($0) == 0 }) ?? true, !request.hasData else { return false }
    return request.hasNotification || request.blocks?.androidV2?.isSync == false || request.android(.notification) != nil
      || request.android(.data) != nil
      || WebpushKey.allCases.contains { request.webpush($0) != nil }
  }

  /// GS-054; GS-057: APNs refuses 10 for a background push. In FCM v1's shape an absent priority is 10, as FCM has it.
  private static func priority(_ request: borrowing SendRequest, _ type: PushType, _ standard: Priority) -> Int {
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

  /// GS-063: 0 for now or never. A channel may store nothing, and then takes no other: only what the request says itself is more.
  private static func expiration(
    _ request: borrowing SendRequest, _ context: borrowing TranslationContext, isBroadcast: Bool
  ) -> Int64 {
    if let expiration = request.apnsExpiration { return expiration }
    if isBroadcast, request.timeToLive == nil { return 0 }
    return (request.timeToLive ?? request.androidTimeToLive) == 0 || context.deadline <= context.now
      ? 0 : context.deadline / 1000
  }
}

extension APSContent {
  /// The block's own `content-available` says so.
  func asksForBackground(_ document: JSONDocument) -> Bool {
    guard let override, let node = document.value("content-available", of: override) else { return false }
    return (try? document.integer(node)) == 1
  }
}

extension SendRequest {
  /// What `apns.headers.apns-expiration` says, unix seconds.
  public var apnsExpiration: Int64? {
    // Of up to twelve digits.
    apnsHeader(.apnsExpiration).map { document.string($0).reduce(0) { $0 * 10 + Int64($1 & 15) } }
  }

  /// At least one value that isn't null.
  var hasData: Bool {
    guard let dataNode else { return false }
    for (_, value) in document.members(of: dataNode) where document.kind(value) != .null { return true }
    return false
  }
}
