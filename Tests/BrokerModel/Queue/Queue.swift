import Wire

/// A queue that behaves like RabbitMQ's quorum queues (rabbit_fifo): returned messages are delivered first, consumers with
/// credit and the highest priority take turns, and messages expire only at the head. A classic queue differs in its handling of returns.
final class Queue {
  let name: String
  let declaration: QueueDeclaration
  let arguments: QueueArguments
  /// The connection of an exclusive queue, which is deleted with it.
  let owner: Int?
  /// Messages that were never delivered, the oldest first.
  private(set) var fresh = Ring<QueueEntry>()
  /// Returned messages, which are delivered first.
  private(set) var returns = Ring<QueueEntry>()
  private(set) var consumers: [QueueConsumer] = []
  /// Consumers with credit, the next one first: by priority, then by turn.
  private var service: [QueueConsumer] = []
  /// Dead letters for at-least-once dead-lettering.
  var deadLetters = DeadLetterOutlet()
  private var arrivals: UInt64 = 0
  /// For each publisher, whether it last heard that the queue is full.
  private var isToldFull: [Int: Bool] = [:]
  /// Time of the next scheduled check of the head.
  var armedExpiry = MonotonicTime.distantFuture
  /// True if the queue is in the broker's list of queues to run.
  var isTouched = false
  var isDeleted = false
  /// The queue's publisher number at its dead-letter queues.
  let publisher: Int

  init(name: String, declaration: QueueDeclaration, arguments: QueueArguments, owner: Int?, publisher: Int) {
    self.name = name
    self.publisher = publisher
    self.declaration = declaration
    self.arguments = arguments
    self.owner = owner
  }

  var ready: Int { fresh.count + returns.count }
  var unacknowledged: Int { consumers.reduce(0) { $0 + $1.inHand } }
  var activeConsumers: Int { consumers.reduce(0) { $0 + ($1.isCancelled ? 0 : 1) } }
  var entries: [QueueEntry] { Array(returns) + Array(fresh) }

  var headExpiry: MonotonicTime { (returns.first ?? fresh.first)?.expiry ?? .distantFuture }

  // MARK: - In

  /// True if the queue accepts a publisher's message. RabbitMQ reports a queue as full above its limit, and as not full at four
  /// fifths of it.
  ///
  /// - Parameter limit: most messages, whatever the arguments.
  func takes(from publisher: Int, limit bound: Int) -> Bool {
    guard ready < bound else { return false }
    guard arguments.rejectsPublish, let limit = arguments.maximumLength else { return true }
    if isToldFull[publisher] == nil { isToldFull[publisher] = Int64(ready + deadLetters.count) > limit }
    return isToldFull[publisher] == false
  }

  func publisherEnded(_ publisher: Int) { isToldFull[publisher] = nil }

  func append(_ message: Message, at now: MonotonicTime) {
    arrivals += 1
    fresh.append(QueueEntry(message: message, arrival: arrivals, expiry: expiry(of: message, at: now)))
    if service.isEmpty { noteLength() }
  }

  /// A TTL of 0 leaves a moment in which a consumer may get the message.
  private func expiry(of message: Message, at now: MonotonicTime) -> MonotonicTime {
    let own = message.properties.expiration.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    guard let ttl = [own, arguments.messageTTL].compactMap(\.self).min() else { return .distantFuture }
    return now.advanced(bySeconds: Double(max(1, ttl)) / 1000)
  }

  /// Call this when the number of ready messages has changed.
  func noteLength() {
    guard arguments.rejectsPublish, let limit = arguments.maximumLength else { return }
    let length = Int64(ready + deadLetters.count)
    if length > limit {
      for publisher in isToldFull.keys { isToldFull[publisher] = true }
    } else if length <= limit - limit / 5 - (limit % 5 == 0 ? 0 : 1) {
      for publisher in isToldFull.keys { isToldFull[publisher] = false }
    }
  }

  // MARK: - Out

  func takeExpired(at now: MonotonicTime) -> QueueEntry? { headExpiry <= now ? takeHead() : nil }

  /// Removes the head if the queue is over its limit and drops from the head.
  func takeOverflow() -> QueueEntry? {
    guard !arguments.rejectsPublish, let limit = arguments.maximumLength, Int64(ready) > limit else { return nil }
    return takeHead()
  }

  /// The next delivery, if there is a message and a consumer with credit. The caller must deliver it.
  func next() -> (entry: QueueEntry, consumer: QueueConsumer)? {
    while let consumer = service.first {
      guard consumer.hasRoom, !consumer.isWaiting else {
        service.removeFirst()
        continue
      }
      guard let entry = takeHead() else { return nil }
      service.removeFirst()
      consumer.credit -= 1
      offer(consumer)
      return (entry, consumer)
    }
    return nil
  }

  func takeHead() -> QueueEntry? { returns.popFirst() ?? fresh.popFirst() }

  private func offer(_ consumer: QueueConsumer) {
    guard consumer.hasRoom, !consumer.isWaiting, !service.contains(where: { $0 === consumer }) else { return }
    let place = service.firstIndex { $0.priority < consumer.priority } ?? service.endIndex
    service.insert(consumer, at: place)
  }

  // MARK: - Consumers

  func add(_ consumer: QueueConsumer) {
    consumer.isWaiting = arguments.isSingleActive && consumers.contains { !$0.isCancelled && !$0.isWaiting }
    consumers.append(consumer)
    offer(consumer)
  }

  /// Adds a consumer that holds a message and gets no others.
  func addHolder(_ consumer: QueueConsumer) {
    consumer.isCancelled = true
    consumers.append(consumer)
  }

  /// Ends the deliveries. The consumer keeps unsettled messages.
  func cancel(_ consumer: QueueConsumer) {
    consumer.isCancelled = true
    service.removeAll { $0 === consumer }
    if consumer.inHand == 0 { consumers.removeAll { $0 === consumer } }
    activateNext()
  }

  /// Removes the consumer. Returns its unsettled messages in order of delivery.
  func remove(_ consumer: QueueConsumer) -> [QueueEntry] {
    let held = consumer.takeAll()
    consumer.isCancelled = true
    service.removeAll { $0 === consumer }
    consumers.removeAll { $0 === consumer }
    activateNext()
    return held
  }

  /// Takes back all messages of a consumer. The consumer stays and regains the credit.
  func takeBack(from consumer: QueueConsumer) -> [QueueEntry] {
    let held = consumer.takeAll()
    if consumer.isCancelled {
      consumers.removeAll { $0 === consumer }
    } else {
      consumer.credit += held.count
      offer(consumer)
    }
    return held
  }

  private func activateNext() {
    guard arguments.isSingleActive, !consumers.contains(where: { !$0.isCancelled && !$0.isWaiting }),
      let next = consumers.first(where: { !$0.isCancelled })
    else { return }
    next.isWaiting = false
    offer(next)
  }

  // MARK: - Settling

  /// Removes deliveries, given in ascending order, from a consumer.
  func settle(_ deliveries: [UInt64], of consumer: QueueConsumer) -> [QueueEntry] {
    let settled = consumer.take(deliveries)
    if consumer.isCancelled {
      if consumer.inHand == 0 { consumers.removeAll { $0 === consumer } }
    } else {
      consumer.credit += settled.count
      offer(consumer)
    }
    return settled
  }

  /// Puts returned messages back. Returns those that exceeded the delivery limit and leave the queue.
  func giveBack(_ entries: [QueueEntry], isEndOfConsumer: Bool) -> [QueueEntry] {
    guard arguments.kind == .quorum else {
      for var entry in entries {
        entry.returns += 1
        fresh.insert(entry, before: { $0.arrival > entry.arrival })
      }
      return []
    }
    var dead: [QueueEntry] = []
    for var entry in entries {
      entry.returns += 1
      if let limit = arguments.deliveryLimit, Int64(entry.returns) > limit {
        dead.append(entry)
      } else if arguments.deliveryLimit == nil, !isEndOfConsumer {
        // Without a limit, RabbitMQ appends returned messages at the end of its log.
        arrivals += 1
        entry.arrival = arrivals
        fresh.append(entry)
      } else {
        returns.append(entry)
      }
    }
    return dead
  }

  /// Removes ready messages. Unacknowledged ones stay.
  func removeReady(where isRemoved: (QueueEntry) -> Bool) -> [QueueEntry] {
    let removed = returns.filter(isRemoved) + fresh.filter(isRemoved)
    returns.removeAll(where: isRemoved)
    fresh.removeAll(where: isRemoved)
    return removed
  }
}

struct QueueEntry {
  var message: Message
  /// Number of the message among all that entered the queue.
  var arrival: UInt64
  var expiry: MonotonicTime
  /// Number of returns: RabbitMQ's delivery count.
  var returns = 0
}

extension QueueEntry {
  /// The message for a consumer, with the delivery count if it was returned.
  func asDelivered(by queue: Queue) -> Message {
    guard returns > 0, queue.arguments.kind == .quorum else { return message }
    var properties = message.properties
    properties.headers = properties.headers.setting("x-delivery-count", .integer(Int64(returns)))
    return Message(message, exchange: message.exchange, routingKey: message.routingKey, properties: properties)
  }
}
