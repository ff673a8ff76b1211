/// The frame layout of AMQP 0-9-1 §2.3.5: type, channel, payload size, payload, end octet.
enum Frame {
  static let headerSize = 7
  /// Header and end octet.
  static let overhead = 8
  static let end: UInt8 = 0xce

  static let method: UInt8 = 1
  static let contentHeader: UInt8 = 2
  static let contentBody: UInt8 = 3
  static let heartbeat: UInt8 = 8

  static let heartbeatBytes: [UInt8] = [heartbeat, 0, 0, 0, 0, 0, 0, end]
  static let protocolHeader: [UInt8] = [0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]

  /// Bytes by which a content header may exceed the frame agreed on. RabbitMQ looks at its size when a client publishes it, and not when it
  /// delivers it with what it has added: `x-death`, `x-delivery-count`, `x-first-death-…`.
  static let addedByBroker = 64 * 1024
  /// The largest content header that a publisher's connection may have agreed on, and ours not: brokers are configured to offer more.
  static let largestOffered: UInt32 = 1 << 20

  /// The class id of everything that has content.
  static let basicClass: UInt16 = 60
}
