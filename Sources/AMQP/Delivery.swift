/// Identifies one delivery on one opening of a consumer's channel. RabbitMQ closes a channel on which an unknown tag is
/// acknowledged. So the token has the channel's generation, and it is ignored once that channel is gone.
public struct DeliveryToken: Hashable, Sendable {
  public let generation: UInt32
  public let channel: UInt16
  /// The broker's delivery tag: 1, 2, 3 … on each channel.
  public let tag: UInt64

  public init(generation: UInt32, channel: UInt16 = 1, tag: UInt64) {
    self.generation = generation
    self.channel = channel
    self.tag = tag
  }
}

/// A message from the broker. It stays unacknowledged until its token is acknowledged or rejected.
public struct Delivery: Sendable {
  /// Index of the queue in the consumer's subscriptions.
  public var consumer = 0
  public var token = DeliveryToken(generation: 0, tag: 0)
  /// True if the broker may have delivered this message before; false proves that it did not.
  public var redelivered = false
  public var exchange: [UInt8] = []
  public var routingKey: [UInt8] = []
  public var properties = BasicProperties()
  /// At most the consumer's `maximumBody` bytes of the body.
  public var body: [UInt8] = []
  /// Size of the whole body in bytes, from the content header.
  public var bodySize: UInt64 = 0

  public init() {}

  /// True if the body exceeded the limit and only its beginning was kept.
  public var isTruncated: Bool { UInt64(body.count) < bodySize }

  public var weight: Int { body.count + properties.headers.encoded.count }
}
