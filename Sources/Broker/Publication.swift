import AMQP

/// A message that follows from a request and must be confirmed before the request is acknowledged.
package struct Publication {
  package enum Kind {
    case feedback, deadLetter, result, receipt, page
    /// Back to a lane: by the ladder, the quarantine, or at once.
    case retry
    /// To the hold queue of an application.
    case hold
    /// To the producer's own `reply_to`: nobody may be there any more, and then nobody waits for it.
    case reply
  }

  package enum Owner {
    /// By its index in the shard's table.
    case request(Int)
    /// A change of the registry, by its number.
    case change(Int)
    /// A message of acknowledgements, by its number.
    case acknowledgement(Int)
    /// A device that hasn't registered for long, by its number.
    case staleDevice(Int64)
  }

  package var kind: Kind
  package var exchange: [UInt8]
  package var routingKey: [UInt8]
  package var properties: BasicProperties
  package var body: [UInt8]
  /// What it follows from.
  package var owner: Owner
  /// The device alone that the body is to name instead of all the request's, by its place among the recipients. Such a body is made
  /// when it is sent, and let go of: a list may fail for each of its thousand devices at once.
  package var naming: Int?
  /// How often the broker has refused it.
  var refusals = 0
  /// Of the outbox's queues, the one that it goes to.
  var queue = 0
  /// It was on its way when its channel or connection ended.
  var mayHaveArrived = false
  /// What the shard counts it as until it is confirmed, in bytes.
  package var weight = 0

  package init(
    kind: Kind, exchange: [UInt8], routingKey: [UInt8], properties: BasicProperties, body: [UInt8], owner: Owner,
    naming: Int? = nil
  ) {
    self.kind = kind
    self.exchange = exchange
    self.routingKey = routingKey
    self.properties = properties
    self.body = body
    self.owner = owner
    self.naming = naming
  }
}

extension Publication {
  /// What it holds, in bytes; a request's own body counts with the request.
  package var size: Int {
    let headers = Self.properties + properties.headers.encoded.count
    return switch kind {
    case .feedback, .result, .receipt, .reply: headers + body.count
    case .deadLetter, .retry, .hold, .page: headers
    }
  }

  /// About what properties take beside the headers.
  private static let properties = 1_024
}

/// Notified when a publication that follows from a request is confirmed.
package protocol OutboxOwner: AnyObject {
  /// What is to be sent of it.
  func body(of publication: Publication) -> [UInt8]
  /// The queue of a `reply_to` is gone; `publicationConfirmed` follows.
  func replyReachedNobody()
  func publicationConfirmed(_ publication: Publication)
  /// The backlog has fallen below the mark at which sending pauses.
  func outboxDrained()
}

/// Notified of what follows from changes of the registry, by their numbers.
package protocol ChangeConsequences: AnyObject {
  func consequenceConfirmed(_ number: Int)
  /// The queue of a `reply_to` is gone.
  func answerReachedNobody(_ number: Int)
}

/// Notified of what follows from messages of acknowledgements, by their numbers.
package protocol AcknowledgementConsequences: AnyObject {
  func publicationConfirmed(_ number: Int)
}

/// Notified of feedback about devices that haven't registered for long, by their numbers.
package protocol StaleConsequences: AnyObject {
  func fedBack(_ device: Int64)
}
