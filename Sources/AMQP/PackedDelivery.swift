import Wire

/// A compact form of a delivery, for very large numbers of them: one allocation beside the memory that it shares with others.
public struct PackedDelivery: Sendable {
  private let consumer: Int32
  public let token: DeliveryToken
  private let redelivered: Bool
  private let hasUnreadableHeaders: Bool
  private let omittedHeaders: Int32
  private let exchange: [UInt8]
  private let routingKey: [UInt8]
  private let bodySize: UInt64
  private let bodyStart: Int32
  /// The properties in wire form, followed by the body.
  private let content: [UInt8]

  public init(_ delivery: consuming Delivery) {
    consumer = Int32(truncatingIfNeeded: delivery.consumer)
    token = delivery.token
    redelivered = delivery.redelivered
    hasUnreadableHeaders = delivery.properties.hasUnreadableHeaders
    omittedHeaders = Int32(truncatingIfNeeded: delivery.properties.omittedHeaders)
    exchange = delivery.exchange
    routingKey = delivery.routingKey
    bodySize = delivery.bodySize
    let properties = delivery.properties.encoded
    bodyStart = Int32(properties.count)
    var content: [UInt8] = []
    content.reserveCapacity(properties.count + delivery.body.count)
    content.append(contentsOf: properties)
    content.append(contentsOf: delivery.body)
    self.content = content
  }

  public var count: Int { content.count }

  public var delivery: Delivery {
    var delivery = Delivery()
    delivery.consumer = Int(consumer)
    delivery.token = token
    delivery.redelivered = redelivered
    delivery.exchange = exchange
    delivery.routingKey = routingKey
    delivery.bodySize = bodySize
    let bytes = content.span.bytes
    var cursor = WireCursor(0..<Int(bodyStart))
    var cache = PropertyCache()
    _ = delivery.properties.read(&cursor, in: bytes, cache: &cache)
    delivery.properties.hasUnreadableHeaders = hasUnreadableHeaders
    delivery.properties.omittedHeaders = Int(omittedHeaders)
    delivery.body = Array(content[Int(bodyStart)...])
    return delivery
  }
}
