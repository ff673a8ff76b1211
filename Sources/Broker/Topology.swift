import AMQP

/// A step of the retry ladder: a queue in which every message waits equally long. The name contains the delay, because the
/// delay of an existing queue can't be changed (the broker refuses with 406).
public struct RetryStep: Sendable, Equatable {
  /// For example `1s`, `15m`.
  public var name: String
  public var delay: Int64

  public init(name: String, delay: Int64) {
    self.name = name
    self.delay = delay
  }
}

/// The exchanges, queues and bindings of requests, retries and outcomes. Everything is durable. Every queue is a quorum queue
/// with explicit limits, so that RabbitMQ 3.10 and 4.x behave alike.
public struct Topology: Sendable {
  public struct Queue: Sendable, Equatable {
    public var name: String
    public var arguments: FieldTable
  }

  public let prefix: String
  public let ladder: [RetryStep]
  /// Applications whose feedback is also kept for senders that use APNs' binary interface.
  public let binaryFeedback: [String]
  public let webhooks: [Webhook]
  /// The queues of each lane of requests.
  public let laneQueues: Int

  /// A webhook, whose events wait in a queue of their own. The keys are prefixes of its events' routing keys, such as `feedback.`.
  public typealias Webhook = (app: String, name: String, keys: [String])

  public init(
    prefix: String = "push", ladder: [RetryStep], laneQueues: Int = 1, binaryFeedback: [String] = [], webhooks: [Webhook] = []
  ) {
    self.laneQueues = laneQueues
    self.webhooks = webhooks
    self.prefix = prefix
    self.ladder = ladder
    self.binaryFeedback = binaryFeedback
  }

  /// Number of returns before a message is dead-lettered; 20 by default in RabbitMQ 4.x. Each lost worker returns its whole
  /// prefetch. A message that returns twice goes to the quarantine, so only messages that return while no worker can publish
  /// get near the limit.
  public static let deliveryLimit: Int64 = 50
  /// The delivery limit of the quarantine in earlier fleets, where the broker did the counting.
  static let formerQuarantineLimit: Int64 = 3
  /// The delivery limit of the dead-letter queue: practically unlimited, because the broker drops messages beyond it. (−1 means
  /// "no limit" to 4.x, but 3.10 then drops at the first return.)
  public static let deadLetterDeliveryLimit: Int64 = 1_000_000

  /// The header with the target queue, without prefix, of an expired retry or replayed dead letter: a lane, `registry` or
  /// `acks`. Because its name begins with `x-`, only the match `all-with-x` uses it (RabbitMQ 3.10 and later).
  public static let originHeader = "x-push-origin"
  public static let registryOrigin = "registry"
  public static let acknowledgementOrigin = "acks"
  public static let lanes = WorkQueue.allCases.map(\.origin)

  /// The exchanges in front of `lanes`, without prefix.
  package static let send = "send"
  static let fanOut = "fanout"
  static let hold = "hold"
  /// Marks a message that only asks whether a hold queue exists.
  package static let questionHeader = "x-push-question"
  /// Routing key of a change on the registry's exchange.
  package static let changeKey = "change"
  /// Routing key on the exchange of acknowledgements.
  package static let acknowledgementKey = "ack"
  /// Milliseconds after which an unused hold queue is deleted with its messages: longer than any request lives.
  static let holdExpiry: Int64 = 29 * 86_400_000
  /// Expiry in milliseconds of a held message: longer than any request lives, but before the queue itself is deleted.
  package static let heldExpiry = Array("\(holdExpiry - 43_200_000)".utf8)
  /// Routing key of dead letters, and prefixes of the routing keys of feedback, results and receipts (`<prefix><app>`).
  package static let deadKey = "dead"
  package static let feedbackKey = "feedback."
  package static let resultKey = "result."
  package static let receiptKey = "receipt."
  package static let auditKey = "audit."
}

extension Topology {
  public func name(_ suffix: String) -> String { "\(prefix).\(suffix)" }

  public var sendExchange: String { name(Self.send) }
  public var fanoutExchange: String { name(Self.fanOut) }
  /// Routing key: the name of a step.
  public var retryExchange: String { name("retry") }
  /// Routes expired retries and replayed dead letters by `originHeader`.
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
  /// Sends messages that producers' exchanges and `returnExchange` can't route to the dead letters. Examples are a request with
  /// a wrong routing key, which the broker would confirm and drop, and a message on a step without an origin. A quorum queue
  /// that dead-letters at least once keeps retrying such a message, and 32 of them block the step.
  public var strayExchange: String { name("stray") }

  /// Questions to all running workers. Not part of `pushfleet topology`: the asking and the answering process declare it.
  public var controlExchange: String { name("control") }

  public var feedbackQueue: String { name("feedback") }
  public var resultsQueue: String { name("results") }
  public var deadQueue: String { name("dead") }
  public var receiptsQueue: String { name("receipts") }
  public var registryQueue: String { name(Self.registryOrigin) }
  public var acknowledgementQueue: String { name(Self.acknowledgementOrigin) }
  /// Messages that workers returned, to be processed one at a time. Its routing key on `retryExchange` is `quarantineKey`.
  public var quarantineQueue: String { name(Self.quarantineKey) }
  public static let quarantineKey = "quarantine"
  /// The queue of an application whose provider is in trouble. It is declared on first use.
  public func holdQueue(_ app: String) -> String { name("\(Self.hold).\(app)") }
  /// The entries for an application's clients of the feedback service (APNs' binary interface).
  public func binaryFeedbackQueue(_ app: String) -> String { name("feedback.binary.\(app)") }
  /// The events for a webhook of an application.
  public func webhookQueue(_ app: String, _ webhook: String) -> String { name("webhook.\(app).\(webhook)") }
  /// The beginnings of the names of queues that drop their oldest messages when they are full.
  package var listPrefixes: [String] { [binaryFeedbackQueue(""), name("webhook.")] }
  public func isList(queue: String) -> Bool { listPrefixes.contains(where: queue.hasPrefix) }
  /// Queues of which each consuming shard has one consumer, unless an operator has paused the lane. Only shards with a registry, which
  /// pausing needs, consume the last one.
  package var queuesOfOneConsumer: [String] {
    [name(WorkQueue.fanoutNormal.origin), name(WorkQueue.fanoutHigh.origin), acknowledgementQueue]
  }
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
    let lanes = allLaneQueues.map { Queue(name: $0, arguments: deadLettered()) }
    let steps = ladder.map { Queue(name: retryQueue($0), arguments: waiting($0)) }
    let others = [feedbackQueue, resultsQueue, receiptsQueue, acknowledgementQueue].map {
      Queue(name: $0, arguments: deadLettered())
    }
    // Two workers could apply two changes of one device in the wrong order.
    var inOrder = deadLettered()
    inOrder.append("x-single-active-consumer", .bool(true))
    let quarantine = Queue(name: quarantineQueue, arguments: deadLettered())
    let listed = binaryFeedback.map(binaryFeedbackQueue) + webhooks.map { webhookQueue($0.app, $0.name) }
    let lists = listed.map { Queue(name: $0, arguments: list) }
    return [Queue(name: deadQueue, arguments: lastStop)] + lanes + steps + [quarantine] + others
      + [Queue(name: registryQueue, arguments: inOrder)] + lists
  }

  public typealias Binding = (queue: String, exchange: String, routingKey: String, arguments: FieldTable)

  /// The bindings of a lane's first queue to the exchanges that workers and producers publish to.
  func laneBindings(_ lane: WorkQueue) -> [Binding] {
    let queue = name(lane.origin)
    return [
      (queue, name(lane.route.exchange), lane.route.key, FieldTable()),
      (queue, returnExchange, "", Self.cameFrom(lane.origin)),
    ]
  }

  public var bindings: [Binding] {
    let lanes = WorkQueue.allCases.flatMap(laneBindings)
    let steps = ladder.map { (retryQueue($0), retryExchange, $0.name, FieldTable()) }
    let lists =
      binaryFeedback.map { (binaryFeedbackQueue($0), eventsExchange, Self.feedbackKey + $0, FieldTable()) }
      + webhooks.flatMap { webhook in
        webhook.keys.map { (webhookQueue(webhook.app, webhook.name), eventsExchange, $0 + webhook.app, FieldTable()) }
      }
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

  /// True for a queue that only the fleet publishes to.
  package func isOwn(queue: String) -> Bool {
    queues.contains { $0.name == queue } || queue == traceQueue || queue.hasPrefix(holdQueue(""))
      || isList(queue: queue)
  }

  private static func cameFrom(_ origin: String) -> FieldTable {
    ["x-match": .text("all-with-x"), originHeader: .text(origin)]
  }

  /// The commands that declare all exchanges and queues. `bindingCommands` follow them.
  var declarations: [Command] {
    exchanges.map { .exchangeDeclare(name: $0.name, type: $0.type, arguments: $0.arguments) }
      + queues.map { .queueDeclare(name: $0.name, arguments: $0.arguments) }
  }

  package func holdCommands(_ app: String) -> [Command] {
    var arguments = deadLettered()
    arguments.append("x-expires", .integer(Self.holdExpiry))
    return [
      .queueDeclare(name: holdQueue(app), arguments: arguments),
      .queueBind(queue: holdQueue(app), exchange: holdExchange, routingKey: app, arguments: FieldTable()),
    ]
  }

  /// The queue to which `pushfleet doctor`'s message returns from the ladder. No worker consumes it.
  package var doctorQueue: String { name("doctor") }
  package var doctorMessage: FieldTable { [Self.originHeader: .text("doctor")] }

  /// The commands that declare that queue. It deletes a message after two seconds, and itself only after every message has
  /// returned.
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

  /// A full list drops its oldest entries, so that a sender that doesn't fetch it can't block feedback.
  private var list: FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(Self.deadLetterDeliveryLimit),
      "x-overflow": .text("drop-head"), "x-max-length": .integer(Self.binaryFeedbackLimit),
    ]
  }

  /// Maximum entries in an application's list for the feedback service.
  public static let binaryFeedbackLimit: Int64 = 250_000

  private var lastStop: FieldTable {
    [
      "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(Self.deadLetterDeliveryLimit),
      "x-overflow": .text("reject-publish"),
    ]
  }
}
