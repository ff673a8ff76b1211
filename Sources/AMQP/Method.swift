/// A method from the broker. Ranges refer to the payload of the current frame.
enum InboundMethod {
  case start(serverProperties: Range<Int>, mechanisms: Range<Int>)
  case tune(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
  case openOK
  case close(code: UInt16, text: Range<Int>)
  case closeOK
  case blocked(reason: Range<Int>)
  case unblocked

  case channelOpenOK
  case channelFlow(active: Bool)
  case channelClose(code: UInt16, text: Range<Int>)
  case channelCloseOK

  /// The answer to a declaration, binding or deletion, except `queueDeclareOK`.
  case commandOK
  case queueDeclareOK(messages: UInt32, consumers: UInt32)

  case qosOK
  case consumeOK(consumerTag: Range<Int>)
  case cancel(consumerTag: Range<Int>, nowait: Bool)
  case cancelOK(consumerTag: Range<Int>)
  case deliver(
    consumerTag: Range<Int>, tag: UInt64, redelivered: Bool, exchange: Range<Int>, routingKey: Range<Int>)
  case returned(code: UInt16, exchange: Range<Int>, routingKey: Range<Int>)
  case ack(tag: UInt64, multiple: Bool)
  case nack(tag: UInt64, multiple: Bool)
  case selectOK
  case transactionOK
  case commitOK
}

extension InboundMethod {
  /// Reads the payload of a method frame. Nil if it is malformed or not a method that a broker may send.
  init?(_ payload: RawSpan) {
    var cursor = WireCursor(0..<payload.byteCount)
    guard let method = Self.read(&cursor, payload), !cursor.isBroken else { return nil }
    self = method
  }

  private static func read(_ cursor: inout WireCursor, _ payload: RawSpan) -> InboundMethod? {
    switch (cursor.uint16(in: payload), cursor.uint16(in: payload)) {
    case (10, 10):
      cursor.skip(2)
      let properties = cursor.longString(in: payload)
      guard FieldTable.isWellFormed(payload, range: properties, depth: 0) else { return nil }
      let mechanisms = cursor.longString(in: payload)
      _ = cursor.longString(in: payload)
      return .start(serverProperties: properties, mechanisms: mechanisms)
    case (10, 30):
      return .tune(
        channelMax: cursor.uint16(in: payload), frameMax: cursor.uint32(in: payload), heartbeat: cursor.uint16(in: payload))
    case (10, 41):
      _ = cursor.shortString(in: payload)
      return .openOK
    case (10, 50):
      defer { cursor.skip(4) }
      return .close(code: cursor.uint16(in: payload), text: cursor.shortString(in: payload))
    case (10, 51): return .closeOK
    case (10, 60): return .blocked(reason: cursor.shortString(in: payload))
    case (10, 61): return .unblocked
    case (20, 11):
      _ = cursor.longString(in: payload)
      return .channelOpenOK
    case (20, 20): return .channelFlow(active: cursor.bit(in: payload))
    case (20, 40):
      defer { cursor.skip(4) }
      return .channelClose(code: cursor.uint16(in: payload), text: cursor.shortString(in: payload))
    case (20, 41): return .channelCloseOK
    case (40, 11), (40, 21), (40, 31), (50, 21), (50, 51): return .commandOK
    case (50, 11):
      _ = cursor.shortString(in: payload)
      return .queueDeclareOK(messages: cursor.uint32(in: payload), consumers: cursor.uint32(in: payload))
    case (60, 11): return .qosOK
    case (60, 21): return .consumeOK(consumerTag: cursor.shortString(in: payload))
    case (60, 30): return .cancel(consumerTag: cursor.shortString(in: payload), nowait: cursor.bit(in: payload))
    case (60, 31): return .cancelOK(consumerTag: cursor.shortString(in: payload))
    case (60, 50):
      let code = cursor.uint16(in: payload)
      _ = cursor.shortString(in: payload)
      return .returned(
        code: code, exchange: cursor.shortString(in: payload), routingKey: cursor.shortString(in: payload))
    case (60, 60):
      return .deliver(
        consumerTag: cursor.shortString(in: payload), tag: cursor.uint64(in: payload), redelivered: cursor.bit(in: payload),
        exchange: cursor.shortString(in: payload), routingKey: cursor.shortString(in: payload))
    case (60, 80): return .ack(tag: cursor.uint64(in: payload), multiple: cursor.bit(in: payload))
    case (60, 120): return .nack(tag: cursor.uint64(in: payload), multiple: cursor.bit(in: payload))
    case (85, 11): return .selectOK
    case (90, 11): return .transactionOK
    case (90, 21): return .commitOK
    default: return nil
    }
  }
}

/// A method to the broker.
enum OutboundMethod {
  case startOK(clientProperties: FieldTable, mechanism: [UInt8], response: [UInt8])
  case tuneOK(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
  case open(virtualHost: [UInt8])
  case close(code: UInt16, text: [UInt8])
  case closeOK

  case channelOpen
  case channelFlowOK(active: Bool)
  case channelClose
  case channelCloseOK

  case command(Command)
  /// Declares an exclusive queue, which ends with the connection.
  case ownQueueDeclare(name: String)

  case qos(prefetch: UInt16)
  case consume(queue: String, consumerTag: [UInt8], arguments: FieldTable)
  /// Consumes without acknowledgements. With the queue `amq.rabbitmq.reply-to` (direct reply-to), the answers to messages that
  /// were published on this channel with this `reply_to` arrive here.
  case listen(queue: [UInt8], consumerTag: String)
  case cancel(consumerTag: [UInt8])
  case cancelOK(consumerTag: [UInt8])
  case publish(exchange: [UInt8], routingKey: [UInt8])
  case ack(tag: UInt64, multiple: Bool)
  case reject(tag: UInt64, requeue: Bool)
  case select
  /// `tx.select`: from now on, acknowledgements on this channel count with the next commit.
  case transaction
  case commit
}

extension OutboundMethod {
  /// Appends the method's frame.
  func append(to output: inout [UInt8], channel: UInt16) {
    output.appendFrame(Frame.method, channel: channel) { appendPayload(to: &$0) }
  }

  private func appendPayload(to output: inout [UInt8]) {
    // Tickets, capabilities and other fields that RabbitMQ ignores are zero.
    let ticket: UInt16 = 0
    switch self {
    case .startOK(let clientProperties, let mechanism, let response):
      output.appendMethod(10, 11, clientProperties, mechanism, LongString(response), Array("en_US".utf8))
    case .tuneOK(let channelMax, let frameMax, let heartbeat):
      output.appendMethod(10, 31, channelMax, frameMax, heartbeat)
    case .open(let virtualHost): output.appendMethod(10, 40, virtualHost, [UInt8](), false)
    case .close(let code, let text): output.appendMethod(10, 50, code, text, UInt32(0))
    case .closeOK: output.appendMethod(10, 51)
    case .channelOpen: output.appendMethod(20, 10, [UInt8]())
    case .channelFlowOK(let active): output.appendMethod(20, 21, active)
    case .channelClose: output.appendMethod(20, 40, UInt16(200), [UInt8](), UInt32(0))
    case .channelCloseOK: output.appendMethod(20, 41)
    case .command(.exchangeDeclare(let name, let type, let arguments)):
      output.appendMethod(40, 10, ticket, name, type, Bits.durable, arguments)
    case .command(.exchangeInspect(let name)):
      output.appendMethod(40, 10, ticket, name, "direct", Bits.passive, FieldTable())
    case .command(.queueDeclare(let name, let arguments)):
      output.appendMethod(50, 10, ticket, name, Bits.durable, arguments)
    case .command(.queueInspect(let name)):
      output.appendMethod(50, 10, ticket, name, Bits.durable | Bits.passive, FieldTable())
    case .command(.consumeRight(let queue)):
      output.appendMethod(60, 20, ticket, queue, "", UInt8(0), ["x-priority": .text("none")] as FieldTable)
    case .command(.queueBind(let queue, let exchange, let routingKey, let arguments)):
      output.appendMethod(50, 20, ticket, queue, exchange, routingKey, false, arguments)
    case .command(.queueUnbind(let queue, let exchange, let routingKey, let arguments)):
      output.appendMethod(50, 50, ticket, queue, exchange, routingKey, arguments)
    case .command(.exchangeBind(let name, let source, let routingKey, let arguments)):
      output.appendMethod(40, 30, ticket, name, source, routingKey, false, arguments)
    case .command(.exchangeDelete(let name)): output.appendMethod(40, 20, ticket, name, false)
    case .ownQueueDeclare(let name):
      output.appendMethod(50, 10, ticket, name, Bits.exclusive | Bits.autoDelete, FieldTable())
    case .qos(let prefetch): output.appendMethod(60, 10, UInt32(0), prefetch, false)
    case .consume(let queue, let consumerTag, let arguments):
      output.appendMethod(60, 20, ticket, queue, consumerTag, UInt8(0), arguments)
    case .listen(let queue, let consumerTag):
      output.appendMethod(60, 20, ticket, queue, consumerTag, Bits.noAck, FieldTable())
    case .cancel(let consumerTag): output.appendMethod(60, 30, consumerTag, false)
    case .cancelOK(let consumerTag): output.appendMethod(60, 31, consumerTag)
    case .publish(let exchange, let routingKey): output.appendMethod(60, 40, ticket, exchange, routingKey, Bits.mandatory)
    case .ack(let tag, let multiple): output.appendMethod(60, 80, tag, multiple)
    case .reject(let tag, let requeue): output.appendMethod(60, 90, tag, requeue)
    case .select: output.appendMethod(85, 10, false)
    case .transaction: output.appendMethod(90, 10)
    case .commit: output.appendMethod(90, 20)
    }
  }

  private enum Bits {
    static let passive: UInt8 = 1
    static let durable: UInt8 = 1 << 1
    static let exclusive: UInt8 = 1 << 2
    static let autoDelete: UInt8 = 1 << 3
    static let noAck: UInt8 = 1 << 1
    static let mandatory: UInt8 = 1
  }
}
