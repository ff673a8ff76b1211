/// The frame layout of AMQP 0-9-1 §2.3.5: type, channel, payload size, payload, end octet.
package enum Frame {
  package static let headerSize = 7
  package static let overhead = 8
  package static let end: UInt8 = 0xce

  package static let method: UInt8 = 1
  package static let contentHeader: UInt8 = 2
  package static let contentBody: UInt8 = 3
  package static let heartbeat: UInt8 = 8

  static let heartbeatBytes: [UInt8] = [heartbeat, 0, 0, 0, 0, 0, 0, end]
  package static let protocolHeader: [UInt8] = [0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]

  /// Bytes by which an incoming content header may exceed the agreed frame size. RabbitMQ checks the size on publish, but not
  /// after it has added headers such as `x-death`, `x-delivery-count` and `x-first-death-…`.
  static let addedByBroker = 64 * 1024
  /// The largest accepted content header in bytes from publishers with larger frames than ours. Some brokers offer more.
  static let largestOffered: UInt32 = 1 << 20

  package static let basicClass: UInt16 = 60
}
