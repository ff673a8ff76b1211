import AMQP

/// A step of the retry ladder: a queue in which every message waits equally long.
///
/// A delay can't be changed under its name (the broker refuses with 406), so the name says it.
public struct RetryStep: Sendable, Equatable {
  /// For example `1s`, `15m`.
  public var name: String
  /// In milliseconds.
  public var delay: Int64

  public init(name: String, delay: Int64) {
    self.name = name
    self.delay = delay
  }
}

/// The exchanges, queues and bindings through which requests, retries and outcomes travel.
///
/// Everything is durable, and every queue is a quorum queue whose limits are set explicitly, so that RabbitMQ 3.10 and 4.x
/// behave alike.
public struct Topology: Sendable {
  public struct Queue: Sendable, Equatable {
    public var name: String
    public var arguments: FieldTable
  }

  public let prefix: String
  public let ladder: [RetryStep]
  /// Applications whose feedback is kept for senders of APNs' binary interface as well.
  public let binaryFeedback: [String]

  public init(prefix: String = "push", ladder: [RetryStep], binaryFeedback: [String] = []) {
    self.prefix = prefix
    self.ladder = ladder
    self.binaryFeedback = binaryFeedback
  }

  /// Returns of a message to its queue before it is dead-lettered.
  ///
  /// Each lost worker or connection returns its whole prefetch. What comes back twice goes to the quarantine, so that few requests get
  /// near the limit: those that come back while no worker can publish. RabbitMQ 4.x would take 20.
  public static let deliveryLimit: Int64 = 50
  /// The quarantine's in earlier fleets, where the broker counted what workers count now.
  static let formerQuarantineLimit: Int64 = 3
  /// Delivery limit of the dead-letter queue, effectively none: beyond it the broker would drop a message, as there is no further queue for
  /// it. (−1 would mean "no limit" to 4.x, and drop at the first return on 3.10.)
  public static let deadLetterDeliveryLimit: Int64 = 1_000_000

  /// The header that names the queue, without prefix, to which an expired retry or a replayed dead letter goes back: one of `lanes`, the
  /// registry's, or that of acknowledgements.
  ///
  /// Its name begins with `x-`, so only the match `all-with-x` looks at it (RabbitMQ 3.10 and later).
  public static let originHeader = "x-push-origin"
  public static let registryOrigin = "registry"
  public static let acknowledgementOrigin = "acks"
  public static let lanes = WorkQueue.allCases.map(\.origin)

  /// The exchanges that lead to `lanes`, without prefix.
  package static let send = "send"
  static let fanOut = "fanout"
  static let hold = "hold"
  /// Marks a message that only asks whether there is a hold queue.
  package static let questionHeader = "x-push-question"
  /// Routing key of a change on the registry's exchange.
  package static let changeKey = "change"
  /// And of what devices say, on that of acknowledgements.
  package static let acknowledgementKey = "ack"
  /// Milliseconds after which a hold queue that no worker has consumed vanishes, with what is in it: longer than any request lives.
  static let holdExpiry: Int64 = 29 * 86_400_000
  /// Of a message there: longer than any request lives as well, so that nothing vanishes with the queue.
  package static let heldExpiry = Array("\(holdExpiry - 43_200_000)".utf8)
  /// Routing keys of the dead letters and, followed by the application, of feedback, results and receipts.
  package static let deadKey = "dead"
  package static let feedbackKey = "feedback."
  package static let resultKey = "result."
  package static let receiptKey = "receipt."
}

/// Names with the fleet's prefix.
extension Topology {
  public func name(_ suffix: String) -> String { "\(prefix).\(suffix)" }

  public var sendExchange: String { name(Self.send) }
  public var fanoutExchange: String { name(Self.fanOut) }
  /// Routing key: a step's name.
  public var retryExchange: String { name("retry") }
  /// Routes expired retries, and dead letters that are replayed, by `originHeader`.
  public var returnExchange: String { name("return") }
  /// Routing key: the application.
  public var holdExchange: String { name(Self.hold) }
  /// Routing keys `feedback.<app>`, `result.<app>` and `receipt.<app>`.
  public var eventsExchange: String { name("events") }
  /// Routing key `deadKey`.
  public var deadExchange: String { name("dead") }
  /// Routing key `changeKey`.
  public var registryExchange: String { name(Self.registryOrigin) }
  /// Routing key `acknowledgementKey`.
  public var acknowledgementExchange: String { name(Self.acknowledgementOrigin) }
  /// Takes what producers' exchanges and `returnExchange` can't route, to the dead letters: a request published with a wrong routing key,
  /// which the broker would confirm and drop; and what a stranger put on a step, without a way back. A quorum queue that dead-letters
  /// at least once keeps trying such a message, and 32 of them stop the step for everybody.
  public var strayExchange: String { name("stray") }

  /// Questions to all workers that run. No part of what `pushfleet topology` declares: who asks or answers declares it.
  public var controlExchange: String { name("control") }

  /// - Parameter lane: `high` or `normal`.
  public func sendQueue(_ lane: String) -> String { name("\(Self.send).\(lane)") }
  public var feedbackQueue: String { name("feedback") }
  public var resultsQueue: String { name("results") }
  public var deadQueue: String { name("dead") }
  public var receiptsQueue: String { name("receipts") }
  public var registryQueue: String { name(Self.registryOrigin) }
  public var acknowledgementQueue: String { name(Self.acknowledgementOrigin) }
  /// What has come back from workers, to be processed one at a time; its routing key on `retryExchange` is `quarantineKey`.
  public var quarantineQueue: String { name(Self.quarantineKey) }
  public static let quarantineKey = "quarantine"
  /// Of an application whose provider is in trouble; declared when it is needed first.
  public func holdQueue(_ app: String) -> String { name("\(Self.hold).\(app)") }
  /// What the feedback service of APNs' binary interface gives an application's senders.
  public func binaryFeedbackQueue(_ app: String) -> String { name("feedback.binary.\(app)") }
  public func retryQueue(_ step: RetryStep) -> String { name("retry.\(step.name)") }
}

extension Topology {
  public var exchanges: [(name: String, type: String, arguments: FieldTable)] {
    let none = FieldTable()
    let caught: FieldTable = ["alternate-exchange": .text(strayExchange)]
    return [
      (strayExchange, "fanout", none), (sendExchange, "direct", caught), (fanoutExchange, "direct", none),
      (retryExchange, "direct", none), (returnExchange, "headers", caught), (holdExchange, "direct", none),
      (registryExchange, "direct", caught), (acknowledgementExchange, "direct", caught), (eventsExchange, "topic", none),
      (deadExchange, "direct", none),
    ]
  }

  public var queues: [Queue] {
    let lanes = Self.lanes.map { Queue(name: name($0), arguments: deadLettered()) }
    let steps = ladder.map { Queue(name: retryQueue($0), arguments: waiting($0)) }
    let others = [feedbackQueue, resultsQueue, receiptsQueue, acknowledgementQueue].map {
      Queue(name: $0, arguments: deadLettered())
    }
    // Two workers would apply two changes of one device in either order.
    var inOrder = deadLettered()
    inOrder.append("x-single-active-consumer", .bool(true))
    let quarantine = Queue(name: quarantineQueue, arguments: deadLettered())
    let lists = binaryFeedback.map { Queue(name: binaryFeedbackQueue($0), arguments: list) }
    return [Queue(name: deadQueue, arguments: lastStop)] + lanes + steps + [quarantine] + others
      + [Queue(name: registryQueue, arguments: inOrder)] + lists
  }

  public var bindings: [(queue: String, exchange: String, routingKey: String, arguments: FieldTable)] {
    let lanes = Self.lanes.flatMap { lane -> [(queue: String, exchange: String, routingKey: String, arguments: FieldTable)] in
      let parts = lane.split(separator: ".")
      return [
        (name(lane), name(String(parts[0])), String(parts[1]), FieldTable()),
        (name(lane), returnExchange, "", Self.cameFrom(lane)),
      ]
    }
    let steps = ladder.map { (retryQueue($0), retryExchange, $0.name, FieldTable()) }
    let lists = binaryFeedback.map { (binaryFeedbackQueue($0), eventsExchange, Self.feedbackKey + $0, FieldTable()) }
    return lanes + steps + lists + [
      (quarantineQueue, retryExchange, Self.quarantineKey, FieldTable()),
      (feedbackQueue, eventsExchange, Self.feedbackKey + "#", FieldTable()),
      (resultsQueue, eventsExchange, Self.resultKey + "#", FieldTable()),
      (receiptsQueue, eventsExchange, Self.receiptKey + "#", FieldTable()),
      (deadQueue, deadExchange, Self.deadKey, FieldTable()), (deadQueue, strayExchange, "", FieldTable()),
      (registryQueue, registryExchange, Self.changeKey, FieldTable()),
      (registryQueue, returnExchange, "", Self.cameFrom(Self.registryOrigin)),
      (acknowledgementQueue, acknowledgementExchange, Self.acknowledgementKey, FieldTable()),
      (acknowledgementQueue, returnExchange, "", Self.cameFrom(Self.acknowledgementOrigin)),
    ]
  }

  /// Where only the fleet publishes.
  package func isOwn(queue: String) -> Bool {
    queues.contains { $0.name == queue } || queue == traceQueue || queue.hasPrefix(holdQueue(""))
      || queue.hasPrefix(binaryFeedbackQueue(""))
  }

  private static func cameFrom(_ origin: String) -> FieldTable {
    ["x-match": .text("all-with-x"), originHeader: .text(origin)]
  }

  /// In an order in which every step finds what it needs.
  public var commands: [Command] {
    exchanges.map { .exchangeDeclare(name: $0.name, type: $0.type, arguments: $0.arguments) }
      + queues.map { .queueDeclare(name: $0.name, arguments: $0.arguments) }
      + bindings.map {
        .queueBind(queue: $0.queue, exchange: $0.exchange, routingKey: $0.routingKey, arguments: $0.arguments)
      }
  }

  /// What declares an application's hold queue.
  package func holdCommands(_ app: String) -> [Command] {
    var arguments = deadLettered()
    arguments.append("x-expires", .integer(Self.holdExpiry))
    return [
      .queueDeclare(name: holdQueue(app), arguments: arguments),
      .queueBind(queue: holdQueue(app), exchange: holdExchange, routingKey: app, arguments: FieldTable()),
    ]
  }

  /// The message that `pushfleet doctor` sends through the ladder comes back to this queue. No worker consumes it.
  package var doctorQueue: String { name("doctor") }
  package var doctorMessage: FieldTable { [Self.originHeader: .text("doctor")] }

  /// The commands that declare that queue. It forgets a message after two seconds, and vanishes later than any message comes back.
  package var doctorCommands: [Command] {
    [
      .queueDeclare(
        name: doctorQueue,
        arguments: [
          "x-queue-type": .text("classic"), "x-message-ttl": .integer(2_000), "x-expires": .integer(Self.holdExpiry),
        ]),
      .queueBind(queue: doctorQueue, exchange: returnExchange, routingKey: "", arguments: Self.cameFrom("doctor")),
    ]
  }

  func deadLettered(after limit: Int64 = deliveryLimit) -> FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(limit),
      "x-overflow": .text("reject-publish"), "x-dead-letter-exchange": .text(deadExchange),
      "x-dead-letter-routing-key": .text(Self.deadKey), "x-dead-letter-strategy": .text("at-least-once"),
    ]
  }

  private func waiting(_ step: RetryStep) -> FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(Self.deliveryLimit),
      "x-overflow": .text("reject-publish"), "x-message-ttl": .integer(step.delay),
      "x-dead-letter-exchange": .text(returnExchange), "x-dead-letter-strategy": .text("at-least-once"),
    ]
  }

  /// A list that its sender doesn't fetch loses its oldest entries: it must hold up no worker's feedback, and be of no end.
  private var list: FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(Self.deadLetterDeliveryLimit),
      "x-overflow": .text("drop-head"), "x-max-length": .integer(Self.binaryFeedbackLimit),
    ]
  }

  /// Entries of an application's list for the feedback service.
  public static let binaryFeedbackLimit: Int64 = 250_000

  private var lastStop: FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(Self.deadLetterDeliveryLimit),
      "x-overflow": .text("reject-publish"),
    ]
  }
}
