import Wire

/// What an owner may look at and do from outside the protocol, as an operator does with rabbitmqctl.
extension VirtualBroker {
  public struct Depth: Equatable, Sendable {
    public var ready: Int
    public var unacknowledged: Int
    /// Dead letters that no queue has taken yet. RabbitMQ counts them nowhere.
    public var deadLetters: Int
    public var consumers: Int

    /// Nothing is in the queue, in a client's hands, or on its way from it.
    public var isEmpty: Bool { ready + unacknowledged + deadLetters == 0 }

    public init(ready: Int = 0, unacknowledged: Int = 0, deadLetters: Int = 0, consumers: Int = 0) {
      self.ready = ready
      self.unacknowledged = unacknowledged
      self.deadLetters = deadLetters
      self.consumers = consumers
    }
  }

  public var queueNames: [String] { queues.keys.sorted() }

  /// Nil when there is no such queue.
  public func depth(of queue: String) -> Depth? {
    queues[queue].map {
      Depth(
        ready: $0.ready, unacknowledged: $0.unacknowledged, deadLetters: $0.deadLetters.count, consumers: $0.activeConsumers)
    }
  }

  /// The ready messages in the order in which they will be delivered.
  public func messages(in queue: String) -> [Message] { queues[queue]?.entries.map(\.message) ?? [] }

  /// Nothing will happen here by itself: no message is in a client's hands, waits for its time or is on its way, no confirm is owed.
  public var isQuiet: Bool {
    unconfirmed.isEmpty
      && queues.values.allSatisfy { $0.unacknowledged == 0 && $0.deadLetters.count == 0 && $0.headExpiry == .distantFuture }
  }

  public func deleteQueue(_ name: String, at now: MonotonicTime) {
    perform(at: now) { [self] now in
      if let queue = queues[name] { _ = delete(queue, at: now) }
    }
  }

  public func purgeQueue(_ name: String, at now: MonotonicTime) {
    perform(at: now) { [self] now in
      if let queue = queues[name] { _ = purge(queue, at: now) }
    }
  }
}
