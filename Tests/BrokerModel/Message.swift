import AMQP

/// A message in the broker. Copies of one publication in several queues share it.
public final class Message: Sendable {
  /// The number of the publication. Dead-lettering keeps it.
  public let number: Int
  /// The exchange of the last publication, by a client or by dead-lettering.
  public let exchange: [UInt8]
  public let routingKey: [UInt8]
  public let properties: BasicProperties
  public let body: [UInt8]
  /// The encoded properties. Unchanged ones are passed on as received.
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
  func setting(_ key: String, _ value: FieldValue) -> FieldTable {
    var table = removing([key])
    table.append(key, value)
    return table
  }
}
