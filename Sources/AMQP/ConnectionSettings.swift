/// What a connection needs to know, whatever its role.
public struct ConnectionSettings: Sendable {
  public var broker: BrokerURI
  /// Shown by the broker's management as the connection's name.
  public var name: String
  /// Seconds; the broker may lower it. 0 turns heartbeats off unless the broker insists.
  public var heartbeat: UInt16
  /// Seconds from the transport's opening to the role's being ready to work.
  public var handshakeTimeout: Double
  /// Seconds that an orderly close waits for the broker's answer.
  public var closeTimeout: Double
  /// Largest frame accepted and sent, in bytes; the broker may lower it.
  public var frameMax: UInt32

  public init(
    broker: BrokerURI, name: String = "pushfleet", heartbeat: UInt16 = 10, handshakeTimeout: Double = 10,
    closeTimeout: Double = 5, frameMax: UInt32 = 131_072
  ) {
    self.broker = broker
    self.name = name
    self.heartbeat = heartbeat
    self.handshakeTimeout = handshakeTimeout
    self.closeTimeout = closeTimeout
    self.frameMax = frameMax
  }

  /// What we announce. Without `consumer_cancel_notify` a deleted queue leaves its consumer waiting for ever; without
  /// `connection.blocked` an alarm looks like a stall.
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
