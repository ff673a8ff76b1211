/// An answer of APNs: a status and, except for 200, a reason (Apple, "Handling notification responses from APNs").
struct APNsVerdict: Error, Equatable {
  var status: Int
  var reason: String?

  static let accepted = APNsVerdict(status: 200)
  static func bad(_ reason: String) -> APNsVerdict { APNsVerdict(status: 400, reason: reason) }
  static func forbidden(_ reason: String) -> APNsVerdict { APNsVerdict(status: 403, reason: reason) }

  /// The reason for a scripted status without one.
  static let usualReason: [Int: String] = [
    400: "BadDeviceToken", 403: "InvalidProviderToken", 404: "BadPath", 405: "MethodNotAllowed", 410: "Unregistered",
    413: "PayloadTooLarge", 429: "TooManyRequests", 500: "InternalServerError", 503: "ServiceUnavailable",
  ]
}
