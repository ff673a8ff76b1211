import AMQP

/// Distinguishes notes of workers from forged ones. A producer can forge headers, but not the exchange: the broker names it,
/// and its permissions decide who may publish to it.
package struct NoteReader {
  /// Carries pages, from workers and from operators who replay them.
  private let fanOut: [UInt8]
  /// Carries messages back from the retry ladder, and replayed dead letters.
  private let returns: [UInt8]
  private let retry: [UInt8]
  private let hold: [UInt8]

  package init(prefix: String) {
    let topology = Topology(prefix: prefix, ladder: [])
    fanOut = Array(topology.fanoutExchange.utf8)
    returns = Array(topology.returnExchange.utf8)
    retry = Array(topology.retryExchange.utf8)
    hold = Array(topology.holdExchange.utf8)
  }

  /// True if only workers, and operators who replay, publish to the queue through this exchange. Then the notes are trusted.
  /// - Parameter queue: nil for the registry's queue.
  package func areNotesOurs(_ exchange: [UInt8], _ queue: WorkQueue?) -> Bool {
    isReturned(exchange) || queue?.isFanOut == true && exchange == fanOut
  }

  /// On a message from a worker: names the user whose rights must still be checked.
  package static let producerHeader = "x-push-producer"

  /// The user whose rights must be checked before the message is processed: its publisher, as the broker verified it. Empty if
  /// the message names no user; nil if a worker has already checked the rights.
  package static func producer(of delivery: borrowing Delivery, areNotesOurs: Bool) -> [UInt8]? {
    areNotesOurs ? delivery.properties.headers.string(producerHeader) : delivery.properties.userID ?? []
  }

  package func producer(of delivery: borrowing Delivery) -> [UInt8]? {
    Self.producer(of: delivery, areNotesOurs: areNotesOurs(delivery.exchange, nil))
  }

  /// On a message from a worker: when a worker first saw the request. Only if the producer gave no publishing time.
  package static let firstSeenHeader = "x-push-first-seen"

  /// On a copy for the ladder or a hold queue: when the request was first put off, in unix milliseconds.
  package static let putOffHeader = "x-push-retry-since"

  /// Unix milliseconds; nil if no worker has noted it.
  package static func firstSeen(_ properties: borrowing BasicProperties) -> Int64? {
    properties.headers.integer(firstSeenHeader)
  }

  /// True if the message comes from the ladder, the quarantine or a hold queue, or was replayed.
  package func isReturned(_ exchange: [UInt8]) -> Bool { exchange == returns || exchange == retry || exchange == hold }
}
