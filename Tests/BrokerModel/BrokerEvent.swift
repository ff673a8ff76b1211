/// What happens to messages, for whoever keeps books.
public enum BrokerEvent {
  /// Routed to these queues (none: returned, or dropped) and taken by them. A publication that a queue refuses is `refused`.
  case published(Message, queues: [String], client: Client)
  /// A nack was decided on; `isKept` when queues hold the message all the same.
  case refused(Message, isKept: Bool, client: Client)
  /// The confirm is on its way.
  case confirmed(Message, client: Client)
  /// No queue wanted it and the publisher was told so.
  case returned(Message, client: Client)
  /// `returns`: how often it had come back to this queue.
  case delivered(Message, queue: String, returns: Int, client: Client)
  case acknowledged(Message, queue: String, client: Client)
  /// Given back by the client or by its end; `returns` counts this one.
  case requeued(Message, queue: String, returns: Int)
  /// Taken by the queues that the dead letters go to.
  case deadLettered(Message, from: String, because: DeathReason, to: [String])
  /// Gone for good: without a dead-letter exchange, as a cycle, by a purge or by a crash.
  case dropped(Message, queue: String, because: DropReason)
}

/// A connection of a client.
public struct Client: Hashable, Sendable {
  /// Counts connections as they are accepted.
  public var number: Int
  /// What the client calls itself (`connection_name`); empty before its handshake.
  public var name: String
}

/// Why a message leaves its queue without being acknowledged.
public enum DeathReason: String, Sendable {
  case rejected
  case expired
  case maximumLength = "maxlen"
  case deliveryLimit = "delivery_limit"
}

public enum DropReason: Sendable, Equatable {
  /// No dead-letter exchange, or none that leads anywhere while it may lose messages.
  case noDeadLetters(DeathReason)
  /// It would return to a queue in which it has expired before, without a rejection on the way.
  case cycle
  case purged
  /// A crash before its publication was confirmed.
  case crash
}
