import AMQP
import PushCore

/// What a worker has noted on a message for the next one: which page of an audience it is, and how far it had come on the ladder.
enum FleetNotes {
  /// A producer's request.
  case none
  case notes(page: PageTicket?, retry: RetryRecord?)
  /// In a form that only a newer worker knows.
  case newer
  /// They can't be what a worker has written, or don't belong here.
  case refused(Rejection)
}

/// Distinguishes the fleet's own notes from what a producer makes up. Headers can be forged, the exchange that a message came by can't: the
/// broker names it, and its permissions decide who may publish to it.
struct NoteReader {
  /// Pages come by this one, from workers and from operators who replay them.
  private let fanOut: [UInt8]
  /// Whatever has been on the ladder comes back by this one, and dead letters that are replayed.
  private let returns: [UInt8]
  /// The quarantine is published to by this one.
  private let retry: [UInt8]
  /// Hold queues are published to by this one.
  private let hold: [UInt8]

  init(prefix: String) {
    let topology = Topology(prefix: prefix, ladder: [])
    fanOut = Array(topology.fanoutExchange.utf8)
    returns = Array(topology.returnExchange.utf8)
    retry = Array(topology.retryExchange.utf8)
    hold = Array(topology.holdExchange.utf8)
  }

  /// Only workers, and operators who replay, publish what comes to the queue by this exchange: its notes count.
  func areNotesOurs(exchange: [UInt8], queue: WorkQueue) -> Bool { isFleets(exchange, queue) }

  func isFleets(_ exchange: [UInt8], _ queue: WorkQueue?) -> Bool {
    isReturned(exchange) || queue?.isFanOut == true && exchange == fanOut
  }

  /// Names, on what a worker has sent on, the user whose rights are still to be checked.
  static let producerHeader = "x-push-producer"

  /// Whose rights are to be checked before anything follows from a message: the broker's user that published it, as the broker has
  /// verified it, empty where the message names none. Nil where a worker has found that he may.
  /// - Parameter queue: nil for the registry's.
  func producer(of delivery: borrowing Delivery, queue: WorkQueue?) -> [UInt8]? {
    isFleets(delivery.exchange, queue)
      ? delivery.properties.headers.string(Self.producerHeader) : delivery.properties.userID ?? []
  }

  /// - Parameter now: unix milliseconds; no note makes a message live longer than four weeks from then.
  func notes(
    on properties: borrowing BasicProperties, exchange: [UInt8], queue: WorkQueue, at now: Int64
  ) -> FleetNotes {
    if let reason = Self.refusal(of: properties) { return Self.refused(reason) }
    guard !properties.hasUnreadableHeaders else { return Self.refused("headers: malformed, or nested too deep") }
    let isReturned = isReturned(exchange)
    guard isReturned || queue.isFanOut else { return .none }
    guard isReturned || exchange == fanOut else {
      return Self.refused("a fan-out queue takes pages by the fleet's own exchanges only")
    }
    let latest = now + Intake.longestLife
    var page: PageTicket?
    switch PageTicket.read(properties.headers) {
    case .absent where queue.isFanOut: return Self.refused("\(PageTicket.header): missing, so this is no page")
    case .absent: break
    case .newer: return .newer
    case .unreadable: return Self.refused("\(PageTicket.header): not a page's ticket, or of a form that is no longer known")
    case .ticket(var ticket):
      ticket.deadline = min(ticket.deadline, latest)
      page = ticket
    }
    guard isReturned else { return .notes(page: page, retry: nil) }
    switch RetryRecord.read(properties.headers) {
    case .absent: return .notes(page: page, retry: nil)
    case .newer: return .newer
    case .unreadable: return Self.refused("x-push-retry-…: not what a worker writes")
    case .record(var record):
      record.deadline = min(record.deadline, latest)
      return .notes(page: page, retry: record)
    }
  }

  /// Says, on what a worker has sent on, when a worker first saw a request whose producer doesn't say when it was published.
  static let firstSeenHeader = "x-push-first-seen"

  /// Unix milliseconds; nil where no worker has noted it.
  func firstSeen(_ properties: borrowing BasicProperties, exchange: [UInt8], queue: WorkQueue) -> Int64? {
    guard isFleets(exchange, queue), case .integer(let time)? = properties.headers[Self.firstSeenHeader] else { return nil }
    return time
  }

  private func isReturned(_ exchange: [UInt8]) -> Bool { exchange == returns || exchange == retry || exchange == hold }

  private static func refused(_ reason: String) -> FleetNotes { .refused(Rejection(.invalidParameters, reason)) }
}
