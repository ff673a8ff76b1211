import AMQP

/// Distinguishes the fleet's own notes from what a producer makes up. Headers can be forged, the exchange that a message came by can't: the
/// broker names it, and its permissions decide who may publish to it.
package struct NoteReader {
  /// Pages come by this one, from workers and from operators who replay them.
  private let fanOut: [UInt8]
  /// Whatever has been on the ladder comes back by this one, and dead letters that are replayed.
  private let returns: [UInt8]
  /// The quarantine is published to by this one.
  private let retry: [UInt8]
  /// Hold queues are published to by this one.
  private let hold: [UInt8]

  package init(prefix: String) {
    let topology = Topology(prefix: prefix, ladder: [])
    fanOut = Array(topology.fanoutExchange.utf8)
    returns = Array(topology.returnExchange.utf8)
    retry = Array(topology.retryExchange.utf8)
    hold = Array(topology.holdExchange.utf8)
  }

  /// Only workers, and operators who replay, publish what comes to the queue by this exchange: its notes count.
  /// - Parameter queue: nil for the registry's.
  package func areNotesOurs(_ exchange: [UInt8], _ queue: WorkQueue?) -> Bool {
    isReturned(exchange) || queue?.isFanOut == true && exchange == fanOut
  }

  /// Names, on what a worker has sent on, the user whose rights are still to be checked.
  package static let producerHeader = "x-push-producer"

  /// Whose rights are to be checked before anything follows from a message: the broker's user that published it, as the broker has
  /// verified it, empty where the message names none. Nil where a worker has found that he may.
  package static func producer(of delivery: borrowing Delivery, areNotesOurs: Bool) -> [UInt8]? {
    areNotesOurs ? delivery.properties.headers.string(producerHeader) : delivery.properties.userID ?? []
  }

  /// The same of what is for the registry.
  package func producer(of delivery: borrowing Delivery) -> [UInt8]? {
    Self.producer(of: delivery, areNotesOurs: areNotesOurs(delivery.exchange, nil))
  }

  /// Says, on what a worker has sent on, when a worker first saw a request whose producer doesn't say when it was published.
  package static let firstSeenHeader = "x-push-first-seen"

  /// Unix milliseconds; nil where no worker has noted it.
  package static func firstSeen(_ properties: borrowing BasicProperties) -> Int64? {
    if case .integer(let time)? = properties.headers[firstSeenHeader] { time } else { nil }
  }

  /// It has been on the ladder, in the quarantine or in a hold queue, or was replayed.
  package func isReturned(_ exchange: [UInt8]) -> Bool { exchange == returns || exchange == retry || exchange == hold }
}
