/// Names one delivery on one opening of a consumer's channel.
///
/// A tag outlives its channel only by mistake (RabbitMQ closes a channel on which a foreign tag is acknowledged), so it
/// carries the channel's generation and is ignored once the channel is gone.
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

/// One message handed over by the broker, unacknowledged until its token is acknowledged or rejected.
public struct Delivery: Sendable {
  /// Index of the queue in the consumer's list of subscriptions.
  public var consumer: Int
  public var token: DeliveryToken
  /// The broker may have handed this message over before; false proves that it did not.
  public var redelivered: Bool
  public var exchange: [UInt8]
  public var routingKey: [UInt8]
  public var properties: BasicProperties
  /// At most the consumer's `maximumBody` bytes of the body.
  public var body: [UInt8]
  /// The size announced by the content header, in bytes.
  public var bodySize: UInt64

  /// Nothing yet.
  public init() {
    consumer = 0
    token = DeliveryToken(generation: 0, tag: 0)
    redelivered = false
    exchange = []
    routingKey = []
    properties = BasicProperties()
    body = []
    bodySize = 0
  }

  /// The body was larger than the limit and only its beginning was kept.
  public var isTruncated: Bool { UInt64(body.count) < bodySize }

  /// Bytes that it takes beyond what every delivery takes.
  public var weight: Int { body.count + properties.headers.encoded.count }
}
