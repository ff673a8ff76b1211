import AMQP

/// A message as the broker keeps it; the copies of one publication in several queues are one value.
public final class Message: Sendable {
  /// Counts publications in the order in which the broker took them. What is dead-lettered keeps its number.
  public let number: Int
  /// Where it was published last, by a client or by dead-lettering.
  public let exchange: [UInt8]
  public let routingKey: [UInt8]
  public let properties: BasicProperties
  public let body: [UInt8]
  /// The properties in their wire form: what the broker doesn't change passes through as it came.
  let encodedProperties: [UInt8]

  init(
    number: Int, exchange: [UInt8], routingKey: [UInt8], properties: BasicProperties, encodedProperties: [UInt8], body: [UInt8]
  ) {
    self.number = number
    self.exchange = exchange
    self.routingKey = routingKey
    self.properties = properties
    self.encodedProperties = encodedProperties
    self.body = body
  }

  /// The same message with other properties.
  init(_ message: Message, exchange: [UInt8], routingKey: [UInt8], properties: BasicProperties) {
    number = message.number
    self.exchange = exchange
    self.routingKey = routingKey
    self.properties = properties
    encodedProperties = properties.encoded
    body = message.body
  }
}

extension Message: CustomStringConvertible {
  public var description: String { "message \(number)" }
}

extension FieldTable {
  /// The same table with an entry replaced or added.
  func setting(_ key: String, _ value: FieldValue) -> FieldTable {
    var table = removing([key])
    table.append(key, value)
    return table
  }
}
