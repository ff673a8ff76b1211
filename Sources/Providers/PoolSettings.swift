/// Settings of a pool's connections and rate. Times in seconds.
public struct PoolSettings: Sendable {
  public var connections: Int
  public var requestTimeout = 30.0
  /// After this time without a push, the only connection is closed. Apple asks to keep connections for hours, but one connection
  /// an hour is not frequent.
  public var idle = 3600.0
  /// The longest wait between two failed connections.
  public var longestBackoff = 1.5
  /// Connects again after a failure even if no push asks for it, so that the provider's return is noticed at once.
  public var reconnectsUnasked = true
  /// This pool's share of the provider's quota; nil if there is no quota.
  public var messagesPerMinute: Int?

  public static let apns = PoolSettings(connections: 1)
  /// FCM allows about 100 streams on a connection, so traffic needs several. Google advises at least 10 seconds for an answer
  /// and grants a project 600,000 messages a minute.
  public static let fcm = PoolSettings(connections: 8, messagesPerMinute: 600_000)
  /// A server with HTTP/1.1 needs a connection for each simultaneous push. An application may have devices at thousands of
  /// servers, so idle connections are closed soon.
  public static let webpush = PoolSettings(connections: 6, idle: 60, longestBackoff: 5, reconnectsUnasked: false)
  /// Strangers' servers, some of them gone for good: a dead one is tried rarely.
  public static let webpushOfStranger = PoolSettings(connections: 6, idle: 60, longestBackoff: 60, reconnectsUnasked: false)
}
