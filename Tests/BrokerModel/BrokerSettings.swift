/// The settings of a broker, with RabbitMQ's names and defaults.
public struct BrokerSettings: Sendable {
  /// Names and passwords. Each user has all permissions.
  public var users = ["guest": "guest"]
  public var virtualHosts: Set<String> = ["/"]
  /// Seconds; 0 for none.
  public var heartbeat: UInt16 = 60
  public var frameMax: UInt32 = 131_072
  public var channelMax: UInt16 = 2047
  /// Seconds before an unacknowledged delivery closes its channel, and seconds between checks of a channel.
  public var consumerTimeout = 1800.0
  public var consumerTimeoutCheck = 60.0
  /// Bytes of the largest accepted message.
  public var maximumMessage = 134_217_728
  /// Most messages of a queue, whatever its arguments. Further ones are refused as if the queue were full.
  public var maximumQueueLength = 1_000_000
  /// Dead letters of a queue that are under way at once, and seconds before an unaccepted one is sent again.
  public var deadLetterPrefetch = 32
  public var deadLetterPatience = 180.0

  /// Unix seconds at which the monotonic clock began, for the time in dead letters.
  public var epoch: UInt64 = 1_700_000_000

  public init() {}
}

public enum Confirmation: Equatable, Sendable {
  /// After this many seconds; 0 for at once, infinity for never.
  case ack(after: Double)
  /// An internal error of the broker, which may have kept the message.
  case nack(after: Double, isKept: Bool)
}
