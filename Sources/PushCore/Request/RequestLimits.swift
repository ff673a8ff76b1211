/// Sizes that a request may have. The defaults are GCM's (server reference; rules GS-004, GS-005 and the table of limits).
public struct RequestLimits: Sendable, Equatable {
  /// The body as JSON.
  public var json: JSONLimits = JSONLimits()
  /// UTF-8 bytes of the keys and values of `notification`, after unescaping.
  public var notificationBytes: Int = 2048
  /// FCM v1 has no limit of its own for it: what it takes in all.
  static let v1NotificationBytes = 4096
  /// UTF-8 bytes of the keys and values of `data`, after unescaping.
  public var dataBytes: Int = 4096
  /// The same for a message to a topic or a condition.
  public var topicDataBytes: Int = 2048
  /// The same of the value of `data.ext` by itself, where it may become a page; nil where it counts with the rest of `data`.
  public var extensionBytes: Int?
  /// Entries of `registration_ids`.
  public var registrationIDs: Int = 1000
  /// Different topics in a condition.
  public var conditionTopics: Int = 5
  /// UTF-8 bytes of `collapse_key`.
  public var collapseKeyBytes: Int = 1024

  /// A name that isn't known is left out instead of refusing the request (GS-012).
  public var ignoresUnknownNames = false

  /// A request without a badge that shows an alert counts as one with `auto`.
  public var countsBadges = false

  /// Four weeks, in seconds: the largest `time_to_live`, and what an absent one means (GS-060, GS-061).
  public static let longestTimeToLive = 2_419_200

  public init() {}
}
