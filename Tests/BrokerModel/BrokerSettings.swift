/// How a broker is set up, in RabbitMQ's words and with its defaults.
public struct BrokerSettings: Sendable {
  /// Names and passwords. Each may do everything.
  public var users = ["guest": "guest"]
  public var virtualHosts: Set<String> = ["/"]
  /// Seconds; 0 asks for none.
  public var heartbeat: UInt16 = 60
  public var frameMax: UInt32 = 131_072
  public var channelMax: UInt16 = 2047
  /// Seconds that a delivery may stay unacknowledged before its channel is closed, and how often each channel is checked.
  public var consumerTimeout = 1800.0
  public var consumerTimeoutCheck = 60.0
  /// Bytes of the largest message taken.
  public var maximumMessage = 134_217_728
  /// Messages that a queue holds, whatever its own limit: what exceeds it is refused as if the queue was full.
  public var maximumQueueLength = 1_000_000
  /// Dead letters of a queue that are on their way at once, and seconds before one is sent again whose queue hasn't taken it.
  public var deadLetterPrefetch = 32
  public var deadLetterPatience = 180.0

  /// Unix time, in seconds, when the monotonic clock began; dead letters say when they died.
  public var epoch: UInt64 = 1_700_000_000

  public init() {}
}

/// When the broker answers a publication that it has taken, and how.
public enum Confirmation: Equatable, Sendable {
  /// After so many seconds; 0 at once, infinity never.
  case ack(after: Double)
  /// An error of the broker's own: it may have kept the message all the same.
  case nack(after: Double, isKept: Bool)
}
