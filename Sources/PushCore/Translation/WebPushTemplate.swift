/// A request translated for web push: made once for each request, shared by the pushes to its browsers.
public final class WebPushTemplate: Sendable {
  /// The payload with placeholders for the values of each device.
  private let form: [UInt8]
  /// The place of the first placeholder; nil if there is none.
  private let placeholder: Int?
  /// Unix milliseconds; nil: only for a browser that is connected now.
  private let deadline: Int64?
  /// The header field `Urgency`: `very-low`, `low`, `normal` or `high`.
  public let urgency: [UInt8]
  /// The header field `Topic`: 32 characters of base64url, or nil.
  public let topic: [UInt8]?
  /// True if the payload has a page's address instead of `data.ext`.
  public let usesPage: Bool

  /// Translates headers and content by the rules of ``MappingRule``; the request's `webpush` block wins. Errors:
  /// `InvalidParameters` (another header in the block, or a wrong value), `InvalidTtl`, `MessageTooBig`, `NothingForPlatform`
  /// (nothing is for a browser).
  /// - Parameter standard: for a request in GCM's shape that names no priority (GS-051).
  public init(
    _ request: SendRequest, standard: Priority = .normal, context: borrowing TranslationContext, report: inout LossReport?
  ) throws(Rejection) {
    let content = WebPushContent(request)
    guard content.isShown || content.hasData else { throw WebPushContent.nothing }
    let delivery = try WebPushDelivery(request, standard: standard, context)
    var usesPage = false
    form = try content.payload(request, context, usesPage: &usesPage)
    placeholder = Placeholder.first(in: form)
    deadline = delivery.deadline
    urgency = Array(delivery.urgency.rawValue.utf8)
    topic = delivery.topic
    self.usesPage = usesPage
    report?.explain(request, for: .webpush, content: content)
    if usesPage { report?.addPage(.webpush) }
  }

  /// The header field `TTL`: the rest of the lifetime in whole seconds, at most four weeks. 0: only if the browser is connected.
  /// - Parameter now: Unix milliseconds.
  public func timeToLive(at now: Int64) -> Int64 {
    guard let deadline, deadline > now else { return 0 }
    return (min(deadline - now, Int64(RequestLimits.longestTimeToLive) * 1000) + 500) / 1000
  }

  /// The content for one device, before encryption: at most ``payloadLimit`` bytes of JSON.
  /// - Parameter badge: the device's counter; nil if it has none.
  public func payload(badge: Int64? = 1, token: ArraySlice<UInt8>) -> [UInt8] {
    Placeholder.filled(form, from: placeholder, badge, token: token)
  }

  public static let payloadLimit = WebPushContent.limit
}
