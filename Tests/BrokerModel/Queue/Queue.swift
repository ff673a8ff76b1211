import Wire

/// A queue as RabbitMQ's quorum queues behave (rabbit_fifo): what came back goes out again before what never went out, deliveries
/// take turns among the consumers with room, messages expire at the head only. A classic queue differs in what a return does.
final class Queue {
  let name: String
  let declaration: QueueDeclaration
  let arguments: QueueArguments
  /// The connection that alone may use it, and with which it goes.
  let owner: Int?
  /// Never delivered, the oldest first.
  private(set) var fresh = Ring<QueueEntry>()
  /// Returned, to go out before all others.
  private(set) var returns = Ring<QueueEntry>()
  private(set) var consumers: [QueueConsumer] = []
  /// Consumers with room, the next one first.
  private var service: [QueueConsumer] = []
  /// Dead letters that must not be lost.
  var deadLetters = DeadLetterOutlet()
  private var arrivals: UInt64 = 0
  /// Publishers that have been told that it is full, and those that have not.
  private var isToldFull: [Int: Bool] = [:]
  /// When the broker is to look at the head next.
  var armedExpiry = MonotonicTime.distantFuture
  /// The broker is to look at it before it rests.
  var isTouched = false
  var isDeleted = false
  /// What it is to the queues that its dead letters go to.
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

  /// When the head expires.
  var headExpiry: MonotonicTime { (returns.first ?? fresh.first)?.expiry ?? .distantFuture }

  // MARK: - In

  /// Whether a publisher's message is taken. RabbitMQ tells its publishers that a queue is full once it holds more than its limit, and
  /// that it isn't any more at four fifths of it.
  ///
  /// - Parameter limit: messages that it holds at most, whatever its arguments say.
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

  /// A TTL of 0 leaves the message the moment in which a consumer may take it.
  private func expiry(of message: Message, at now: MonotonicTime) -> MonotonicTime {
    let own = message.properties.expiration.flatMap { Int64(String(decoding: $0, as: UTF8.self)) }
    guard let ttl = [own, arguments.messageTTL].compactMap(\.self).min() else { return .distantFuture }
    return now.advanced(bySeconds: Double(max(1, ttl)) / 1000)
  }

  /// To be called when the number of ready messages has changed.
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

  /// Takes the head when it has expired.
  func takeExpired(at now: MonotonicTime) -> QueueEntry? { headExpiry <= now ? takeHead() : nil }

  /// Takes the head when the queue holds more than its limit and drops from the head.
  func takeOverflow() -> QueueEntry? {
    guard !arguments.rejectsPublish, let limit = arguments.maximumLength, Int64(ready) > limit else { return nil }
    return takeHead()
  }

  /// The next delivery, if there is a message and a consumer with room; the consumer is to be handed it.
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
    service.append(consumer)
  }

  // MARK: - Consumers

  func add(_ consumer: QueueConsumer) {
    consumer.isWaiting = arguments.isSingleActive && consumers.contains { !$0.isCancelled && !$0.isWaiting }
    consumers.append(consumer)
    offer(consumer)
  }

  /// Somebody who holds a message and wants no more of them.
  func addHolder(_ consumer: QueueConsumer) {
    consumer.isCancelled = true
    consumers.append(consumer)
  }

  /// No more deliveries; what it holds stays its own until it is settled.
  func cancel(_ consumer: QueueConsumer) {
    consumer.isCancelled = true
    service.removeAll { $0 === consumer }
    if consumer.inHand == 0 { consumers.removeAll { $0 === consumer } }
    activateNext()
  }

  /// The consumer is gone. What it held, in the order of its deliveries.
  func remove(_ consumer: QueueConsumer) -> [QueueEntry] {
    let held = consumer.takeAll()
    consumer.isCancelled = true
    service.removeAll { $0 === consumer }
    consumers.removeAll { $0 === consumer }
    activateNext()
    return held
  }

  /// Takes everything out of a consumer's hands; the consumer stays, with the room that it had.
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

  /// Takes deliveries out of a consumer's hands, named in the order in which they were made.
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

  /// Puts back what a consumer had; the result is what has come back too often and leaves the queue.
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
        // Without a limit RabbitMQ writes what is returned to the end of its log.
        arrivals += 1
        entry.arrival = arrivals
        fresh.append(entry)
      } else {
        returns.append(entry)
      }
    }
    return dead
  }

  /// Removes ready messages; what consumers hold stays.
  func removeReady(where isRemoved: (QueueEntry) -> Bool) -> [QueueEntry] {
    let removed = returns.filter(isRemoved) + fresh.filter(isRemoved)
    returns.removeAll(where: isRemoved)
    fresh.removeAll(where: isRemoved)
    return removed
  }
}

/// A message in a queue.
struct QueueEntry {
  var message: Message
  /// Counts what came into the queue.
  var arrival: UInt64
  var expiry: MonotonicTime
  /// How often it was given back: RabbitMQ's delivery count.
  var returns = 0
}

extension QueueEntry {
  /// As a consumer gets it: what was given back says how often.
  func asDelivered(by queue: Queue) -> Message {
    guard returns > 0, queue.arguments.kind == .quorum else { return message }
    var properties = message.properties
    properties.headers = properties.headers.setting("x-delivery-count", .integer(Int64(returns)))
    return Message(message, exchange: message.exchange, routingKey: message.routingKey, properties: properties)
  }
}
