/// Settings of a connection, for consumers and publishers.
public struct ConnectionSettings: Sendable {
  public var broker: BrokerURI
  /// The connection's name in the broker's management interface.
  public var name: String
  /// Seconds; the broker may lower it. 0 turns heartbeats off unless the broker requires them.
  public var heartbeat: UInt16
  /// Largest frame in bytes; the broker may lower it.
  public var frameMax: UInt32

  /// Seconds from the opening of the transport until the connection is ready to work.
  static let handshakeTimeout = 10.0
  /// Seconds.
  static let closeTimeout = 5.0

  public init(broker: BrokerURI, name: String = "pushfleet", heartbeat: UInt16 = 10, frameMax: UInt32 = 131_072) {
    self.broker = broker
    self.name = name
    self.heartbeat = heartbeat
    self.frameMax = frameMax
  }

  /// Client properties for the broker. Without `consumer_cancel_notify`, a consumer of a deleted queue waits forever. Without
  /// `connection.blocked`, an alarm looks like a stall.
  var clientProperties: FieldTable {
    [
      "product": .text("pushfleet"),
      "platform": .text("Swift"),
      "connection_name": .text(name),
      "capabilities": .table([
        "consumer_cancel_notify": .bool(true),
        "connection.blocked": .bool(true),
        "authentication_failure_close": .bool(true),
        "publisher_confirms": .bool(true),
        "basic.nack": .bool(true),
        "exchange_exchange_bindings": .bool(true),
      ]),
    ]
  }
}
