import AMQP
import DeviceRegistry
import Logging
import Reactor
import Wire

/// Receives the registry's changes for a shard.
package protocol ChangeFeedHandler: AnyObject {
  func registryChangeDelivered(_ delivery: Delivery)
  /// The changes in hand will be delivered again, to this shard or another.
  func registryChangesLost()
}

/// A shard's separate connection for messages that change the registry. A change that waits for the registry delays other
/// deliveries on its connection, and the broker closes the channel if it waits too long. Neither may affect pushes.
package final class ChangeFeed {
  package weak var handler: (any ChangeFeedHandler)?
  /// The queue is missing, or the broker has ended its consumption.
  package var onQueueLost: (() -> Void)?
  package var onEnded: (() -> Void)?

  private let content: Content
  private let subscription: Consumer.Subscription
  private let noteReader: NoteReader
  private let makeConnection: () -> BrokerConnection
  private let time: Turn
  private let log: Log
  private var throttle = ChangeThrottle()
  private var window = ChangeWindow()
  private var state = State.idle
  private var consumer: Consumer?
  private var isDeclared = false
  private var isDraining = false

  private enum State {
    /// Next: `open`, when changes can be applied.
    case idle
    /// Connects and reconnects. Next: `closing`.
    case open(BrokerConnection)
    /// Closes as soon as possible. Next: `idle`.
    case closing(BrokerConnection)
  }

  package struct Content {
    let words: String
    package let role: String
    /// Maximum messages in hand, and maximum bytes of one. If all have the maximum size, one prefetch needs sixteen connections.
    /// The queue's delivery limit is far above that.
    let prefetch: Int
    let largest: Int

    package static let changes = Content(
      words: "the registry's changes", role: "registry changes", prefetch: 64, largest: RegistryChange.mostBytes)
    package static let acknowledgements = Content(
      words: "acknowledgements", role: "acknowledgements", prefetch: 256, largest: Acknowledgement.mostBytes)
  }

  package init(
    _ content: Content, queue: String, prefetch: Int, noteReader: NoteReader, time: Turn, log: Log,
    connection: @escaping () -> BrokerConnection
  ) {
    self.content = content
    self.noteReader = noteReader
    subscription = Consumer.Subscription(
      queue: queue, prefetch: UInt16(min(prefetch, content.prefetch)), isOrdered: true)
    self.time = time
    self.log = log
    makeConnection = connection
  }

  package var isClosed: Bool { consumer == nil }

  // MARK: - Requests of the shard

  package func acknowledge(_ delivery: Delivery) {
    throttle.progressed()
    consumer?.acknowledge(delivery.token)
    if window.done(delivery.weight) { leave() }
  }

  /// Proves that this worker is the active consumer: the broker activates another one only after this channel is gone.
  package func prove(_ then: @escaping (Bool) -> Void) {
    guard let consumer, consumer.isReady else { return then(false) }
    consumer.inspect(queue: 0) { consumers in then(consumers > 0) }
  }

  package func topologyDeclared() {
    isDeclared = true
    check()
  }

  package func registryChanged(isUsable: Bool) {
    throttle.registryChanged(isUsable: isUsable, at: time.now)
    check()
  }

  /// Call this about once a second.
  package func check() {
    guard !isDraining else { return }
    switch state {
    case .idle where isDeclared && throttle.begins(at: time.now): open()
    case .open where (consumer?.unacknowledged ?? 0) == 0 && throttle.leaves(at: time.now): leave()
    case .idle, .open, .closing: return
    }
  }

  /// Returns the changes in hand to the queue. Another worker, if there is one, becomes the active consumer.
  package func giveBack() {
    log.warning("\(content.words) go back to the queue: the registry does not accept them from this worker")
    throttle.gaveBack(at: time.now)
    leave()
  }

  /// Accepts no new messages. Those in hand stay until `close`, because the next consumer would overtake them.
  package func drain() { isDraining = true }

  package func close() {
    isDraining = true
    leave()
  }

  // MARK: - The connection

  package func reload(_ brokers: [BrokerAddress]) {
    if case .open(let connection) = state { connection.brokers = brokers }
  }

  private func open() {
    let connection = makeConnection()
    connection.makeMachine = { [unowned self] settings in
      let consumer = Consumer(settings: settings, queues: [subscription], maximumBody: content.largest, handler: self)
      self.consumer = consumer
      window = ChangeWindow()
      return consumer
    }
    state = .open(connection)
    connection.start()
  }

  private func leave() {
    guard case .open(let connection) = state else { return }
    connection.stop()
    state = consumer == nil ? .idle : .closing(connection)
    consumer?.close()
  }
}

extension ChangeFeed: ConsumerHandler {
  package func ready(_ consumer: Consumer) {
    guard case .open(let connection) = state else { return consumer.close() }
    connection.established(at: time.now)
    log.info("consuming \(content.words)", ["broker": connection.address])
  }

  package func delivered(_ delivery: consuming Delivery) {
    noteReader.limitHeaders(of: &delivery, queue: nil)
    // A stopping worker leaves further messages to the next consumer.
    if case .open = state, !isDraining, window.take(delivery.weight) { handler?.registryChangeDelivered(delivery) }
  }

  package func cancelled(queue: Int) {
    log.error("the broker ended the consumption of a queue", ["queue": subscription.queue])
    onQueueLost?()
    time.schedule(after: 1) { [weak self] in self?.consumer?.consume(queue: queue) }
  }

  /// The broker's timeout came before ours.
  package func channelLost(_ reason: ConnectionEnd) {
    log.warning("the broker closed the channel of \(content.words)", ["reason": "\(reason)"])
    handler?.registryChangesLost()
    throttle.gaveBack(at: time.now)
    leave()
  }

  package func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    handler?.registryChangesLost()
    defer { onEnded?() }
    guard case .open(let connection) = state else {
      state = .idle
      return
    }
    if case .notFound = reason { onQueueLost?() }
    connection.ended(reason, log, ["role": content.role])
  }
}
