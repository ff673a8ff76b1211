/// A request translated for APNs: made once per request, shared by the pushes to its devices.
public final class APNsTemplate: Sendable {
  /// With what is filled in for each device left blank.
  private let form: [UInt8]
  private let hasBlanks: Bool
  /// The message's key; 0 where nothing is filled in.
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
  /// The `apns-id` that the request itself names; nil: each device's push gets its own.
  public let fixedID: [UInt8]?
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
  /// Refused: `InvalidDataKey` (a data key `aps`), `InvalidParameters` (a payload that its push type forbids), `MessageTooBig`,
  /// `InvalidPackageName` (an unusable topic in the settings), `NothingForPlatform` (nothing is for an Apple device).
  public static func make(
    _ request: borrowing SendRequest, settings: borrowing APNsSettings, context: borrowing TranslationContext,
    report: inout LossReport?
  ) -> Result<APNsTemplate, Rejection> {
    guard let delivery = AppleDelivery(request, standard: settings.defaultPriority, context) else {
      return .failure(AppleDelivery.nothing)
    }
    do throws(Rejection) {
      let template = try APNsTemplate(request, delivery, settings, context)
      report?.explain(request, forAPNs: delivery)
      return .success(template)
    } catch {
      return .failure(error)
    }
  }

  private init(
    _ request: borrowing SendRequest, _ delivery: AppleDelivery, _ settings: borrowing APNsSettings,
    _ context: borrowing TranslationContext
  ) throws(Rejection) {
    guard settings.isUsable else { throw Rejection(.invalidPackageName, "the app's APNs topic is no bundle ID") }
    let document = request.document
    let aps = delivery.content
    pushType = delivery.pushType
    form = try APNsPayload.make(request, aps, pushType, settings, context)
    hasBlanks = (aps.hasBlanks || settings.isUPMC) && Blank.isIn(form)
    message = hasBlanks ? MessageKey.of(context.messageID) : 0
    let chosenTopic = request.apnsHeader(.apnsTopic).map(document.string)
    topic = chosenTopic ?? settings.topics[Int(pushType.rawValue)]
    topicOrigin = chosenTopic != nil ? .request : pushType == .alert || pushType == .background ? .app : .pushType
    priority = delivery.priority
    expiration = delivery.expiration
    collapseID = delivery.collapseID
    activityToken = request.apns(.liveActivityToken).map { Self.lowercased(document.string($0)) }
    fixedID = request.apnsID
    identity = DeviceIdentity(messageID: context.messageID)
  }

  /// For one device: `token` in hexadecimal digits.
  public func stamp(token: ArraySlice<UInt8>, fill: DeviceFill = DeviceFill()) -> APNsPush {
    APNsPush(template: self, device: token, fill: fill)
  }

  func payload(for fill: DeviceFill, token: ArraySlice<UInt8>) -> [UInt8] {
    hasBlanks ? Blank.filled(form, fill, message: message, token: token) : form
  }

  private static func lowercased(_ digits: [UInt8]) -> [UInt8] { digits.map { $0 | 0x20 } }
}
