import AMQP

/// The client methods that the model answers (AMQP 0-9-1 with RabbitMQ's extensions).
enum ClientMethod {
  case startOK(properties: FieldTable, mechanism: [UInt8], response: [UInt8])
  case tuneOK(channelMax: UInt16, frameMax: UInt32, heartbeat: UInt16)
  case open(virtualHost: [UInt8])
  case close, closeOK

  case channelOpen
  case channelFlow(active: Bool)
  case channelFlowOK
  case channelClose, channelCloseOK

  case exchangeDeclare(ExchangeDeclaration)
  case exchangeDelete(exchange: [UInt8], ifUnused: Bool, nowait: Bool)
  case exchangeBind(exchange: [UInt8], source: [UInt8], routingKey: [UInt8], nowait: Bool, arguments: FieldTable)
  case queueDeclare(QueueDeclaration)
  case queueBind(queue: [UInt8], exchange: [UInt8], routingKey: [UInt8], nowait: Bool, arguments: FieldTable)
  case queueUnbind(queue: [UInt8], exchange: [UInt8], routingKey: [UInt8], arguments: FieldTable)
  case queuePurge(queue: [UInt8], nowait: Bool)
  case queueDelete(queue: [UInt8], nowait: Bool)

  case qos(prefetch: UInt16, global: Bool)
  case consume(ConsumeRequest)
  case cancel(consumerTag: [UInt8], nowait: Bool)
  case cancelOK
  case publish(exchange: [UInt8], routingKey: [UInt8], mandatory: Bool)
  case get(queue: [UInt8], noAck: Bool)
  case ack(tag: UInt64, multiple: Bool)
  case reject(tag: UInt64, requeue: Bool)
  case nack(tag: UInt64, multiple: Bool, requeue: Bool)
  case select(nowait: Bool)
  case transaction, commit
  /// A method that the model doesn't support, possibly malformed.
  case other(classID: UInt16, methodID: UInt16)
}

struct ExchangeDeclaration {
  var name: [UInt8]
  var type: [UInt8]
  var passive: Bool
  var durable: Bool
  var autoDelete: Bool
  var `internal`: Bool
  var nowait: Bool
  var arguments: FieldTable
}

struct QueueDeclaration {
  var name: [UInt8]
  var passive: Bool
  var durable: Bool
  var exclusive: Bool
  var autoDelete: Bool
  var nowait: Bool
  var arguments: FieldTable
}

struct ConsumeRequest {
  var queue: [UInt8]
  var tag: [UInt8]
  var noAck: Bool
  var exclusive: Bool
  var nowait: Bool
  var arguments: FieldTable
}

extension ClientMethod {
  /// Nil if the payload of the method frame is malformed.
  init?(_ payload: ArraySlice<UInt8>) {
    var reader = ByteReader(payload)
    let classID = reader.uint16()
    let methodID = reader.uint16()
    guard let method = Self.read(classID, methodID, &reader), !reader.isBroken else { return nil }
    self = method
  }

  private static func read(_ classID: UInt16, _ methodID: UInt16, _ reader: inout ByteReader) -> ClientMethod? {
    switch (classID, methodID) {
    case (10, 11):
      guard let properties = reader.table() else { return nil }
      return .startOK(properties: properties, mechanism: reader.shortString(), response: reader.longString())
    case (10, 31): return .tuneOK(channelMax: reader.uint16(), frameMax: reader.uint32(), heartbeat: reader.uint16())
    case (10, 40): return .open(virtualHost: reader.shortString())
    case (10, 50): return .close
    case (10, 51): return .closeOK
    case (20, 10): return .channelOpen
    case (20, 20): return .channelFlow(active: reader.flags()[0])
    case (20, 21): return .channelFlowOK
    case (20, 40): return .channelClose
    case (20, 41): return .channelCloseOK
    case (40, 10): return exchangeDeclare(&reader)
    case (40, 20):
      reader.skip(2)
      let (name, flags) = (reader.shortString(), reader.flags())
      return .exchangeDelete(exchange: name, ifUnused: flags[0], nowait: flags[1])
    case (40, 30):
      return binding(&reader, hasFlags: true).map {
        .exchangeBind(exchange: $0, source: $1, routingKey: $2, nowait: $3, arguments: $4)
      }
    case (50, 10): return queueDeclare(&reader)
    case (50, 20):
      return binding(&reader, hasFlags: true).map {
        .queueBind(queue: $0, exchange: $1, routingKey: $2, nowait: $3, arguments: $4)
      }
    case (50, 50):
      return binding(&reader, hasFlags: false).map { queue, exchange, key, _, arguments in
        .queueUnbind(queue: queue, exchange: exchange, routingKey: key, arguments: arguments)
      }
    case (50, 30):
      reader.skip(2)
      return .queuePurge(queue: reader.shortString(), nowait: reader.flags()[0])
    case (50, 40):
      reader.skip(2)
      return .queueDelete(queue: reader.shortString(), nowait: reader.flags()[2])
    case (60, _): return basic(methodID, &reader)
    case (85, 10): return .select(nowait: reader.flags()[0])
    case (90, 10): return .transaction
    case (90, 20): return .commit
    default: return .other(classID: classID, methodID: methodID)
    }
  }

  private static func exchangeDeclare(_ reader: inout ByteReader) -> ClientMethod? {
    reader.skip(2)
    let (name, type, flags) = (reader.shortString(), reader.shortString(), reader.flags())
    guard let arguments = reader.table() else { return nil }
    return .exchangeDeclare(
      ExchangeDeclaration(
        name: name, type: type, passive: flags[0], durable: flags[1], autoDelete: flags[2], internal: flags[3],
        nowait: flags[4], arguments: arguments))
  }

  private static func queueDeclare(_ reader: inout ByteReader) -> ClientMethod? {
    reader.skip(2)
    let (name, flags) = (reader.shortString(), reader.flags())
    guard let arguments = reader.table() else { return nil }
    return .queueDeclare(
      QueueDeclaration(
        name: name, passive: flags[0], durable: flags[1], exclusive: flags[2], autoDelete: flags[3], nowait: flags[4],
        arguments: arguments))
  }

  /// The arguments of a method about a binding. Only `queue.unbind` has no flags.
  private static func binding(
    _ reader: inout ByteReader, hasFlags: Bool
  ) -> (destination: [UInt8], source: [UInt8], routingKey: [UInt8], nowait: Bool, arguments: FieldTable)? {
    reader.skip(2)
    let (destination, source, key) = (reader.shortString(), reader.shortString(), reader.shortString())
    let nowait = hasFlags && reader.flags()[0]
    return reader.table().map { (destination, source, key, nowait, $0) }
  }

  private static func basic(_ methodID: UInt16, _ reader: inout ByteReader) -> ClientMethod? {
    switch methodID {
    case 10:
      reader.skip(4)
      return .qos(prefetch: reader.uint16(), global: reader.flags()[0])
    case 20:
      reader.skip(2)
      let (queue, tag, flags) = (reader.shortString(), reader.shortString(), reader.flags())
      guard let arguments = reader.table() else { return nil }
      return .consume(
        ConsumeRequest(
          queue: queue, tag: tag, noAck: flags[1], exclusive: flags[2], nowait: flags[3], arguments: arguments))
    case 30: return .cancel(consumerTag: reader.shortString(), nowait: reader.flags()[0])
    case 31: return .cancelOK
    case 40:
      reader.skip(2)
      return .publish(exchange: reader.shortString(), routingKey: reader.shortString(), mandatory: reader.flags()[0])
    case 70:
      reader.skip(2)
      return .get(queue: reader.shortString(), noAck: reader.flags()[0])
    case 80: return .ack(tag: reader.uint64(), multiple: reader.flags()[0])
    case 90: return .reject(tag: reader.uint64(), requeue: reader.flags()[0])
    case 120:
      let (tag, flags) = (reader.uint64(), reader.flags())
      return .nack(tag: tag, multiple: flags[0], requeue: flags[1])
    default: return .other(classID: 60, methodID: methodID)
    }
  }
}
