import DeviceRegistry
import PushCore

/// An admitted request, parsed once. The fields that every request needs are here, because access to ``request`` from outside
/// its module copies it.
final class ParsedRequest {
  let request: SendRequest
  let isDryRun: Bool
  let lifetime: Int?
  /// ``SendRequest/expirationOfTokens``
  let expiration: Int64?
  let package: [UInt8]?
  /// The `apns-topic` of the request.
  let topic: [UInt8]?
  let audience: Audience?
  let badge: SendRequest.Badge?
  /// The request has no badge, and the application counts badges.
  let countsBadge: Bool
  /// A newer request may replace this one while it waits.
  let isCollapsible: Bool
  /// The kind of registered tokens to send to.
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
