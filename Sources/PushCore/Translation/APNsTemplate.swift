/// A request translated for APNs: made once per request, shared by the pushes to its devices.
public final class APNsTemplate: Sendable {
  /// With what is filled in for each device left blank.
  private let form: [UInt8]
  private let hasBlanks: Bool
  /// The message's key; 0 where no push key is filled in.
  private let message: Int64
  public let pushType: PushType
  public let topic: [UInt8]
  public let topicOrigin: TopicOrigin
  /// 1, 5 or 10.
  public let priority: Int
  /// Unix seconds; 0: one attempt, nothing stored.
  public let expiration: Int64
  /// 1 to 64 bytes.
  public let collapseID: [UInt8]?
  /// A `live_activity_token`: where the push goes instead of to the device's own token.
  public let activityToken: [UInt8]?
  /// It goes to channels, not to devices: under the app's bundle ID, and as the update or the end of a live activity.
  public let isBroadcast: Bool
  /// The `apns-id` that the request itself names; nil: each device's push gets its own.
  public let fixedID: [UInt8]?
  /// Of the token that it goes to; nil for a push type whose tokens have no kind of their own.
  public let kind: TokenKind?
  /// The address of a page stands in the place of `data.ext`, for which there is no room.
  public let usesPage: Bool
  let identity: DeviceIdentity

  /// Whom a refusal of the topic concerns.
  public enum TopicOrigin: Sendable {
    /// The app's own.
    case app
    /// The app's own as another push type than an alert's has it, which the credential may lack while it has the app's.
    case pushType
    /// The request named it.
    case request
  }

  /// Headers and payload by the rules of ``MappingRule``; the request's `apns` block wins over what is translated.
  ///
  /// Refused: `InvalidDataKey` (a data key `aps`), `InvalidParameters` (a payload that its push type, or a broadcast, forbids), `MessageTooBig`,
  /// `InvalidPackageName` (an unusable topic in the settings), `NothingForPlatform` (nothing is for an Apple device).
  /// - Parameter isBroadcast: for channels.
  public static func make(
    _ request: borrowing SendRequest, settings: borrowing APNsSettings, context: borrowing TranslationContext,
    isBroadcast: Bool = false, report: inout LossReport?
  ) -> Result<APNsTemplate, Rejection> {
    guard let delivery = AppleDelivery(request, standard: settings.defaultPriority, context, isBroadcast: isBroadcast) else {
      return .failure(AppleDelivery.nothing)
    }
    do throws(Rejection) {
      let template = try APNsTemplate(request, delivery, settings, context, isBroadcast: isBroadcast)
      report?.explain(
        request, forAPNs: delivery,
        movesExtension: settings.isUPMC && MPSObject.isWanted(request, delivery.content, delivery.pushType))
      if template.usesPage { report?.addPage(.apns) }
      return .success(template)
    } catch {
      return .failure(error)
    }
  }

  private init(
    _ request: borrowing SendRequest, _ delivery: AppleDelivery, _ settings: borrowing APNsSettings,
    _ context: borrowing TranslationContext, isBroadcast: Bool
  ) throws(Rejection) {
    guard settings.isUsable else { throw Rejection(.invalidPackageName, "the app's APNs topic is no bundle ID") }
    let document = request.document
    let aps = delivery.content
    self.isBroadcast = isBroadcast
    if isBroadcast { try Self.refuseNoBroadcast(request, aps) }
    pushType = delivery.pushType
    var usesPage = false
    form = try APNsPayload.make(
      request, aps, pushType, settings, context, limit: isBroadcast ? Self.broadcastLimit : pushType.payloadLimit,
      usesPage: &usesPage)
    self.usesPage = usesPage
    hasBlanks = (aps.hasBlanks || settings.isUPMC) && Blank.isIn(form)
    message = hasBlanks && settings.isUPMC ? MessageKey.of(context.messageID) : 0
    let chosenTopic = request.apnsHeader(.apnsTopic).map(document.string)
    topic = isBroadcast ? settings.topic : chosenTopic ?? settings.topics[Int(pushType.rawValue)]
    topicOrigin = chosenTopic != nil ? .request : pushType == .alert || pushType == .background ? .app : .pushType
    priority = delivery.priority
    expiration = delivery.expiration
    collapseID = delivery.collapseID
    activityToken = request.activityToken
    fixedID = request.apnsID
    let kind = TokenKind(pushType, startsActivity: aps.startsActivity(document))
    self.kind = activityToken == nil || kind?.isForActivity == true ? kind : .liveActivity
    identity = DeviceIdentity(messageID: context.messageID)
  }

  /// The app's own topic; nil where the request named another one.
  public var appTopic: [UInt8]? {
    switch topicOrigin {
    case .app: topic
    case .pushType: isBroadcast ? topic : topic.dropLast(pushType.topicSuffix.utf8.count)
    case .request: nil
    }
  }

  /// What kind of token it goes to, in feedback's words.
  public var kindName: String { kind?.name ?? String(decoding: pushType.word, as: UTF8.self) }
  /// What APNs says of its token concerns an activity, not the app on its device.
  public var isForActivity: Bool { kind?.isForActivity == true }

  /// For one device: `token` in hexadecimal digits.
  public func stamp(token: ArraySlice<UInt8>, fill: DeviceFill = DeviceFill()) -> APNsPush {
    APNsPush(template: self, device: token, fill: fill)
  }

  func payload(for fill: DeviceFill, token: ArraySlice<UInt8>) -> [UInt8] {
    hasBlanks ? Blank.filled(form, fill, message: message, token: token) : form
  }

  /// Bytes of payload that APNs takes.
  public var payloadLimit: Int { isBroadcast ? Self.broadcastLimit : pushType.payloadLimit }
  private static let broadcastLimit = 5120

  /// Apple: "Sending broadcast push notification requests to APNs".
  private static func refuseNoBroadcast(_ request: borrowing SendRequest, _ aps: APSContent) throws(Rejection) {
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
