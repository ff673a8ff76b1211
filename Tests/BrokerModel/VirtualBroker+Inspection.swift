import Wire

/// Inspection and commands from outside the protocol, like rabbitmqctl.
extension VirtualBroker {
  public struct Depth: Equatable, Sendable {
    public var ready: Int
    public var unacknowledged: Int
    /// Dead letters that no queue has accepted yet. RabbitMQ doesn't count them.
    public var deadLetters: Int
    public var consumers: Int

    /// True if nothing is ready, unacknowledged or on its way as a dead letter.
    public var isEmpty: Bool { ready + unacknowledged + deadLetters == 0 }

    public init(ready: Int = 0, unacknowledged: Int = 0, deadLetters: Int = 0, consumers: Int = 0) {
      self.ready = ready
      self.unacknowledged = unacknowledged
      self.deadLetters = deadLetters
      self.consumers = consumers
    }
  }

  public var queueNames: [String] { queues.keys.sorted() }

  /// Nil if there is no such queue.
  public func depth(of queue: String) -> Depth? {
    queues[queue].map {
      Depth(
        ready: $0.ready, unacknowledged: $0.unacknowledged, deadLetters: $0.deadLetters.count, consumers: $0.activeConsumers)
    }
  }

  /// The ready messages in order of delivery.
  public func messages(in queue: String) -> [Message] { queues[queue]?.entries.map(\.message) ?? [] }

  /// True if nothing will happen by itself: no unacknowledged message, expiry, dead letter or confirm is pending.
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
