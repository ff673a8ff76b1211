import AMQP

/// What a broker says, content apart.
enum ServerMethod {
  case start
  case tune(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
  case openOK
  case close(Refusal)
  case closeOK
  case blocked(reason: String)
  case unblocked

  case channelOpenOK
  case channelFlowOK(active: Bool)
  case channelClose(Refusal)
  case channelCloseOK

  case exchangeDeclareOK
  case queueDeclareOK(queue: [UInt8], messages: Int, consumers: Int)
  case queueBindOK
  case queuePurgeOK(messages: Int)
  case queueDeleteOK(messages: Int)

  case qosOK
  case consumeOK(consumerTag: [UInt8])
  case cancel(consumerTag: [UInt8])
  case cancelOK(consumerTag: [UInt8])
  case returned(Message)
  case deliver(consumerTag: [UInt8], tag: UInt64, redelivered: Bool, Message)
  case getOK(tag: UInt64, redelivered: Bool, Message, left: Int)
  case getEmpty
  case ack(tag: UInt64, multiple: Bool)
  case nack(tag: UInt64, multiple: Bool)
  case selectOK
  case transactionOK, commitOK
}

extension ServerMethod {
  /// Appends a whole method frame.
  func append(to output: inout [UInt8], channel: UInt16) {
    output.append(1)
    output.appendInteger(channel)
    let sizeAt = output.count
    output.appendInteger(UInt32(0))
    appendPayload(to: &output)
    let size = UInt32(output.count - sizeAt - 4)
    output.replaceSubrange(sizeAt..<sizeAt + 4, with: [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: size >> $0) })
    output.append(FrameType.end)
  }

  private func appendPayload(to output: inout [UInt8]) {
    func id(_ classID: UInt16, _ methodID: UInt16) {
      output.appendInteger(classID)
      output.appendInteger(methodID)
    }
    switch self {
    case .start:
      id(10, 10)
      output += [0, 9]
      output.appendTable(Self.serverProperties)
      output.appendLongString(Array("PLAIN AMQPLAIN".utf8))
      output.appendLongString(Array("en_US".utf8))
    case .tune(let channelMax, let frameMax, let heartbeat):
      id(10, 30)
      output.appendInteger(channelMax)
      output.appendInteger(frameMax)
      output.appendInteger(heartbeat)
    case .openOK:
      id(10, 41)
      output.append(0)
    case .close(let refusal):
      id(10, 50)
      refusal.append(to: &output)
    case .closeOK: id(10, 51)
    case .blocked(let reason):
      id(10, 60)
      output.appendShortString(Array(reason.utf8))
    case .unblocked: id(10, 61)
    case .channelOpenOK:
      id(20, 11)
      output.appendLongString([])
    case .channelFlowOK(let active):
      id(20, 21)
      output.append(active ? 1 : 0)
    case .channelClose(let refusal):
      id(20, 40)
      refusal.append(to: &output)
    case .channelCloseOK: id(20, 41)
    case .exchangeDeclareOK: id(40, 11)
    case .queueDeclareOK(let queue, let messages, let consumers):
      id(50, 11)
      output.appendShortString(queue)
      output.appendInteger(UInt32(clamping: messages))
      output.appendInteger(UInt32(clamping: consumers))
    case .queueBindOK: id(50, 21)
    case .queuePurgeOK(let messages):
      id(50, 31)
      output.appendInteger(UInt32(clamping: messages))
    case .queueDeleteOK(let messages):
      id(50, 41)
      output.appendInteger(UInt32(clamping: messages))
    case .qosOK: id(60, 11)
    case .consumeOK(let tag):
      id(60, 21)
      output.appendShortString(tag)
    case .cancel(let tag):
      id(60, 30)
      output.appendShortString(tag)
      output.append(1)
    case .cancelOK(let tag):
      id(60, 31)
      output.appendShortString(tag)
    case .returned(let message):
      id(60, 50)
      output.appendInteger(UInt16(312))
      output.appendShortString(Array("NO_ROUTE".utf8))
      output.appendShortString(message.exchange)
      output.appendShortString(message.routingKey)
    case .deliver(let consumer, let tag, let redelivered, let message):
      id(60, 60)
      output.appendShortString(consumer)
      output.appendInteger(tag)
      output.append(redelivered ? 1 : 0)
      output.appendShortString(message.exchange)
      output.appendShortString(message.routingKey)
    case .getOK(let tag, let redelivered, let message, let left):
      id(60, 71)
      output.appendInteger(tag)
      output.append(redelivered ? 1 : 0)
      output.appendShortString(message.exchange)
      output.appendShortString(message.routingKey)
      output.appendInteger(UInt32(clamping: left))
    case .getEmpty:
      id(60, 72)
      output.append(0)
    case .ack(let tag, let multiple):
      id(60, 80)
      output.appendInteger(tag)
      output.append(multiple ? 1 : 0)
    case .nack(let tag, let multiple):
      id(60, 120)
      output.appendInteger(tag)
      output.append(multiple ? 1 : 0)
    case .selectOK: id(85, 11)
    case .transactionOK: id(90, 11)
    case .commitOK: id(90, 21)
    }
  }

  private static let serverProperties: FieldTable = [
    "capabilities": .table([
      "publisher_confirms": .bool(true),
      "exchange_exchange_bindings": .bool(true),
      "basic.nack": .bool(true),
      "consumer_cancel_notify": .bool(true),
      "connection.blocked": .bool(true),
      "authentication_failure_close": .bool(true),
      "per_consumer_qos": .bool(true),
    ]),
    "product": .text("RabbitMQ"), "version": .text("3.10.8"),
  ]
}

/// Content behind a method.
extension [UInt8] {
  /// Appends the header frame and as many body frames as a frame's largest size asks for.
  mutating func appendContent(_ properties: [UInt8], body: [UInt8], channel: UInt16, frameMax: Int) {
    append(FrameType.header)
    appendInteger(channel)
    appendInteger(UInt32(12 + properties.count))
    appendInteger(UInt32(60) << 16)
    appendInteger(UInt64(body.count))
    self += properties
    append(FrameType.end)
    var rest = body[...]
    while !rest.isEmpty {
      let piece = rest.prefix(frameMax - FrameType.overhead)
      append(FrameType.body)
      appendInteger(channel)
      appendInteger(UInt32(piece.count))
      self += piece
      append(FrameType.end)
      rest = rest.dropFirst(piece.count)
    }
  }

  mutating func appendInteger<T: FixedWidthInteger>(_ value: T) {
    for shift in stride(from: T.bitWidth - 8, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: value >> T(shift))) }
  }

  /// What exceeds 255 bytes is cut off.
  mutating func appendShortString(_ bytes: [UInt8]) {
    append(UInt8(clamping: bytes.count))
    self += bytes.prefix(255)
  }

  mutating func appendLongString(_ bytes: [UInt8]) {
    appendInteger(UInt32(clamping: bytes.count))
    self += bytes
  }

  mutating func appendTable(_ table: FieldTable) { appendLongString(table.encoded) }
}

/// Frames of AMQP 0-9-1 §2.3.5.
enum FrameType {
  static let method: UInt8 = 1
  static let header: UInt8 = 2
  static let body: UInt8 = 3
  static let heartbeat: UInt8 = 8
  static let end: UInt8 = 0xce
  /// Header and end octet.
  static let overhead = 8
  static let protocolHeader: [UInt8] = [0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]
}
