import AMQP
import Broker
import PushCore

/// A worker's notes on a message for the next worker: the page of an audience, and the progress on the ladder.
enum FleetNotes {
  /// A producer's request, without notes.
  case none
  /// In a box: most messages have no notes, and would be copied with the room for them.
  indirect case notes(page: PageTicket?, retry: RetryRecord?)
  case newer
  /// Notes that no worker can have written, or that don't belong here.
  case refused(Rejection)
}

extension NoteReader {
  /// - Parameter now: unix milliseconds; no note extends a message's life beyond four weeks from then.
  func notes(
    on properties: borrowing BasicProperties, exchange: [UInt8], queue: WorkQueue, at now: Int64
  ) -> FleetNotes {
    if let reason = Self.refusal(of: properties) { return Self.refused(reason) }
    guard !properties.hasUnreadableHeaders else { return Self.refused("headers: malformed, or nested too deep") }
    let isReturned = isReturned(exchange)
    guard isReturned || queue.isFanOut else { return .none }
    guard areNotesOurs(exchange, queue) else {
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
      ticket.deadline = min(max(ticket.deadline, 0), latest)
      page = ticket
    }
    guard isReturned else { return .notes(page: page, retry: nil) }
    switch RetryRecord.read(properties.headers) {
    case .absent: return .notes(page: page, retry: nil)
    case .newer: return .newer
    case .unreadable: return Self.refused("x-push-retry-…: not what a worker writes")
    case .record(var record):
      record.deadline = min(max(record.deadline, 0), latest)
      return .notes(page: page, retry: record)
    }
  }

  private static func refused(_ reason: String) -> FleetNotes { .refused(Rejection(.invalidParameters, reason)) }
}
