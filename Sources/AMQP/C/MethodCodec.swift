import CRabbitMQ

/// Methods to and from their wire form, by librabbitmq's codec (`amqp_decode_method`, `amqp_encode_method`).
///
/// Framing, content headers and tables from outside are read in Swift: librabbitmq 0.11 decodes nested tables by unbounded
/// recursion (rabbitmq-c #780, fixed in 0.14). The one table the broker sends in a method, `connection.start`'s server
/// properties, is checked before it is handed over, and methods that only a client may send are never decoded.
final class MethodCodec {
  private let pool: UnsafeMutablePointer<amqp_pool_t>
  private let scratch: UnsafeMutableRawBufferPointer

  init() {
    pool = .allocate(capacity: 1)
    pool.initialize(to: amqp_pool_t())
    init_amqp_pool(pool, 4096)
    scratch = .allocate(byteCount: 64 * 1024, alignment: 8)
  }

  deinit {
    empty_amqp_pool(pool)
    pool.deinitialize(count: 1)
    pool.deallocate()
    scratch.deallocate()
  }

  // MARK: - From the broker

  /// Reads the payload of a method frame; nil when it is malformed or nothing a broker may send.
  func decode(_ payload: RawSpan) -> InboundMethod? {
    guard payload.byteCount >= 4 else { return nil }
    let id = payload.bigEndian(UInt32.self, at: 0)
    guard Self.expected(id, payload) else { return nil }
    return payload.withUnsafeBytes { bytes in
      let base = UnsafeMutableRawPointer(mutating: bytes.baseAddress!)
      let arguments = amqp_bytes_t(len: bytes.count - 4, bytes: base + 4)
      var decoded: UnsafeMutableRawPointer?
      defer { recycle_amqp_pool(pool) }
      guard amqp_decode_method(id, pool, arguments, &decoded) == 0, let decoded else { return nil }
      return Self.method(id, decoded, base, payload)
    }
  }

  private static func expected(_ id: UInt32, _ payload: RawSpan) -> Bool {
    switch id {
    case AMQP_CONNECTION_START_METHOD:
      let table = serverProperties(payload)
      return table.upperBound < payload.byteCount && FieldTable.isWellFormed(payload, range: table, depth: 0)
    case AMQP_CONNECTION_TUNE_METHOD, AMQP_CONNECTION_OPEN_OK_METHOD, AMQP_CONNECTION_CLOSE_METHOD,
      AMQP_CONNECTION_CLOSE_OK_METHOD, AMQP_CONNECTION_BLOCKED_METHOD, AMQP_CONNECTION_UNBLOCKED_METHOD,
      AMQP_CHANNEL_OPEN_OK_METHOD, AMQP_CHANNEL_FLOW_METHOD, AMQP_CHANNEL_CLOSE_METHOD, AMQP_CHANNEL_CLOSE_OK_METHOD,
      AMQP_EXCHANGE_DECLARE_OK_METHOD, AMQP_QUEUE_DECLARE_OK_METHOD, AMQP_QUEUE_BIND_OK_METHOD, AMQP_BASIC_QOS_OK_METHOD,
      AMQP_BASIC_CONSUME_OK_METHOD, AMQP_BASIC_CANCEL_METHOD, AMQP_BASIC_CANCEL_OK_METHOD, AMQP_BASIC_DELIVER_METHOD,
      AMQP_BASIC_RETURN_METHOD, AMQP_BASIC_ACK_METHOD, AMQP_BASIC_NACK_METHOD, AMQP_CONFIRM_SELECT_OK_METHOD,
      AMQP_TX_SELECT_OK_METHOD, AMQP_TX_COMMIT_OK_METHOD:
      return true
    default: return false
    }
  }

  /// Where the entries lie that a broker introduces itself with; at the payload's end where there are none.
  private static func serverProperties(_ payload: RawSpan) -> Range<Int> {
    var cursor = WireCursor(4..<payload.byteCount)
    cursor.skip(2)
    return cursor.longString(in: payload)
  }

  private static func method(
    _ id: UInt32, _ decoded: UnsafeMutableRawPointer, _ base: UnsafeMutableRawPointer, _ payload: RawSpan
  )
    -> InboundMethod?
  {
    func fields<T>(_ type: T.Type) -> T { decoded.load(as: T.self) }
    func range(_ bytes: amqp_bytes_t) -> Range<Int> {
      guard let start = bytes.bytes, bytes.len > 0 else { return 0..<0 }
      return (start - base)..<(start - base) + bytes.len
    }
    switch id {
    case AMQP_BASIC_DELIVER_METHOD:
      let m = fields(amqp_basic_deliver_t.self)
      return .deliver(
        consumerTag: range(m.consumer_tag), tag: m.delivery_tag, redelivered: m.redelivered != 0,
        exchange: range(m.exchange), routingKey: range(m.routing_key))
    case AMQP_BASIC_ACK_METHOD:
      let m = fields(amqp_basic_ack_t.self)
      return .ack(tag: m.delivery_tag, multiple: m.multiple != 0)
    case AMQP_BASIC_NACK_METHOD:
      let m = fields(amqp_basic_nack_t.self)
      return .nack(tag: m.delivery_tag, multiple: m.multiple != 0)
    case AMQP_BASIC_RETURN_METHOD:
      let m = fields(amqp_basic_return_t.self)
      return .returned(code: m.reply_code, exchange: range(m.exchange), routingKey: range(m.routing_key))
    case AMQP_BASIC_QOS_OK_METHOD: return .qosOK
    case AMQP_BASIC_CONSUME_OK_METHOD:
      return .consumeOK(consumerTag: range(fields(amqp_basic_consume_ok_t.self).consumer_tag))
    case AMQP_BASIC_CANCEL_METHOD:
      let m = fields(amqp_basic_cancel_t.self)
      return .cancel(consumerTag: range(m.consumer_tag), nowait: m.nowait != 0)
    case AMQP_BASIC_CANCEL_OK_METHOD:
      return .cancelOK(consumerTag: range(fields(amqp_basic_cancel_ok_t.self).consumer_tag))
    case AMQP_CONFIRM_SELECT_OK_METHOD: return .selectOK
    case AMQP_TX_SELECT_OK_METHOD: return .transactionOK
    case AMQP_TX_COMMIT_OK_METHOD: return .commitOK
    case AMQP_EXCHANGE_DECLARE_OK_METHOD: return .exchangeDeclareOK
    case AMQP_QUEUE_DECLARE_OK_METHOD:
      let m = fields(amqp_queue_declare_ok_t.self)
      return .queueDeclareOK(messages: m.message_count, consumers: m.consumer_count)
    case AMQP_QUEUE_BIND_OK_METHOD: return .queueBindOK
    case AMQP_CHANNEL_OPEN_OK_METHOD: return .channelOpenOK
    case AMQP_CHANNEL_FLOW_METHOD: return .channelFlow(active: fields(amqp_channel_flow_t.self).active != 0)
    case AMQP_CHANNEL_CLOSE_METHOD:
      let m = fields(amqp_channel_close_t.self)
      return .channelClose(code: m.reply_code, text: range(m.reply_text))
    case AMQP_CHANNEL_CLOSE_OK_METHOD: return .channelCloseOK
    case AMQP_CONNECTION_START_METHOD:
      let mechanisms = range(fields(amqp_connection_start_t.self).mechanisms)
      return .start(serverProperties: Self.serverProperties(payload), mechanisms: mechanisms)
    case AMQP_CONNECTION_TUNE_METHOD:
      let m = fields(amqp_connection_tune_t.self)
      return .tune(channelMax: m.channel_max, frameMax: m.frame_max, heartbeat: m.heartbeat)
    case AMQP_CONNECTION_OPEN_OK_METHOD: return .openOK
    case AMQP_CONNECTION_CLOSE_METHOD:
      let m = fields(amqp_connection_close_t.self)
      return .close(code: m.reply_code, text: range(m.reply_text))
    case AMQP_CONNECTION_CLOSE_OK_METHOD: return .closeOK
    case AMQP_CONNECTION_BLOCKED_METHOD: return .blocked(reason: range(fields(amqp_connection_blocked_t.self).reason))
    case AMQP_CONNECTION_UNBLOCKED_METHOD: return .unblocked
    default: return nil
    }
  }

  // MARK: - To the broker

  /// Appends a whole method frame.
  func append(_ method: OutboundMethod, channel: UInt16, to output: inout [UInt8]) {
    switch method {
    case .startOK(let clientProperties, let mechanism, let response):
      let m = amqp_connection_start_ok_t(
        client_properties: table(clientProperties), mechanism: bytes(mechanism), response: bytes(response),
        locale: bytes(Array("en_US".utf8)))
      append(AMQP_CONNECTION_START_OK_METHOD, m, channel, &output)
    case .tuneOK(let channelMax, let frameMax, let heartbeat):
      let m = amqp_connection_tune_ok_t(channel_max: channelMax, frame_max: frameMax, heartbeat: heartbeat)
      append(AMQP_CONNECTION_TUNE_OK_METHOD, m, channel, &output)
    case .open(let virtualHost):
      let m = amqp_connection_open_t(virtual_host: bytes(virtualHost), capabilities: amqp_bytes_t(), insist: 0)
      append(AMQP_CONNECTION_OPEN_METHOD, m, channel, &output)
    case .close(let code, let text):
      let m = amqp_connection_close_t(reply_code: code, reply_text: bytes(text), class_id: 0, method_id: 0)
      append(AMQP_CONNECTION_CLOSE_METHOD, m, channel, &output)
    case .closeOK: append(AMQP_CONNECTION_CLOSE_OK_METHOD, amqp_connection_close_ok_t(), channel, &output)
    case .channelOpen: append(AMQP_CHANNEL_OPEN_METHOD, amqp_channel_open_t(), channel, &output)
    case .channelFlowOK(let active):
      append(AMQP_CHANNEL_FLOW_OK_METHOD, amqp_channel_flow_ok_t(active: active ? 1 : 0), channel, &output)
    case .channelClose:
      let m = amqp_channel_close_t(reply_code: 200, reply_text: amqp_bytes_t(), class_id: 0, method_id: 0)
      append(AMQP_CHANNEL_CLOSE_METHOD, m, channel, &output)
    case .channelCloseOK: append(AMQP_CHANNEL_CLOSE_OK_METHOD, amqp_channel_close_ok_t(), channel, &output)
    case .exchangeDeclare(let name, let type, let arguments):
      var m = amqp_exchange_declare_t()
      m.exchange = bytes(name)
      m.type = bytes(type)
      m.durable = 1
      m.arguments = table(arguments)
      append(AMQP_EXCHANGE_DECLARE_METHOD, m, channel, &output)
    case .exchangeInspect(let name):
      var m = amqp_exchange_declare_t()
      m.exchange = bytes(name)
      m.type = bytes(Array("direct".utf8))
      m.passive = 1
      append(AMQP_EXCHANGE_DECLARE_METHOD, m, channel, &output)
    case .queueDeclare(let name, let passive, let arguments):
      var m = amqp_queue_declare_t()
      m.queue = bytes(name)
      m.passive = passive ? 1 : 0
      m.durable = 1
      m.arguments = table(arguments)
      append(AMQP_QUEUE_DECLARE_METHOD, m, channel, &output)
    case .ownQueueDeclare(let name):
      var m = amqp_queue_declare_t()
      m.queue = bytes(name)
      m.exclusive = 1
      m.auto_delete = 1
      append(AMQP_QUEUE_DECLARE_METHOD, m, channel, &output)
    case .queueBind(let queue, let exchange, let routingKey, let arguments):
      var m = amqp_queue_bind_t()
      m.queue = bytes(queue)
      m.exchange = bytes(exchange)
      m.routing_key = bytes(routingKey)
      m.arguments = table(arguments)
      append(AMQP_QUEUE_BIND_METHOD, m, channel, &output)
    case .qos(let prefetch):
      append(AMQP_BASIC_QOS_METHOD, amqp_basic_qos_t(prefetch_size: 0, prefetch_count: prefetch, global: 0), channel, &output)
    case .consume(let queue, let consumerTag, let arguments):
      var m = amqp_basic_consume_t()
      m.queue = bytes(queue)
      m.consumer_tag = bytes(consumerTag)
      m.arguments = table(arguments)
      append(AMQP_BASIC_CONSUME_METHOD, m, channel, &output)
    case .listen(let queue, let consumerTag):
      var m = amqp_basic_consume_t()
      m.queue = bytes(queue)
      m.consumer_tag = bytes(consumerTag)
      m.no_ack = 1
      append(AMQP_BASIC_CONSUME_METHOD, m, channel, &output)
    case .cancel(let consumerTag):
      append(AMQP_BASIC_CANCEL_METHOD, amqp_basic_cancel_t(consumer_tag: bytes(consumerTag), nowait: 0), channel, &output)
    case .cancelOK(let consumerTag):
      append(AMQP_BASIC_CANCEL_OK_METHOD, amqp_basic_cancel_ok_t(consumer_tag: bytes(consumerTag)), channel, &output)
    case .ack(let tag, let multiple):
      append(AMQP_BASIC_ACK_METHOD, amqp_basic_ack_t(delivery_tag: tag, multiple: multiple ? 1 : 0), channel, &output)
    case .reject(let tag, let requeue):
      append(AMQP_BASIC_REJECT_METHOD, amqp_basic_reject_t(delivery_tag: tag, requeue: requeue ? 1 : 0), channel, &output)
    case .select: append(AMQP_CONFIRM_SELECT_METHOD, amqp_confirm_select_t(nowait: 0), channel, &output)
    case .transaction: append(AMQP_TX_SELECT_METHOD, amqp_tx_select_t(), channel, &output)
    case .commit: append(AMQP_TX_COMMIT_METHOD, amqp_tx_commit_t(), channel, &output)
    }
    recycle_amqp_pool(pool)
  }

  /// Appends the method frame of a mandatory publish; the names have at most 255 bytes.
  func appendPublish(
    exchange: [UInt8], routingKey: [UInt8], channel: UInt16, to output: inout [UInt8]
  ) {
    exchange.withUnsafeBytes { exchange in
      routingKey.withUnsafeBytes { routingKey in
        let m = amqp_basic_publish_t(
          ticket: 0, exchange: Self.borrowed(exchange), routing_key: Self.borrowed(routingKey), mandatory: 1, immediate: 0)
        append(AMQP_BASIC_PUBLISH_METHOD, m, channel, &output)
      }
    }
  }

  private func append<T: BitwiseCopyable>(
    _ id: UInt32, _ method: T, _ channel: UInt16, _ output: inout [UInt8]
  ) {
    var method = method
    let room = amqp_bytes_t(len: scratch.count - 12, bytes: scratch.baseAddress! + 11)
    let count = withUnsafeMutablePointer(to: &method) { amqp_encode_method(id, $0, room) }
    precondition(count >= 0, "a method of our own exceeds what AMQP can carry")
    scratch.storeBytes(of: 1, toByteOffset: 0, as: UInt8.self)
    scratch.storeBytes(of: channel.bigEndian, toByteOffset: 1, as: UInt16.self)
    scratch.storeBytes(of: UInt32(count + 4).bigEndian, toByteOffset: 3, as: UInt32.self)
    scratch.storeBytes(of: id.bigEndian, toByteOffset: 7, as: UInt32.self)
    scratch.storeBytes(of: Frame.end, toByteOffset: 11 + Int(count), as: UInt8.self)
    output.append(contentsOf: scratch[..<(12 + Int(count))])
  }

  private static func borrowed(_ bytes: UnsafeRawBufferPointer) -> amqp_bytes_t {
    amqp_bytes_t(len: bytes.count, bytes: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }

  /// Copies into the pool; gone with the next recycling.
  private func bytes(_ bytes: [UInt8]) -> amqp_bytes_t {
    var copy = amqp_bytes_t()
    guard !bytes.isEmpty else { return copy }
    amqp_pool_alloc_bytes(pool, bytes.count, &copy)
    copy.bytes.copyMemory(from: bytes, byteCount: bytes.count)
    return copy
  }

  /// Our own tables only: flat and well-formed.
  private func table(_ table: FieldTable) -> amqp_table_t {
    var wire: [UInt8] = []
    wire.appendLongString(table.encoded)
    var decoded = amqp_table_t()
    var offset = 0
    precondition(amqp_decode_table(bytes(wire), pool, &decoded, &offset) == 0, "a table of our own is malformed")
    return decoded
  }
}
