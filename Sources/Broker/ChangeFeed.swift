import AMQP
import DeviceRegistry
import Logging
import Reactor
import Wire

/// What a shard hears of the registry's changes.
package protocol ChangeFeedHandler: AnyObject {
  func registryChangeDelivered(_ delivery: Delivery)
  /// The changes in hand will be delivered again, here or elsewhere.
  func registryChangesLost()
}

/// A shard's connection for what changes the registry, of its own: a change that waits for the registry holds up what is delivered
/// beside it, and the broker closes the channel of one that waits too long. Neither may touch a push.
package final class ChangeFeed {
  package weak var handler: (any ChangeFeedHandler)?
  /// The queue is gone, or the broker has stopped its consumption.
  package var onQueueLost: (() -> Void)?
  package var onEnded: (() -> Void)?

  private let settings: (BrokerURI) -> ConnectionSettings
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
    /// Becomes open when changes can be applied.
    case idle
    /// Dials, and dials again, by itself. Becomes closing.
    case open(BrokerConnection)
    /// Says goodbye, now or as soon as it can. Becomes idle.
    case closing(BrokerConnection)
  }

  /// What comes by the queue.
  package struct Content {
    /// For the log.
    let words: String
    package let role: String
    /// Messages in hand at once, and bytes of one. The largest fill the window in sixteen connections, far from the queue's delivery limit.
    let prefetch: Int
    let largest: Int

    package static let changes = Content(
      words: "the registry's changes", role: "registry changes", prefetch: 64, largest: RegistryChange.mostBytes)
    package static let acknowledgements = Content(
      words: "acknowledgements", role: "acknowledgements", prefetch: 256, largest: Acknowledgement.mostBytes)
  }

  package init(
    _ content: Content, queue: String, prefetch: Int, noteReader: NoteReader, time: Turn, log: Log,
    settings: @escaping (BrokerURI) -> ConnectionSettings,
    connection: @escaping () -> BrokerConnection
  ) {
    self.content = content
    self.noteReader = noteReader
    subscription = Consumer.Subscription(
      queue: queue, prefetch: UInt16(min(prefetch, content.prefetch)), isOrdered: true)
    self.time = time
    self.log = log
    self.settings = settings
    makeConnection = connection
  }

  /// No connection is there or on its way.
  package var isClosed: Bool { consumer == nil }

  // MARK: asked by the shard

  package func acknowledge(_ delivery: Delivery) {
    throttle.progressed()
    consumer?.acknowledge(delivery.token)
    if window.done(delivery.weight) { leave() }
  }

  /// The broker gives the queue to nobody else before the channel that consumes it is gone, and a channel that answers is there.
  package func prove(_ then: @escaping (Bool) -> Void) {
    guard let consumer, consumer.isReady else { return then(false) }
    consumer.inspect(queue: 0) { consumers in then(consumers > 0) }
  }

  /// The queue is there.
  package func topologyDeclared() {
    isDeclared = true
    check()
  }

  package func registryChanged(isUsable: Bool) {
    throttle.registryChanged(isUsable: isUsable, at: time.now)
    check()
  }

  /// To be called about once a second.
  package func check() {
    guard !isDraining else { return }
    switch state {
    case .idle where isDeclared && throttle.begins(at: time.now): open()
    case .open where (consumer?.unacknowledged ?? 0) == 0 && throttle.leaves(at: time.now): leave()
    case .idle, .open, .closing: return
    }
  }

  /// Returns the changes in hand; another worker becomes the active consumer, if there is one.
  package func giveBack() {
    log.warning("\(content.words) go back to the queue: the registry doesn't take them here")
    throttle.gaveBack(at: time.now)
    leave()
  }

  /// Nothing new from now on. What is in hand stays until `close`: the next worker to consume would overtake it.
  package func drain() { isDraining = true }

  package func close() {
    isDraining = true
    leave()
  }

  // MARK: the connection

  /// Addresses for connections from now on.
  package func reload(_ brokers: [BrokerAddress]) {
    if case .open(let connection) = state { connection.brokers = brokers }
  }

  private func open() {
    let connection = makeConnection()
    connection.makeMachine = { [unowned self] broker in
      let consumer = Consumer(
        settings: settings(broker), queues: [subscription], maximumBody: content.largest, handler: self)
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
    // A stopping worker leaves them to the broker and the next one.
    if case .open = state, !isDraining, window.take(delivery.weight) { handler?.registryChangeDelivered(delivery) }
  }

  package func cancelled(queue: Int) {
    log.error("the broker ended the consumption of a queue", ["queue": subscription.queue])
    onQueueLost?()
    time.schedule(after: 1) { [weak self] in self?.consumer?.consume(queue: queue) }
  }

  /// The broker's time-out has come before ours.
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
    guard let seconds = connection.ended(at: time.now) else { return }
    log.warning(
      "broker connection ended", ["role": content.role, "reason": "\(reason)", "again_in_seconds": seconds])
  }
}
