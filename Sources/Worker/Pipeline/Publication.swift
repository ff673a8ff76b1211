import AMQP

/// A message that follows from a request and must be confirmed before the request is acknowledged.
struct Publication {
  enum Kind {
    case feedback, deadLetter, result, retry, page
    /// To the producer's own `reply_to`: nobody may be there any more, and then nobody waits for it.
    case reply
  }

  var kind: Kind
  var exchange: [UInt8]
  var routingKey: [UInt8]
  var properties: BasicProperties
  var body: [UInt8]
  /// Index of the request in the shard's table.
  var owner: Int
  /// How often the broker has refused it.
  var refusals = 0
  /// It was on its way when its channel or connection ended.
  var mayHaveArrived = false
}

/// Told when a publication is safe.
protocol OutboxOwner: AnyObject {
  /// The queue of a `reply_to` is gone; `publicationConfirmed` follows.
  func replyReachedNobody()
  func publicationConfirmed(_ kind: Publication.Kind, owner: Int)
  /// The backlog has fallen below the mark at which sending pauses.
  func outboxDrained()
}
