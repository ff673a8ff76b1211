import AMQP
import Wire

/// A message that follows from a request. The request is acknowledged only after this message is confirmed.
package final class Publication {
  package enum Kind {
    case feedback, deadLetter, result, receipt, page
    /// An operation of an operator. Nobody may listen for it; the registry has it too.
    case audit
    /// Back to a lane: by the ladder, by the quarantine, or at once.
    case retry
    case hold
    /// To the producer's `reply_to`. If nobody listens there any more, the reply is dropped.
    case reply
  }

  package enum Owner {
    /// Index of the request in the shard's table.
    case request(Int)
    /// The number of a change, of acknowledgements or of a record of the registry.
    case item(Int, ItemOwner)

    package static func item(_ number: Int, of owner: any ConsequenceOwner) -> Self { .item(number, ItemOwner(owner: owner)) }
  }

  package var kind: Kind
  package var exchange: [UInt8]
  package var routingKey: [UInt8]
  package var properties: BasicProperties
  package var body: [UInt8]
  package var owner: Owner
  /// The place of one recipient that the body should name instead of all. Such a body is made on publish and not kept, because
  /// a list may fail for each of its thousand devices at once.
  package var naming: Int?
  var refusals = 0
  var queue = 0
  /// When it was last published.
  var publishedAt = MonotonicTime(nanoseconds: 0)
  /// True if it was unconfirmed when its channel or connection ended.
  var mayHaveArrived = false
  /// Bytes that the shard counts for it until it is confirmed.
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
  /// Bytes that it holds. The body of the request itself counts with the request.
  package var size: Int {
    let headers = Self.properties + properties.headers.encoded.count
    return switch kind {
    case .feedback, .result, .receipt, .reply, .audit: headers + body.count
    case .deadLetter, .retry, .hold, .page: headers
    }
  }

  private static let properties = 1_024
}

package protocol OutboxOwner: AnyObject {
  func body(of publication: Publication) -> [UInt8]
  /// The queue of a `reply_to` is missing. `publicationConfirmed` follows.
  func replyReachedNobody()
  func publicationConfirmed(_ publication: Publication)
  /// The backlog has fallen below the limit at which sending pauses.
  func outboxDrained()
}

/// The owner of publications that follow from something else than a request.
package protocol ConsequenceOwner: AnyObject {
  func publicationConfirmed(_ number: Int)
  /// The queue of a `reply_to` is missing. `publicationConfirmed` follows.
  func answerReachedNobody(_ number: Int)
}

extension ConsequenceOwner {
  package func answerReachedNobody(_ number: Int) {}
}

package struct ItemOwner {
  weak var owner: (any ConsequenceOwner)?
}
