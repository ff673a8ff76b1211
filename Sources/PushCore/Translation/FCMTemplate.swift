/// A request translated for FCM v1: made once per request, its body once per device.
public struct FCMTemplate: Sendable {
  /// The body up to its target.
  private let head: [UInt8]
  /// The address that stands in the place of `data.ext`, for which there is no room.
  private let page: [UInt8]?
  /// What `data.mps` says; nil where there is none.
  private let object: [UInt8]?
  /// The address of a page stands there, or in the `mps` object.
  public let usesPage: Bool
  private let hasBlanks: Bool
  /// The message's key; 0 where no push key is filled in.
  private let message: Int64
  /// It names a `live_activity_token` beside the device's own: which of the two an answer means isn't said.
  public let isForActivity: Bool
  private static let tail = Array("}}".utf8)

  /// The body by the rules of ``MappingRule``; the request's blocks win over what is translated.
  ///
  /// Refused: `MessageTooBig`.
  public static func make(
    _ request: borrowing SendRequest, settings: FCMSettings = FCMSettings(), context: borrowing TranslationContext,
    report: inout LossReport?
  ) -> Result<FCMTemplate, Rejection> {
    do {
      let apple = AppleDelivery(request, standard: settings.defaultPriority, context)
      let object = settings.upmcTopic.flatMap { topic in
        MPSObject.isWantedInData(request) ? MPSObject.text(request, topic: topic, context) : nil
      }
      let page = FCMMessage.page(request, context, object)
      let message = FCMMessage(
        apple: apple, priority: settings.defaultPriority, upmcTopic: settings.upmcTopic, object: object, page: page)
      var usesPage = false
      let head = try message.head(request, context, usesPage: &usesPage)
      let mayHaveBlanks = apple?.content.hasBlanks == true || request.countsBadge || settings.upmcTopic != nil
      let hasBlanks = mayHaveBlanks && Blank.isIn(head)
      let template = FCMTemplate(
        head: head, hasBlanks: hasBlanks,
        message: hasBlanks && settings.upmcTopic != nil ? MessageKey.of(context.messageID) : 0, page: page,
        object: object, usesPage: usesPage, isForActivity: request.apns(.liveActivityToken) != nil)
      report?.explain(request, forFCM: apple)
      if object != nil { report?.add(.dataObject, .fcm) }
      if usesPage { report?.addPage(.fcm) }
      return .success(template)
    } catch {
      return .failure(error)
    }
  }

  private init(
    head: [UInt8], hasBlanks: Bool, message: Int64, page: [UInt8]?, object: [UInt8]?, usesPage: Bool, isForActivity: Bool
  ) {
    self.head = head
    self.hasBlanks = hasBlanks
    self.message = message
    self.page = page
    self.object = object
    self.usesPage = usesPage
    self.isForActivity = isForActivity
  }

  /// For one device: the whole body `{"message":{…,"token":"…"}}` of `POST /v1/projects/<project>/messages:send`.
  /// - Parameter token: or what stands in its place, as ``FCMAddress`` spells it.
  public func body(token: ArraySlice<UInt8>, fill: DeviceFill = DeviceFill()) -> [UInt8] {
    let head = hasBlanks ? Blank.filled(self.head, fill, message: message, token: token) : self.head
    var body: [UInt8] = []
    body.reserveCapacity(head.count + token.count + 16)
    body.append(contentsOf: head)
    FCMAddress.append(token, to: &body)
    body.append(contentsOf: Self.tail)
    return body
  }

  /// Why an entry of a list that names topics of FCM's own gets nothing, where the list's devices may.
  public func refusalForTopics(of request: borrowing SendRequest) -> Rejection? {
    do throws(Rejection) {
      try FCMMessage.refuseOversized(request, FCMMessage.topicPayloadLimit, page: page, object)
    } catch {
      return error
    }
    return nil
  }

  /// What FCM counts of a request against ``payloadLimit(toTopics:)``: bytes of keys and values of notification and data.
  public func countedBytes(of request: borrowing SendRequest) -> Int { FCMMessage.countedBytes(request, page: page, object) }
  /// How much of that FCM takes of a request.
  public static func payloadLimit(toTopics: Bool) -> Int {
    toTopics ? FCMMessage.topicPayloadLimit : FCMMessage.payloadLimit
  }
}
