import AMQP
import Wire

/// What a shard hears of the hold queues.
protocol HoldFeedHandler: AnyObject {
  /// - Parameter app: whose hold queue it comes from, as an index in the configuration.
  func heldDelivered(_ delivery: consuming Delivery, app: Int)
  /// Every delivery in hand will be delivered again.
  func holdsLost()
}

/// A shard's connection for the applications' hold queues, of its own, so that a queue without a leader or a channel that the broker closes
/// doesn't touch what comes by the lanes.
///
/// Of each queue a few requests are taken at any time: they are what a provider in trouble is tried with. More are taken while the provider
/// takes them.
final class HoldFeed {
  private struct Hold {
    let app: Int
    let queue: String
    var isFlowing = false
    /// Delivered and not acknowledged.
    var inHand = 0
  }

  /// Requests of one application in hand while its provider is in trouble, and in all.
  static let probes: UInt16 = 8
  static let most: UInt16 = 264

  weak var handler: (any HoldFeedHandler)?
  /// A queue is gone: which are there is to be found out anew.
  var onQueueLost: (() -> Void)?
  var onEnded: (() -> Void)?

  private let settings: (BrokerURI) -> ConnectionSettings
  private let makeConnection: () -> BrokerConnection
  private let time: Turn
  private let log: Log
  private let maximumBody: Int
  private var connection: BrokerConnection?
  private var consumer: Consumer?
  /// The consumer has two subscriptions for each, in this order: what is taken at any time, and more.
  private var holds: [Hold] = []
  /// Of each application's, in `holds`.
  private var places: [Int: Int] = [:]
  private var isDraining = false

  init(
    time: Turn, log: Log, maximumBody: Int, settings: @escaping (BrokerURI) -> ConnectionSettings,
    connection: @escaping () -> BrokerConnection
  ) {
    self.time = time
    self.log = log
    self.maximumBody = maximumBody
    self.settings = settings
    makeConnection = connection
  }

  /// The shard holds as much as it may.
  var isReadingPaused = false {
    didSet {
      consumer?.transport?.isReadingPaused = isReadingPaused
      // A new connection would bring more.
      connection?.isPaused = isReadingPaused
    }
  }

  /// No connection is there or on its way.
  var isClosed: Bool { consumer == nil }

  private func index(of app: Int) -> Int? { places[app] }
  func inHand(_ app: Int) -> Int { index(of: app).map { holds[$0].inHand } ?? 0 }
  func isFlowing(_ app: Int) -> Bool { index(of: app).map { holds[$0].isFlowing } ?? false }

  /// The queue is there.
  func consume(_ queue: String, of app: Int) {
    guard !isDraining, index(of: app) == nil else { return }
    places[app] = holds.count
    holds.append(Hold(app: app, queue: queue))
    if let consumer { subscribe(holds.count - 1, consumer) } else { open() }
  }

  /// Whether the application's provider takes what is sent.
  func setFlowing(_ isFlowing: Bool, _ app: Int) {
    guard let index = index(of: app), holds[index].isFlowing != isFlowing else { return }
    holds[index].isFlowing = isFlowing
    consumer?.want(isFlowing, queue: 2 * index + 1)
  }

  func acknowledge(_ token: DeliveryToken, _ app: Int) {
    if let index = index(of: app) { holds[index].inHand -= 1 }
    consumer?.acknowledge(token)
  }

  /// Nothing new from now on.
  func drain() {
    isDraining = true
    consumer?.cancelConsumers()
  }

  func close() {
    isDraining = true
    connection?.stop()
    consumer?.close()
  }

  /// Addresses for connections from now on.
  func reload(_ brokers: [BrokerAddress]) { connection?.brokers = brokers }

  // MARK: the connection

  private func open() {
    guard connection == nil else { return }
    let connection = makeConnection()
    connection.makeMachine = { [unowned self] broker in
      let consumer = Consumer(settings: settings(broker), queues: [], maximumBody: maximumBody, handler: self)
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
    for (prefetch, isWanted) in [(Self.probes, true), (Self.most - Self.probes, holds[index].isFlowing)] {
      consumer.want(isWanted, queue: consumer.add(queue: holds[index].queue, prefetch: prefetch))
    }
  }
}

extension HoldFeed: ConsumerHandler {
  func ready(_ consumer: Consumer) {
    connection?.established(at: time.now)
    if isDraining { consumer.cancelConsumers() }
  }

  func delivered(_ delivery: consuming Delivery) {
    let index = delivery.consumer / 2
    holds[index].inHand += 1
    handler?.heldDelivered(delivery, app: holds[index].app)
  }

  /// The queue is deleted, or has no leader at present.
  func cancelled(queue: Int) {
    log.warning("the broker ended the consumption of a hold queue", ["queue": holds[queue / 2].queue])
    consumer?.close()
  }

  func channelLost(_ reason: ConnectionEnd) {
    log.warning("the broker closed the channel of the hold queues", ["reason": "\(reason)"])
    for index in holds.indices { holds[index].inHand = 0 }
    handler?.holdsLost()
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    for index in holds.indices { holds[index].inHand = 0 }
    handler?.holdsLost()
    defer { onEnded?() }
    if case .notFound = reason {
      holds = []
      places = [:]
      connection?.stop()
      connection = nil
      onQueueLost?()
    } else if let seconds = connection?.ended(at: time.now) {
      log.warning("broker connection ended", ["role": "hold queues", "reason": "\(reason)", "again_in_seconds": seconds])
    }
  }
}
