import AMQP

/// The methods that a broker sends, without content.
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

  case exchangeDeclareOK, exchangeDeleteOK, exchangeBindOK
  case queueDeclareOK(queue: [UInt8], messages: Int, consumers: Int)
  case queueBindOK, queueUnbindOK
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
  func append(to output: inout [UInt8], channel: UInt16) {
    output.appendFrame(Frame.method, channel: channel) { appendPayload(to: &$0) }
  }

  private func appendPayload(to output: inout [UInt8]) {
    func count(_ value: Int) -> UInt32 { UInt32(clamping: value) }
    switch self {
    case .start:
      let mechanisms = LongString(Array("PLAIN AMQPLAIN".utf8))
      output.appendMethod(10, 10, UInt8(0), UInt8(9), Self.serverProperties, mechanisms, LongString(Array("en_US".utf8)))
    case .tune(let channelMax, let frameMax, let heartbeat): output.appendMethod(10, 30, channelMax, frameMax, heartbeat)
    case .openOK: output.appendMethod(10, 41, [UInt8]())
    case .close(let refusal):
      output.appendMethod(10, 50, refusal.code, refusal.shortText, refusal.classID, refusal.methodID)
    case .closeOK: output.appendMethod(10, 51)
    case .blocked(let reason): output.appendMethod(10, 60, Array(reason.utf8))
    case .unblocked: output.appendMethod(10, 61)
    case .channelOpenOK: output.appendMethod(20, 11, LongString([]))
    case .channelFlowOK(let active): output.appendMethod(20, 21, active)
    case .channelClose(let refusal):
      output.appendMethod(20, 40, refusal.code, refusal.shortText, refusal.classID, refusal.methodID)
    case .channelCloseOK: output.appendMethod(20, 41)
    case .exchangeDeclareOK: output.appendMethod(40, 11)
    case .exchangeDeleteOK: output.appendMethod(40, 21)
    case .exchangeBindOK: output.appendMethod(40, 31)
    case .queueDeclareOK(let queue, let messages, let consumers):
      output.appendMethod(50, 11, queue, count(messages), count(consumers))
    case .queueBindOK: output.appendMethod(50, 21)
    case .queueUnbindOK: output.appendMethod(50, 51)
    case .queuePurgeOK(let messages): output.appendMethod(50, 31, count(messages))
    case .queueDeleteOK(let messages): output.appendMethod(50, 41, count(messages))
    case .qosOK: output.appendMethod(60, 11)
    case .consumeOK(let tag): output.appendMethod(60, 21, tag)
    case .cancel(let tag): output.appendMethod(60, 30, tag, true)
    case .cancelOK(let tag): output.appendMethod(60, 31, tag)
    case .returned(let message):
      output.appendMethod(60, 50, UInt16(312), Array("NO_ROUTE".utf8), message.exchange, message.routingKey)
    case .deliver(let consumer, let tag, let redelivered, let message):
      output.appendMethod(60, 60, consumer, tag, redelivered, message.exchange, message.routingKey)
    case .getOK(let tag, let redelivered, let message, let left):
      output.appendMethod(60, 71, tag, redelivered, message.exchange, message.routingKey, count(left))
    case .getEmpty: output.appendMethod(60, 72, [UInt8]())
    case .ack(let tag, let multiple): output.appendMethod(60, 80, tag, multiple)
    case .nack(let tag, let multiple): output.appendMethod(60, 120, tag, multiple)
    case .selectOK: output.appendMethod(85, 11)
    case .transactionOK: output.appendMethod(90, 11)
    case .commitOK: output.appendMethod(90, 21)
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

extension [UInt8] {
  mutating func appendContent(_ properties: [UInt8], body: [UInt8], channel: UInt16, frameMax: Int) {
    appendFrame(Frame.contentHeader, channel: channel) { output in
      output.appendBigEndian(UInt32(Frame.basicClass) << 16)
      output.appendBigEndian(UInt64(body.count))
      output += properties
    }
    var rest = body[...]
    while !rest.isEmpty {
      let piece = rest.prefix(frameMax - Frame.overhead)
      appendFrame(Frame.contentBody, channel: channel) { $0 += piece }
      rest = rest.dropFirst(piece.count)
    }
  }
}
