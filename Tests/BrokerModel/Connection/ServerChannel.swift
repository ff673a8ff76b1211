import AMQP
import Wire

/// One channel: publications with their confirms, consumers, and unacknowledged deliveries.
final class ServerChannel {
  let number: UInt16
  /// Number of the channel among those of all connections.
  let publisher: Int
  unowned let connection: ServerConnection
  var broker: VirtualBroker { connection.broker }
  let openedAt: MonotonicTime
  private(set) var state = State.open

  enum State {
    /// → `closing`, `ended`.
    case open
    /// `channel.close` is sent. Until the answer, RabbitMQ goes on delivering to consumers with credit. → `ended`.
    case closing
    /// All deliveries are returned. Final.
    case ended
  }

  private var prefetch: UInt16 = 0
  private(set) var consumers: [QueueConsumer] = []
  private var queues: [ObjectIdentifier: Queue] = [:]
  private var nextTag: UInt64 = 1
  private(set) var unacknowledged: [Unacknowledged] = []
  /// Settlements for the next commit; nil without a transaction.
  private var uncommitted: [(deliveries: [Unacknowledged], settlement: Settlement)]?
  var isTimeoutArmed = false

  private var answers = PublicationAnswers()
  private var content = ContentAssembly()

  struct Unacknowledged {
    var tag: UInt64
    var queue: Queue
    var consumer: QueueConsumer
    /// The delivery's number for its consumer.
    var delivery: UInt64
    var deliveredAt: MonotonicTime
  }

  init(number: UInt16, publisher: Int, connection: ServerConnection, openedAt: MonotonicTime) {
    self.number = number
    self.publisher = publisher
    self.connection = connection
    self.openedAt = openedAt
  }

  func send(_ method: ServerMethod) { connection.send(method, channel: number) }

  // MARK: - Methods

  func methodReceived(_ method: ClientMethod, at now: MonotonicTime) throws(Refusal) {
    guard state == .open else {
      switch method {
      case .channelCloseOK: connection.channelEnded(self, at: now)
      case .channelClose:
        send(.channelCloseOK)
        connection.channelEnded(self, at: now)
      default: break
      }
      return
    }
    guard !content.isUnderway else { throw .unexpectedFrame("expected content header, got method frame instead") }
    do {
      try perform(method, at: now)
    } catch {
      guard !error.closesConnection else { throw error }
      close(error, at: now)
    }
  }

  private func perform(_ method: ClientMethod, at now: MonotonicTime) throws(Refusal) {
    switch method {
    case .channelClose:
      send(.channelCloseOK)
      connection.channelEnded(self, at: now)
    case .channelFlow(let active): send(.channelFlowOK(active: active))
    case .channelFlowOK, .cancelOK: break
    case .exchangeDeclare(let declaration):
      try broker.declare(declaration)
      if !declaration.nowait { send(.exchangeDeclareOK) }
    case .exchangeDelete(let name, let ifUnused, let nowait):
      try broker.deleteExchange(name, ifUnused: ifUnused)
      if !nowait { send(.exchangeDeleteOK) }
    case .exchangeBind(let name, let source, let key, let nowait, let arguments):
      try broker.bindExchange(name, to: source, key, arguments)
      if !nowait { send(.exchangeBindOK) }
    case .queueDeclare(let declaration):
      let queue = try broker.declare(declaration, from: connection)
      guard !declaration.nowait else { break }
      send(.queueDeclareOK(queue: Array(queue.name.utf8), messages: queue.ready, consumers: queue.activeConsumers))
    case .queueBind(let queue, let exchange, let key, let nowait, let arguments):
      try broker.bind(queue, to: exchange, key, arguments, from: connection)
      if !nowait { send(.queueBindOK) }
    case .queueUnbind(let queue, let exchange, let key, let arguments):
      try broker.unbind(queue, from: exchange, key, arguments, connection)
      send(.queueUnbindOK)
    case .queuePurge(let name, let nowait):
      let count = broker.purge(try broker.queue(name, from: connection), at: now)
      if !nowait { send(.queuePurgeOK(messages: count)) }
    case .queueDelete(let name, let nowait):
      let count = broker.delete(try broker.queue(name, from: connection), at: now)
      if !nowait { send(.queueDeleteOK(messages: count)) }
    case .qos(let prefetch, let global):
      guard !global else { throw .notImplemented("queues of type quorum do not support global qos") }
      self.prefetch = prefetch
      send(.qosOK)
    case .consume(let request): try consume(request)
    case .cancel(let tag, let nowait):
      if let consumer = consumers.first(where: { $0.tag == tag }) {
        queues[ObjectIdentifier(consumer)]?.cancel(consumer)
        broker.touch(queues[ObjectIdentifier(consumer)])
        forget(consumer)
      }
      if !nowait { send(.cancelOK(consumerTag: tag)) }
    case .publish(let exchange, let key, let mandatory):
      content.begin(exchange: exchange, routingKey: key, mandatory: mandatory)
    case .get(let name, let noAck): try get(name, noAck: noAck, at: now)
    case .ack(let tag, let multiple): settle(try take(tag, multiple: multiple), .acknowledged, at: now)
    case .reject(let tag, let requeue): settle(try take(tag, multiple: false), requeue ? .requeued : .rejected, at: now)
    case .nack(let tag, let multiple, let requeue):
      settle(try take(tag, multiple: multiple), requeue ? .requeued : .rejected, at: now)
    case .select(let nowait):
      answers.isWanted = true
      if !nowait { send(.selectOK) }
    case .transaction:
      uncommitted = uncommitted ?? []
      send(.transactionOK)
    case .commit:
      guard let settled = uncommitted else { throw .preconditionFailed("channel is not transactional") }
      uncommitted = nil
      for (deliveries, settlement) in settled { settle(deliveries, settlement, at: now) }
      uncommitted = []
      send(.commitOK)
    case .other(let classID, let methodID): throw .notImplemented("method \(classID).\(methodID)")
    case .startOK, .tuneOK, .open, .close, .closeOK, .channelOpen, .channelCloseOK:
      throw .commandInvalid("unexpected method on a channel")
    }
  }

  // MARK: - Consuming

  /// On a quorum queue, a prefetch of 0 isn't unlimited.
  private static let defaultCredit = 2000

  private func consume(_ request: ConsumeRequest) throws(Refusal) {
    let queue = try broker.queue(request.queue, from: connection)
    var request = request
    if request.tag.isEmpty { request.tag = Array("amq.ctag-\(broker.nextName())".utf8) }
    guard !consumers.contains(where: { $0.tag == request.tag }) else {
      throw .notAllowed("attempt to reuse consumer tag '\(String(decoding: request.tag, as: UTF8.self))'")
    }
    let priority = try Self.priority(request, of: queue)
    let others = queue.consumers.filter { !$0.isCancelled }
    guard others.isEmpty || !(request.exclusive || others.contains(where: \.isExclusive)) else {
      throw .accessRefused("queue '\(queue.name)' in vhost '/' in exclusive use")
    }
    let consumer = QueueConsumer(
      channel: self, tag: request.tag, noAck: request.noAck, isExclusive: request.exclusive, priority: priority,
      credit: prefetch == 0 ? Self.defaultCredit : Int(prefetch))
    consumers.append(consumer)
    queues[ObjectIdentifier(consumer)] = queue
    if !request.nowait { send(.consumeOK(consumerTag: request.tag)) }
    queue.add(consumer)
    broker.touch(queue)
  }

  /// The consumer's priority; 0 without the argument.
  private static func priority(_ request: ConsumeRequest, of queue: Queue) throws(Refusal) -> Int64 {
    switch request.arguments["x-priority"] {
    case nil: return 0
    case .integer(let priority)?: return priority
    default: throw .preconditionFailed("invalid arg 'x-priority' for queue '\(queue.name)' in vhost '/'")
    }
  }

  private func forget(_ consumer: QueueConsumer) {
    consumers.removeAll { $0 === consumer }
    if !unacknowledged.contains(where: { $0.consumer === consumer }) { queues[ObjectIdentifier(consumer)] = nil }
  }

  /// The queue was deleted.
  func cancelled(_ consumer: QueueConsumer) {
    consumers.removeAll { $0 === consumer }
    queues[ObjectIdentifier(consumer)] = nil
    if state == .open, connection.wantsCancels { send(.cancel(consumerTag: consumer.tag)) }
  }

  func deliver(_ entry: QueueEntry, of queue: Queue, to consumer: QueueConsumer, at now: MonotonicTime) {
    let message = entry.asDelivered(by: queue)
    let tag = hold(entry, of: queue, consumer, at: now)
    send(.deliver(consumerTag: consumer.tag, tag: tag, redelivered: entry.returns > 0, message))
    connection.sendContent(of: message, channel: number)
    if consumer.noAck, let delivery = unacknowledged.popLast() { settle([delivery], .acknowledged, at: now) }
  }

  private func hold(_ entry: QueueEntry, of queue: Queue, _ consumer: QueueConsumer, at now: MonotonicTime) -> UInt64 {
    let delivery = consumer.hand(entry)
    unacknowledged.append(
      Unacknowledged(tag: nextTag, queue: queue, consumer: consumer, delivery: delivery, deliveredAt: now))
    nextTag += 1
    broker.watchTimeout(of: self)
    return nextTag - 1
  }

  /// Handles `basic.get` like a consumer that accepts one message.
  private func get(_ name: [UInt8], noAck: Bool, at now: MonotonicTime) throws(Refusal) {
    let queue = try broker.queue(name, from: connection)
    broker.expire(queue, at: now)
    guard let entry = queue.takeHead() else { return send(.getEmpty) }
    let consumer = QueueConsumer(channel: self, tag: [], noAck: noAck, isExclusive: false, priority: 0, credit: 0)
    let tag = hold(entry, of: queue, consumer, at: now)
    queue.addHolder(consumer)
    queues[ObjectIdentifier(consumer)] = queue
    let message = entry.asDelivered(by: queue)
    send(.getOK(tag: tag, redelivered: entry.returns > 0, message, left: queue.ready))
    connection.sendContent(of: message, channel: number)
    broker.note(.delivered(entry.message, queue: queue.name, returns: entry.returns, client: connection.client), at: now)
    if noAck, let delivery = unacknowledged.popLast() { settle([delivery], .acknowledged, at: now) }
  }

  // MARK: - Settling

  private enum Settlement { case acknowledged, requeued, rejected }

  private func take(_ tag: UInt64, multiple: Bool) throws(Refusal) -> [Unacknowledged] {
    if multiple, tag == 0 {
      defer { unacknowledged = [] }
      return unacknowledged
    }
    guard let index = index(of: tag) else { throw .preconditionFailed("unknown delivery tag \(tag)") }
    let taken = multiple ? 0...index : index...index
    defer { unacknowledged.removeSubrange(taken) }
    return Array(unacknowledged[taken])
  }

  private func index(of tag: UInt64) -> Int? {
    var (low, high) = (0, unacknowledged.count)
    while low < high {
      let middle = (low + high) / 2
      if unacknowledged[middle].tag < tag { low = middle + 1 } else { high = middle }
    }
    return low < unacknowledged.count && unacknowledged[low].tag == tag ? low : nil
  }

  private func settle(_ deliveries: [Unacknowledged], _ settlement: Settlement, at now: MonotonicTime) {
    guard uncommitted == nil else { return uncommitted!.append((deliveries, settlement)) }
    var order: [QueueConsumer] = []
    var groups: [ObjectIdentifier: (queue: Queue, deliveries: [UInt64])] = [:]
    for delivery in deliveries {
      let id = ObjectIdentifier(delivery.consumer)
      if groups[id] == nil { order.append(delivery.consumer) }
      groups[id, default: (delivery.queue, [])].deliveries.append(delivery.delivery)
    }
    for consumer in order {
      guard let (queue, deliveries) = groups[ObjectIdentifier(consumer)] else { continue }
      let settled = queue.settle(deliveries, of: consumer)
      guard !queue.isDeleted else { continue }
      switch settlement {
      case .acknowledged:
        for entry in settled {
          broker.note(.acknowledged(entry.message, queue: queue.name, client: connection.client), at: now)
        }
      case .requeued: broker.giveBack(settled, to: queue, isEndOfConsumer: false, at: now)
      case .rejected: broker.discard(settled, of: queue, because: .rejected, at: now)
      }
      broker.touch(queue)
    }
  }

  /// Closes the channel if its oldest delivery has timed out.
  func checkTimeout(at now: MonotonicTime) {
    guard state == .open, let oldest = unacknowledged.first else { return }
    let timeout = broker.settings.consumerTimeout
    guard now.seconds(since: oldest.deliveredAt) > timeout else { return broker.watchTimeout(of: self) }
    close(
      .preconditionFailed(
        "delivery acknowledgement on channel \(number) timed out. Timeout value used: \(Int(timeout * 1000)) ms. "
          + "This timeout value can be configured, see consumers doc guide to learn more"), at: now)
  }

  // MARK: - Publishing

  func contentReceived(_ frame: FrameBuffer.Received, at now: MonotonicTime) throws(Refusal) {
    guard state == .open,
      let publication = try content.add(frame.type, frame.payload, maximum: broker.settings.maximumMessage)
    else { return }
    do {
      try publish(publication, at: now)
    } catch {
      guard !error.closesConnection else { throw error }
      close(error, at: now)
    }
  }

  private func publish(_ publication: ContentAssembly.Publication, at now: MonotonicTime) throws(Refusal) {
    let properties = publication.properties
    if let user = properties.userID, user != Array(connection.user.utf8) {
      throw .preconditionFailed(
        "user_id property set to '\(String(decoding: user, as: UTF8.self))' but authenticated user was '\(connection.user)'")
    }
    if let expiration = properties.expiration, !Self.isExpiration(expiration) {
      throw .preconditionFailed("invalid expiration '\(String(decoding: expiration, as: UTF8.self))'")
    }
    let message = Message(
      number: broker.nextPublication(), exchange: publication.exchange, routingKey: publication.routingKey,
      properties: properties, encodedProperties: publication.encodedProperties, body: publication.body)
    try broker.publish(message, mandatory: publication.mandatory, sequence: answers.published(), from: self, at: now)
  }

  /// True for milliseconds up to ten years.
  private static func isExpiration(_ text: [UInt8]) -> Bool {
    guard !text.isEmpty, text.allSatisfy({ (48...57).contains($0) }) else { return false }
    return Int64(String(decoding: text, as: UTF8.self)).map { $0 <= 315_360_000_000 } ?? false
  }

  func sendReturn(_ message: Message) {
    send(.returned(message))
    connection.sendContent(of: message, channel: number)
  }

  // MARK: - Confirms

  /// The confirm is sent with the next output.
  func confirm(_ sequence: UInt64, isAck: Bool) {
    guard state == .open else { return }
    answers.settle(sequence, isAck: isAck)
    connection.announceOutput()
  }

  func flushConfirms() {
    guard state == .open else { return }
    for answer in answers.take() { send(answer) }
  }

  // MARK: - End

  /// Closes the channel because of a client's fault or on request.
  func close(_ refusal: Refusal, at now: MonotonicTime) {
    guard state == .open else { return }
    send(.channelClose(refusal))
    state = .closing
    content = ContentAssembly()
  }

  /// Returns the client's deliveries, consumer by consumer.
  func end(at now: MonotonicTime) {
    guard state != .ended else { return }
    state = .ended
    var touched: [Queue] = []
    var held: [(queue: Queue, consumer: QueueConsumer)] = consumers.compactMap { consumer in
      queues[ObjectIdentifier(consumer)].map { ($0, consumer) }
    }
    let uncommitted = (uncommitted ?? []).flatMap(\.deliveries)
    for delivery in unacknowledged + uncommitted where !held.contains(where: { $0.consumer === delivery.consumer }) {
      held.append((delivery.queue, delivery.consumer))
    }
    consumers = []
    unacknowledged = []
    queues = [:]
    for (queue, consumer) in held {
      broker.remove(consumer, of: queue, at: now)
      if !touched.contains(where: { $0 === queue }) { touched.append(queue) }
    }
    for queue in touched { broker.touch(queue) }
    broker.publisherEnded(publisher)
  }
}
