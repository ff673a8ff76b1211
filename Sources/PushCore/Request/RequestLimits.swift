/// Size limits of a request. The defaults are GCM's (server reference; rules GS-004, GS-005 and the table of limits).
public struct RequestLimits: Sendable, Equatable {
  public var json: JSONLimits = JSONLimits()
  /// UTF-8 bytes of the keys and values of `notification`, after unescaping.
  public var notificationBytes: Int = 2048
  /// FCM v1 limits the whole message, not `notification`.
  static let v1NotificationBytes = 4096
  /// UTF-8 bytes of the keys and values of `data`, after unescaping.
  public var dataBytes: Int = 4096
  /// The same limit for messages to a topic or a condition.
  public var topicDataBytes: Int = 2048
  /// The same limit for the value of `data.ext` alone, if it may become a page; nil if it counts with the rest of `data`.
  public var extensionBytes: Int?
  public var registrationIDs: Int = 1000
  public var conditionTopics: Int = 5
  /// UTF-8 bytes.
  public var collapseKeyBytes: Int = 1024

  /// Omits an unknown name instead of refusing the request (GS-012).
  public var ignoresUnknownNames = false

  /// Treats a request that shows an alert without a badge like one with `auto`.
  public var countsBadges = false

  /// Four weeks in seconds: the largest `time_to_live` and the default (GS-060, GS-061).
  public static let longestTimeToLive = 2_419_200

  public init() {}
}
