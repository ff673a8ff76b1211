import AMQP
import Wire

/// What a queue has dead-lettered at least once: on its way until every queue that it is routed to has taken it.
struct DeadLetterOutlet {
  /// Not on their way yet, the oldest first.
  var waiting = Ring<(entry: QueueEntry, reason: DeathReason)>()
  var underway: [Underway] = []
  /// A look at what is underway is on the broker's agenda.
  var isRetryArmed = false

  struct Underway {
    /// As the queue held it, and as it is sent.
    var original: QueueEntry
    var message: Message
    var reason: DeathReason
    /// The queues that have taken it.
    var settled: [String] = []
    /// When it was last given to a queue; nil when none was found.
    var sentAt: MonotonicTime?
  }

  var count: Int { waiting.count + underway.count }

  /// The node goes down: nothing is underway any more.
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
  /// The message as it goes to a dead-letter exchange.
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

  /// One entry for each queue and reason, the latest first; of one that was there before only the count changes.
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

  /// It has died in this queue before, and since then nobody has rejected it.
  static func isCycle(_ message: Message, to queue: String, because reason: DeathReason) -> Bool {
    guard reason != .rejected, case .array(let deaths)? = message.properties.headers["x-death"] else { return false }
    for death in deaths {
      guard case .table(let death) = death, death["reason"] != .text(DeathReason.rejected.rawValue) else { return false }
      if death["queue"] == .text(queue) { return true }
    }
    return false
  }
}
