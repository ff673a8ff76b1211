import DeviceRegistry
import PushCore

/// An admitted request, read from its body once. What every request is asked for is beside it: a look into the request from
/// outside of its module copies all of it.
final class ParsedRequest {
  let request: SendRequest
  let isDryRun: Bool
  let lifetime: Int?
  /// As ``SendRequest/expirationOfTokens``.
  let expiration: Int64?
  let package: [UInt8]?
  /// The one that it chooses itself.
  let topic: [UInt8]?
  let audience: Audience?
  let badge: SendRequest.Badge?
  /// It says nothing of a badge itself.
  let countsBadge: Bool
  /// A newer one may replace it while it waits.
  let isCollapsible: Bool
  /// Of the registered tokens that it goes to.
  private(set) lazy var kind = request.tokenKind
  private(set) lazy var hasExtension = request.hasExtension

  init(parsing body: [UInt8], limits: RequestLimits) throws(Rejection) {
    let request = try SendRequest(parsing: body, limits: limits)
    isDryRun = request.isDryRun
    lifetime = request.lifetime
    expiration = request.expirationOfTokens
    package = request.restrictedPackageName
    topic = request.apnsHeader(.apnsTopic).map(request.document.string)
    audience = request.audience
    badge = request.badgeOfCounter
    countsBadge = request.countsBadge
    isCollapsible = request.isCollapsible && !isDryRun
    self.request = request
  }
}
