/// What the broker may say on a connection; ranges lie in the payload of the frame being read.
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

  case exchangeDeclareOK
  case queueDeclareOK(messages: UInt32, consumers: UInt32)
  case queueBindOK

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

/// What we say to the broker, `basic.publish` apart.
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

  case exchangeDeclare(name: [UInt8], type: [UInt8], arguments: FieldTable)
  /// Passive.
  case exchangeInspect(name: [UInt8])
  case queueDeclare(name: [UInt8], passive: Bool, arguments: FieldTable)
  /// Exclusive: it ends with the connection.
  case ownQueueDeclare(name: [UInt8])
  case queueBind(queue: [UInt8], exchange: [UInt8], routingKey: [UInt8], arguments: FieldTable)

  case qos(prefetch: UInt16)
  case consume(queue: [UInt8], consumerTag: [UInt8], arguments: FieldTable)
  /// What is delivered counts as acknowledged. From `amq.rabbitmq.reply-to` (direct reply-to) come the answers to what is published on this
  /// channel with that name as its `reply_to`.
  case listen(queue: [UInt8], consumerTag: [UInt8])
  case cancel(consumerTag: [UInt8])
  case cancelOK(consumerTag: [UInt8])
  case ack(tag: UInt64, multiple: Bool)
  case reject(tag: UInt64, requeue: Bool)
  case select
  /// From here on, acknowledgements on this channel count with the next commit.
  case transaction
  case commit
}
