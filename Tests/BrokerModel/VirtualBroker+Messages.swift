import Wire

extension VirtualBroker {
  // MARK: - Publishing

  func publish(
    _ message: Message, mandatory: Bool, sequence: UInt64?, from channel: ServerChannel, at now: MonotonicTime
  ) throws(Refusal) {
    let client = channel.connection.client
    let targets = try route(message)
    guard !targets.isEmpty else {
      if mandatory { channel.sendReturn(message) }
      note(mandatory ? .returned(message, client: client) : .published(message, queues: [], client: client), at: now)
      if let sequence { channel.confirm(sequence, isAck: true) }
      return
    }
    let answer = sequence == nil ? .ack(after: 0) : confirmation(message, client)
    if case .nack(let delay, isKept: false) = answer {
      note(.refused(message, isKept: false, client: client), at: now)
      return answerLater(channel, sequence, isAck: false, message, client, after: delay, at: now)
    }
    let taking = targets.filter { $0.takes(from: channel.publisher, limit: settings.maximumQueueLength) }
    for queue in taking {
      queue.append(message, at: now)
      touch(queue)
    }
    if !taking.isEmpty { note(.published(message, queues: taking.map(\.name), client: client), at: now) }
    switch answer {
    case .ack(let delay) where taking.count == targets.count:
      if delay > 0 { unconfirmed.insert(message.number) }
      answerLater(channel, sequence, isAck: true, message, client, after: delay, at: now)
    case .ack(let delay), .nack(let delay, _):
      note(.refused(message, isKept: !taking.isEmpty, client: client), at: now)
      answerLater(channel, sequence, isAck: false, message, client, after: delay, at: now)
    }
    run(at: now)
  }

  private func route(_ message: Message) throws(Refusal) -> [Queue] {
    let name = String(decoding: message.exchange, as: UTF8.self)
    guard !name.isEmpty else { return queues[String(decoding: message.routingKey, as: UTF8.self)].map { [$0] } ?? [] }
    guard let exchange = exchanges[name] else { throw .notFound("no exchange '\(name)' in vhost '/'") }
    guard !exchange.internal else { throw .accessRefused("cannot publish to internal exchange '\(name)' in vhost '/'") }
    return targets(of: exchange, message)
  }

  /// The queues that a message reaches from an exchange, each once. An exchange that has no binding for the message passes it to
  /// its alternate exchange. Each exchange routes the message once (`route1` in rabbit_exchange).
  private func targets(of exchange: Exchange, _ message: Message) -> [Queue] {
    var found: [Queue] = []
    var reached = [exchange]
    var next = 0
    while next < reached.count {
      let exchange = reached[next]
      next += 1
      var destinations = exchange.route(message)
      if destinations.isEmpty, let alternate = exchange.alternate { destinations = [.exchange(alternate)] }
      for destination in destinations {
        switch destination {
        case .queue(let name):
          if let queue = queues[name], !found.contains(where: { $0 === queue }) { found.append(queue) }
        case .exchange(let name):
          if let other = exchanges[name], !reached.contains(where: { $0 === other }) { reached.append(other) }
        }
      }
    }
    return found
  }

  private func answerLater(
    _ channel: ServerChannel, _ sequence: UInt64?, isAck: Bool, _ message: Message, _ client: Client, after delay: Double,
    at now: MonotonicTime
  ) {
    guard let sequence else { return }
    if delay > 0 {
      let due = Due.confirm(channel, sequence: sequence, isAck: isAck, message, client)
      schedule(due, at: now.advanced(bySeconds: delay))
    } else {
      finishConfirm(channel, sequence, isAck: isAck, message, client, at: now)
    }
  }

  func finishConfirm(
    _ channel: ServerChannel, _ sequence: UInt64, isAck: Bool, _ message: Message, _ client: Client, at now: MonotonicTime
  ) {
    unconfirmed.remove(message.number)
    guard channel.state == .open else { return }
    if isAck { note(.confirmed(message, client: client), at: now) }
    channel.confirm(sequence, isAck: isAck)
  }

  // MARK: - Delivering

  func touch(_ queue: Queue?) {
    guard let queue, !queue.isTouched, !queue.isDeleted else { return }
    queue.isTouched = true
    touched.append(queue)
  }

  /// Runs until no queue has anything to do.
  func run(at now: MonotonicTime) {
    guard isRunning, !isFrozen else { return }
    while let queue = touched.popFirst() {
      queue.isTouched = false
      guard !queue.isDeleted else { continue }
      expire(queue, at: now)
      while let (entry, consumer) = queue.next() {
        note(
          .delivered(entry.message, queue: queue.name, returns: entry.returns, client: consumer.channel.connection.client),
          at: now)
        consumer.channel.deliver(entry, of: queue, to: consumer, at: now)
        expire(queue, at: now)
      }
      while let entry = queue.takeOverflow() { discard([entry], of: queue, because: .maximumLength, at: now) }
      forwardDeadLetters(of: queue, at: now)
      queue.noteLength()
      if queue.headExpiry < queue.armedExpiry {
        queue.armedExpiry = queue.headExpiry
        schedule(.expiry(queue), at: queue.headExpiry)
      }
    }
  }

  func expire(_ queue: Queue, at now: MonotonicTime) {
    while let entry = queue.takeExpired(at: now) { discard([entry], of: queue, because: .expired, at: now) }
  }

  // MARK: - Returning

  func giveBack(_ entries: [QueueEntry], to queue: Queue, isEndOfConsumer: Bool, at now: MonotonicTime) {
    for entry in entries { note(.requeued(entry.message, queue: queue.name, returns: entry.returns + 1), at: now) }
    discard(queue.giveBack(entries, isEndOfConsumer: isEndOfConsumer), of: queue, because: .deliveryLimit, at: now)
  }

  /// The consumer ended with its channel.
  func remove(_ consumer: QueueConsumer, of queue: Queue, at now: MonotonicTime) {
    let held = queue.remove(consumer)
    guard !queue.isDeleted else { return }
    giveBack(held, to: queue, isEndOfConsumer: true, at: now)
  }

  func publisherEnded(_ publisher: Int) { for queue in queues.values { queue.publisherEnded(publisher) } }

  /// A crash loses some of the messages that were not confirmed yet.
  func loseUnconfirmed(at now: MonotonicTime) {
    for queue in sortedQueues {
      queue.deadLetters.reset()
      queue.armedExpiry = .distantFuture
      guard queue.declaration.durable else {
        _ = delete(queue, at: now)
        continue
      }
      let lost = queue.removeReady { $0.returns == 0 && unconfirmed.contains($0.message.number) && !survivesCrash($0.message) }
      for entry in lost { note(.dropped(entry.message, queue: queue.name, because: .crash), at: now) }
    }
  }

  // MARK: - Dead letters

  func discard(_ entries: [QueueEntry], of queue: Queue, because reason: DeathReason, at now: MonotonicTime) {
    for entry in entries {
      if queue.arguments.losesNoDeadLetter, reason != .maximumLength {
        queue.deadLetters.waiting.append((entry, reason))
        touch(queue)
      } else {
        deadLetterOnce(entry, of: queue, because: reason, at: now)
      }
    }
  }

  /// At-most-once dead-lettering: without an accepting queue, the message is lost.
  private func deadLetterOnce(_ entry: QueueEntry, of queue: Queue, because reason: DeathReason, at now: MonotonicTime) {
    guard let name = queue.arguments.deadLetterExchange else {
      return note(.dropped(entry.message, queue: queue.name, because: .noDeadLetters(reason)), at: now)
    }
    let message = death(of: entry, in: queue, to: name, because: reason, at: now)
    let all = deadLetterTargets(message)
    let targets = all.filter {
      !Death.isCycle(message, to: $0.name, because: reason)
        && $0.takes(from: queue.publisher, limit: settings.maximumQueueLength)
    }
    guard !targets.isEmpty else {
      let isCycle = all.contains { Death.isCycle(message, to: $0.name, because: reason) }
      return note(
        .dropped(entry.message, queue: queue.name, because: isCycle ? .cycle : .noDeadLetters(reason)), at: now)
    }
    for target in targets {
      target.append(message, at: now)
      touch(target)
    }
    note(.deadLettered(message, from: queue.name, because: reason, to: targets.map(\.name)), at: now)
  }

  private func death(
    of entry: QueueEntry, in queue: Queue, to exchange: String, because reason: DeathReason, at now: MonotonicTime
  ) -> Message {
    let seconds = settings.epoch &+ UInt64(max(0, now.nanoseconds / 1_000_000_000))
    return Death.message(entry.message, from: queue, exchange: exchange, because: reason, at: seconds)
  }

  private func deadLetterTargets(_ message: Message) -> [Queue] {
    let name = String(decoding: message.exchange, as: UTF8.self)
    guard !name.isEmpty else { return queues[String(decoding: message.routingKey, as: UTF8.self)].map { [$0] } ?? [] }
    return exchanges[name].map { targets(of: $0, message) } ?? []
  }

  /// At-least-once dead-lettering: a limited number at a time, each until all target queues have accepted it. A message without
  /// a target, or with a cycle only, keeps its place.
  private func forwardDeadLetters(of queue: Queue, at now: MonotonicTime) {
    while queue.deadLetters.underway.count < settings.deadLetterPrefetch,
      let (entry, reason) = queue.deadLetters.waiting.popFirst()
    {
      let name = queue.arguments.deadLetterExchange ?? ""
      let message = death(of: entry, in: queue, to: name, because: reason, at: now)
      var dead = DeadLetterOutlet.Underway(original: entry, message: message, reason: reason)
      if !send(&dead, from: queue, at: now) { queue.deadLetters.underway.append(dead) }
    }
    armDeadLetters(of: queue, at: now)
  }

  private func armDeadLetters(of queue: Queue, at now: MonotonicTime) {
    guard !queue.deadLetters.underway.isEmpty, !queue.deadLetters.isRetryArmed else { return }
    queue.deadLetters.isRetryArmed = true
    schedule(.deadLetters(queue), at: now.advanced(bySeconds: settings.deadLetterPatience))
  }

  func retryDeadLetters(of queue: Queue, at now: MonotonicTime) {
    queue.deadLetters.isRetryArmed = false
    let all = queue.deadLetters.underway
    queue.deadLetters.underway = []
    for var dead in all {
      let isDue = dead.sentAt.map { $0.advanced(bySeconds: settings.deadLetterPatience) <= now } ?? true
      if !isDue || !send(&dead, from: queue, at: now) { queue.deadLetters.underway.append(dead) }
    }
    touch(queue)
    armDeadLetters(of: queue, at: now)
  }

  /// Sends a dead letter to the queues that haven't accepted it. Returns true when all have.
  private func send(_ dead: inout DeadLetterOutlet.Underway, from queue: Queue, at now: MonotonicTime) -> Bool {
    let targets = deadLetterTargets(dead.message).filter { !Death.isCycle(dead.message, to: $0.name, because: dead.reason) }
    if !targets.isEmpty { dead.sentAt = now }
    for target in targets where !dead.settled.contains(target.name) {
      guard target.takes(from: queue.publisher, limit: settings.maximumQueueLength) else { continue }
      target.append(dead.message, at: now)
      touch(target)
      dead.settled.append(target.name)
    }
    guard !dead.settled.isEmpty, targets.allSatisfy({ dead.settled.contains($0.name) }) else { return false }
    note(.deadLettered(dead.message, from: queue.name, because: dead.reason, to: dead.settled), at: now)
    return true
  }
}
