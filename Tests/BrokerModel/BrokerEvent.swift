/// The events of messages, for audits.
public enum BrokerEvent {
  /// Routed to these queues and accepted by them. Without queues, the message was dropped. `refused` follows if a queue refuses
  /// it.
  case published(Message, queues: [String], client: Client)
  /// The broker decided to nack. `isKept` is true if queues hold the message anyway.
  case refused(Message, isKept: Bool, client: Client)
  case confirmed(Message, client: Client)
  /// No queue was found and the publisher was notified.
  case returned(Message, client: Client)
  /// `returns`: how often the message had been returned to this queue.
  case delivered(Message, queue: String, returns: Int, client: Client)
  case acknowledged(Message, queue: String, client: Client)
  /// Returned by the client or by its end. `returns` includes this return.
  case requeued(Message, queue: String, returns: Int)
  /// Accepted by the dead-letter queues.
  case deadLettered(Message, from: String, because: DeathReason, to: [String])
  /// Lost: without a dead-letter exchange, in a cycle, by a purge or by a crash.
  case dropped(Message, queue: String, because: DropReason)
}

public struct Client: Hashable, Sendable {
  public var number: Int
  /// The client's `connection_name`; empty before its handshake.
  public var name: String
}

/// Why a message leaves its queue without acknowledgement.
public enum DeathReason: String, Sendable {
  case rejected
  case expired
  case maximumLength = "maxlen"
  case deliveryLimit = "delivery_limit"
}

public enum DropReason: Sendable, Equatable {
  /// There is no dead-letter exchange, or it leads to no queue and may lose messages.
  case noDeadLetters(DeathReason)
  /// The message would return to a queue in which it died before, without a rejection since.
  case cycle
  case purged
  case crash
}
