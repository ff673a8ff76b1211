/// A request translated for FCM v1: made once for each request; makes one body for each device.
public final class FCMTemplate: Sendable {
  private let head: [UInt8]
  /// The address that replaces `data.ext`, or nil.
  private let page: [UInt8]?
  /// The value of `data.mps`, or nil.
  private let object: [UInt8]?
  /// True if the body or its `mps` object has the address of a page.
  public let usesPage: Bool
  /// The place of the first placeholder; nil if there is none.
  private let placeholder: Int?
  /// The message's key; 0 if there is no push key to fill in.
  private let message: Int64
  /// True if the request names a `live_activity_token` too. FCM's answer doesn't say which of the two tokens it concerns.
  public let isForActivity: Bool

  /// Translates the body by the rules of ``MappingRule``; the request's blocks win. Errors: `MessageTooBig`.
  public init(
    _ request: SendRequest, settings: FCMSettings = FCMSettings(), context: borrowing TranslationContext,
    report: inout LossReport?
  ) throws(Rejection) {
    let message = FCMMessage(request, settings, context)
    object = message.object
    page = message.page
    var usesPage = false
    head = try message.head(request, context, usesPage: &usesPage)
    self.usesPage = usesPage
    let mayHavePlaceholders = message.apple?.content.hasPlaceholders == true || request.countsBadge || settings.upmcTopic != nil
    placeholder = mayHavePlaceholders ? Placeholder.first(in: head) : nil
    self.message = placeholder != nil && settings.upmcTopic != nil ? MessageKey.of(context.messageID) : 0
    isForActivity = request.apns(.liveActivityToken) != nil
    report?.explain(request, for: .fcm, message.apple)
    if object != nil { report?.add(.dataObject, .fcm) }
    if usesPage { report?.addPage(.fcm) }
  }

  /// The whole body for one device, `{"message":{…,"token":"…"}}`, of `POST /v1/projects/<project>/messages:send`.
  /// - Parameters:
  ///   - token: a token, or another target as ``FCMAddress`` spells it.
  ///   - badge: the device's counter; nil if it has none.
  public func body(token: ArraySlice<UInt8>, badge: Int64? = 1) -> [UInt8] {
    let head = Placeholder.filled(self.head, from: placeholder, badge, message: message, token: token)
    var body: [UInt8] = []
    body.reserveCapacity(head.count + token.count + 16)
    body.append(contentsOf: head)
    FCMAddress.append(token, to: &body)
    body.append("}}")
    return body
  }

  /// The error for entries of a list that name FCM's own topics, which have a lower limit; nil if the request fits.
  public func refusalForTopics(of request: SendRequest) -> Rejection? {
    do throws(Rejection) {
      try FCMMessage.refuseOversized(request, FCMMessage.topicPayloadLimit, page: page, object)
    } catch {
      return error
    }
    return nil
  }

  /// Bytes of keys and values of notification and data, which FCM counts against ``payloadLimit(toTopics:)``.
  public func countedBytes(of request: SendRequest) -> Int { FCMMessage.countedBytes(request, page: page, object) }
  public static func payloadLimit(toTopics: Bool) -> Int {
    toTopics ? FCMMessage.topicPayloadLimit : FCMMessage.payloadLimit
  }
}
