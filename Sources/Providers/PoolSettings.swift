/// How a pool holds its connections and its pace. Times in seconds.
public struct PoolSettings: Sendable {
  public var connections: Int
  /// Streams at once on a connection, whatever the server would allow.
  public var streamLimit = 1000
  public var requestTimeout = 30.0
  /// Silence after which a PING asks whether the server is still there, and how long its answer may take: together the
  /// time in which a dead connection is found out.
  public var pingInterval = 15.0
  public var pingTimeout = 10.0
  /// This pool's share of what the provider grants; nil where the provider grants any number.
  public var messagesPerMinute: Int?

  public static let apns = PoolSettings(connections: 1)
  /// FCM allows some 100 streams on a connection, so traffic needs several. Google advises at least 10 seconds for an answer, and grants a project
  /// 600,000 messages a minute.
  public static let fcm = PoolSettings(connections: 8, messagesPerMinute: 600_000)
}
