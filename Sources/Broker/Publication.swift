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
    case change(Int)
    case acknowledgement(Int)
    /// Number of a record in the registry: a device that hasn't registered for a long time, or an operation of an operator.
    case record(Int64, RecordOwner)
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

package protocol ChangeConsequences: AnyObject {
  func consequenceConfirmed(_ number: Int)
  /// The queue of a `reply_to` is missing.
  func answerReachedNobody(_ number: Int)
}

package protocol AcknowledgementConsequences: AnyObject {
  func publicationConfirmed(_ number: Int)
}

package protocol RecordConsequences: AnyObject {
  func published(_ record: Int64)
}

/// The owner of publications about the registry's records.
package struct RecordOwner {
  weak var consequences: (any RecordConsequences)?

  package init(_ consequences: any RecordConsequences) { self.consequences = consequences }
}
