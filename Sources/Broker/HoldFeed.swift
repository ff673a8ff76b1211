import AMQP
import Logging
import Wire

/// A shard's separate connection for the hold queues of applications. A queue without a leader, or a closed channel, then
/// doesn't affect the lanes. A few requests of each queue are always consumed, as probes for a provider in trouble. While the
/// provider accepts requests, more are consumed; the faster it accepts them, the more.
package final class HoldFeed {
  private struct Hold {
    let app: Int
    let queue: String
    var flow = Flow.none
    var flowChangedAt = MonotonicTime(nanoseconds: 0)
    var inHand = 0
  }

  package private(set) var inHand = 0

  /// How many requests of one application's queue are in hand.
  package enum Flow: Int {
    /// An operator has paused the application, or it isn't known whether one has.
    case none = -1
    case probes = 0
    case some, most

    static let steps: [Flow] = [.probes, .some, .most]

    /// Requests in hand beyond the lower steps. Each step is a separate consumer, because a consumer's prefetch is fixed.
    var prefetch: UInt16 {
      switch self {
      case .none: 0
      case .probes: 8
      case .some: 56
      case .most: 200
      }
    }
    var total: Int { Flow.steps.reduce(0) { $1.rawValue <= rawValue ? $0 + Int($1.prefetch) : $0 } }
    package var more: Flow { Flow(rawValue: rawValue + 1) ?? self }
    package var less: Flow { self == .none ? self : Flow(rawValue: max(rawValue - 1, Flow.probes.rawValue)) ?? self }
  }

  package static let most = Flow.most.total
  /// Minimum seconds between two increases of the flow.
  private static let flowPause = 1.0

  /// Called with a message, and with the index of its application in the configuration.
  package var onDelivered: ((consuming Delivery, Int) -> Void)?
  /// Every delivery in hand will be delivered again.
  package var onLost: (() -> Void)?
  /// A queue is missing, so the existing ones must be found out again.
  package var onQueueLost: (() -> Void)?
  package var onEnded: (() -> Void)?

  private let makeConnection: () -> BrokerConnection
  private let time: Turn
  private let log: Log
  private let maximumBody: Int
  private var connection: BrokerConnection?
  private var consumer: Consumer?
  /// The consumer has one subscription for each hold and flow step, in this order.
  private var holds: [Hold] = []
  private var places: [Int: Int] = [:]
  private var isDraining = false

  package init(time: Turn, log: Log, maximumBody: Int, connection: @escaping () -> BrokerConnection) {
    self.time = time
    self.log = log
    self.maximumBody = maximumBody
    makeConnection = connection
  }

  /// Pauses reading while the shard holds as much as it may.
  package var isReadingPaused = false {
    didSet {
      consumer?.transport?.isReadingPaused = isReadingPaused
      connection?.isPaused = isReadingPaused
    }
  }

  package var isClosed: Bool { consumer == nil }

  package func inHand(_ app: Int) -> Int { places[app].map { holds[$0].inHand } ?? 0 }
  package func flow(_ app: Int) -> Flow { places[app].map { holds[$0].flow } ?? .probes }

  package func consume(_ queue: String, of app: Int) {
    guard !isDraining, places[app] == nil else { return }
    places[app] = holds.count
    holds.append(Hold(app: app, queue: queue))
    if let consumer { subscribe(holds.count - 1, consumer) } else { open() }
  }

  /// - Parameter isForProbe: the requests in hand can't serve as a probe, and one more is needed.
  package func setFlow(_ flow: Flow, _ app: Int, isForProbe: Bool) {
    guard let index = places[app], holds[index].flow != flow else { return }
    if flow.rawValue > holds[index].flow.rawValue {
      // Requests from an earlier, larger flow are still in hand.
      let isUsed = holds[index].inHand > (isForProbe ? Self.most : holds[index].flow.total)
      guard !isUsed, time.now.seconds(since: holds[index].flowChangedAt) >= Self.flowPause else { return }
    }
    holds[index].flow = flow
    holds[index].flowChangedAt = time.now
    for step in Flow.steps { consumer?.want(step.rawValue <= flow.rawValue, queue: Self.subscription(index, step)) }
  }

  private static func subscription(_ hold: Int, _ step: Flow) -> Int { hold * Flow.steps.count + step.rawValue }

  private func forgetDeliveries() {
    for index in holds.indices { holds[index].inHand = 0 }
    inHand = 0
  }

  package func acknowledge(_ token: DeliveryToken, _ app: Int) {
    if let index = places[app] {
      holds[index].inHand -= 1
      inHand -= 1
    }
    consumer?.acknowledge(token)
  }

  package func drain() {
    isDraining = true
    consumer?.cancelConsumers()
  }

  package func close() {
    isDraining = true
    connection?.stop()
    consumer?.close()
  }

  package func logIfUnanswered() { consumer?.logIfUnanswered(log) }

  package func reload(_ brokers: [BrokerAddress]) { connection?.brokers = brokers }

  // MARK: - The connection

  private func open() {
    guard connection == nil else { return }
    let connection = makeConnection()
    connection.makeMachine = { [unowned self] settings in
      let consumer = Consumer(settings: settings, queues: [], maximumBody: maximumBody, handler: self)
      self.consumer = consumer
      for index in holds.indices { subscribe(index, consumer) }
      return consumer
    }
    self.connection = connection
    connection.isPaused = isReadingPaused
    connection.start()
  }

  private func subscribe(_ index: Int, _ consumer: Consumer) {
    holds[index].inHand = 0
    for step in Flow.steps {
      let queue = consumer.add(queue: holds[index].queue, prefetch: step.prefetch)
      consumer.want(step.rawValue <= holds[index].flow.rawValue, queue: queue)
    }
  }
}

extension HoldFeed: ConsumerHandler {
  package func ready(_ consumer: Consumer) {
    connection?.established(at: time.now)
    if isDraining { consumer.cancelConsumers() }
  }

  package func delivered(_ delivery: consuming Delivery) {
    let index = delivery.consumer / Flow.steps.count
    holds[index].inHand += 1
    inHand += 1
    onDelivered?(delivery, holds[index].app)
  }

  package func cancelled(queue: Int) {
    log.warning("the broker ended the consumption of a hold queue", ["queue": holds[queue / Flow.steps.count].queue])
    consumer?.close()
  }

  package func channelLost(_ reason: ConnectionEnd) {
    log.warning("the broker closed the channel of the hold queues", ["reason": "\(reason)"])
    forgetDeliveries()
    onLost?()
  }

  package func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    consumer.logIfUnanswered(log)
    forgetDeliveries()
    onLost?()
    defer { onEnded?() }
    if case .notFound = reason {
      holds = []
      places = [:]
      connection?.stop()
      connection = nil
      onQueueLost?()
    } else {
      connection?.ended(reason, log, ["role": "hold queues"])
    }
  }
}
