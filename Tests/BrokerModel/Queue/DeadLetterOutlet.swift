import AMQP
import Wire

/// The dead letters of a queue with at-least-once dead-lettering, until all target queues have accepted them.
struct DeadLetterOutlet {
  /// Dead letters that wait for their first attempt, the oldest first.
  var waiting = Ring<(entry: QueueEntry, reason: DeathReason)>()
  var underway: [Underway] = []
  /// True if a retry is on the broker's agenda.
  var isRetryArmed = false

  struct Underway {
    /// The message as the queue held it and as it is sent.
    var original: QueueEntry
    var message: Message
    var reason: DeathReason
    /// Queues that have accepted it.
    var settled: [String] = []
    /// Time of the last attempt; nil if no queue was found.
    var sentAt: MonotonicTime?
  }

  var count: Int { waiting.count + underway.count }

  /// The node goes down: dead letters under way wait again.
  mutating func reset() {
    var all = Ring<(entry: QueueEntry, reason: DeathReason)>()
    for dead in underway { all.append((dead.original, dead.reason)) }
    for dead in waiting { all.append(dead) }
    waiting = all
    underway = []
    isRetryArmed = false
  }
}

/// The history of a message's deaths (https://www.rabbitmq.com/docs/dlx, "Effects on Messages").
enum Death {
  /// The message as sent to a dead-letter exchange.
  static func message(
    _ message: Message, from queue: Queue, exchange: String, because reason: DeathReason, at seconds: UInt64
  ) -> Message {
    var properties = message.properties
    var death: FieldTable = [
      "reason": .text(reason.rawValue), "queue": .text(queue.name), "time": .timestamp(seconds),
      "exchange": .string(message.exchange), "routing-keys": .array([.string(message.routingKey)]),
    ]
    if let expiration = properties.expiration { death.append("original-expiration", .string(expiration)) }
    properties.headers = record(death, of: reason, in: properties.headers, queue: queue.name, exchange: message.exchange)
    properties.expiration = nil
    return Message(
      message, exchange: Array(exchange.utf8), routingKey: queue.arguments.deadLetterRoutingKey ?? message.routingKey,
      properties: properties)
  }

  /// Adds an entry for queue and reason at the front, or raises the count of an existing one.
  private static func record(
    _ death: FieldTable, of reason: DeathReason, in headers: FieldTable, queue: String, exchange: [UInt8]
  ) -> FieldTable {
    guard case .array(let deaths)? = headers["x-death"] else {
      var first = headers
      if headers["x-death"] == nil {
        first = first.setting("x-first-death-reason", .text(reason.rawValue))
          .setting("x-first-death-queue", .text(queue)).setting("x-first-death-exchange", .string(exchange))
      }
      return first.setting("x-death", .array([.table(death.setting("count", .integer(1)))]))
    }
    var latest = death.setting("count", .integer(1))
    var others: [FieldValue] = []
    for case .table(let former) in deaths {
      if former["queue"] == .text(queue), former["reason"] == .text(reason.rawValue) {
        let count = if case .integer(let count)? = former["count"] { count } else { Int64(0) }
        latest = former.setting("count", .integer(count &+ 1))
      } else {
        others.append(.table(former))
      }
    }
    return headers.setting("x-death", .array([.table(latest)] + others))
  }

  /// True if the message has died in this queue before, without a rejection since.
  static func isCycle(_ message: Message, to queue: String, because reason: DeathReason) -> Bool {
    guard reason != .rejected, case .array(let deaths)? = message.properties.headers["x-death"] else { return false }
    for death in deaths {
      guard case .table(let death) = death, death["reason"] != .text(DeathReason.rejected.rawValue) else { return false }
      if death["queue"] == .text(queue) { return true }
    }
    return false
  }
}
