/// A request translated for APNs: made once for each request, shared by the pushes to its devices.
public final class APNsTemplate: Sendable {
  /// The payload with placeholders for the values of each device.
  private let form: [UInt8]
  /// The place of the first placeholder; nil if there is none.
  private let placeholder: Int?
  /// The message's key; 0 if there is no push key to fill in.
  private let message: Int64
  public let pushType: PushType
  public let topic: [UInt8]
  public let topicOrigin: TopicOrigin
  /// 1, 5 or 10.
  public let priority: Int
  /// Unix seconds; 0: one attempt, not stored.
  public let expiration: Int64
  /// 1 to 64 bytes.
  public let collapseID: [UInt8]?
  /// A `live_activity_token`: the push goes to it instead of the device's own token.
  public let activityToken: [UInt8]?
  /// True if the push goes to a channel: under the app's bundle ID, as update or end of a live activity.
  public let isBroadcast: Bool
  /// The `apns-id` that the request names; nil if each device's push gets its own.
  public let fixedID: [UInt8]?
  /// The kind of the target token; nil for a push type whose tokens have no kind.
  public let kind: TokenKind?
  /// True if the payload has a page's address instead of `data.ext`.
  public let usesPage: Bool
  let identity: DeviceIdentity

  /// The origin of the topic. It decides which pushes a refusal of the topic concerns.
  public enum TopicOrigin: Sendable {
    case app
    /// The app's topic with the suffix of a push type. The credential may allow only the app's topic.
    case pushType
    case request
  }

  /// Translates headers and payload by the rules of ``MappingRule``; the request's `apns` block wins. Errors: `InvalidDataKey`
  /// (a data key `aps`), `InvalidParameters` (forbidden by the push type or for a channel), `MessageTooBig`,
  /// `InvalidPackageName` (unusable topic in the settings), `NothingForPlatform` (nothing is for an Apple device).
  public init(
    _ request: SendRequest, settings: borrowing APNsSettings, context: borrowing TranslationContext,
    isBroadcast: Bool = false, report: inout LossReport?
  ) throws(Rejection) {
    let delivery = try AppleDelivery(request, standard: settings.defaultPriority, context, isBroadcast: isBroadcast)
    guard settings.isUsable else { throw Rejection(.invalidPackageName, "the app's APNs topic is no bundle ID") }
    let aps = delivery.content
    self.isBroadcast = isBroadcast
    if isBroadcast { try Self.refuseNoBroadcast(request, aps) }
    pushType = delivery.pushType
    var usesPage = false
    form = try APNsPayload.make(
      request, aps, pushType, settings, context, limit: isBroadcast ? Self.broadcastLimit : pushType.payloadLimit,
      usesPage: &usesPage)
    self.usesPage = usesPage
    placeholder = aps.hasPlaceholders || settings.isUPMC ? Placeholder.first(in: form) : nil
    message = placeholder != nil && settings.isUPMC ? MessageKey.of(context.messageID) : 0
    let chosenTopic = request.topic
    topic = isBroadcast ? settings.topic : chosenTopic ?? settings.topics[Int(pushType.rawValue)]
    topicOrigin = chosenTopic != nil ? .request : pushType == .alert || pushType == .background ? .app : .pushType
    priority = delivery.priority
    expiration = delivery.expiration
    collapseID = delivery.collapseID
    activityToken = request.activityToken
    fixedID = request.apnsID
    let kind = TokenKind(pushType, startsActivity: aps.startsActivity(request.document))
    self.kind = activityToken == nil || kind?.isForActivity == true ? kind : .liveActivity
    identity = DeviceIdentity(messageID: context.messageID)
    report?.explain(
      request, for: .apns, delivery, movesExtension: settings.isUPMC && MPSObject.isWanted(request, aps, pushType))
    if usesPage { report?.addPage(.apns) }
  }

  /// The app's own topic; nil if the request named another.
  public var appTopic: [UInt8]? {
    switch topicOrigin {
    case .app: topic
    case .pushType: isBroadcast ? topic : topic.dropLast(pushType.topicSuffix.utf8.count)
    case .request: nil
    }
  }

  public var kindName: String { kind?.name ?? String(decoding: pushType.word, as: UTF8.self) }
  /// True if APNs' answer about the token concerns an activity, not the app.
  public var isForActivity: Bool { kind?.isForActivity == true }

  /// True if the pushes of both translations have the same headers, except `:path` and `apns-id`.
  public func hasHeaders(of other: APNsTemplate) -> Bool {
    expiration == other.expiration && priority == other.priority && pushType == other.pushType
      && collapseID == other.collapseID && topic == other.topic
  }

  /// - Parameters:
  ///   - token: hexadecimal digits.
  ///   - badge: the device's counter; nil if it has none.
  public func stamp(token: ArraySlice<UInt8>, badge: Int64? = 1) -> APNsPush {
    APNsPush(template: self, device: token, badge: badge)
  }

  func payload(badge: Int64?, token: ArraySlice<UInt8>) -> [UInt8] {
    Placeholder.filled(form, from: placeholder, badge, message: message, token: token)
  }

  public var payloadLimit: Int { isBroadcast ? Self.broadcastLimit : pushType.payloadLimit }
  private static let broadcastLimit = 5120

  /// Refuses what Apple forbids in broadcasts ("Sending broadcast push notification requests to APNs").
  private static func refuseNoBroadcast(_ request: SendRequest, _ aps: APSContent) throws(Rejection) {
    let document = request.document
    if let type = request.apnsHeader(.apnsPushType), !document.isString(type, "liveactivity") {
      throw Rejection(.invalidParameters, "apns.headers.apns-push-type: a channel takes live activities only")
    }
    for (header, name) in [(APNsHeader.apnsTopic, "apns-topic"), (.apnsCollapseId, "apns-collapse-id")]
    where request.apnsHeader(header) != nil {
      throw Rejection(.invalidParameters, "apns.headers.\(name): a channel takes none")
    }
    if aps.startsActivity(document) {
      throw Rejection(.invalidParameters, "apns.payload.aps.event: no activity can be started by a channel")
    }
  }
}
