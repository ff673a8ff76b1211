import AMQP
import Broker
import Delivery
import Logging
import Reactor
import Settings
import Wire

/// What a shard hears from the broker, besides what concerns publications.
protocol BrokerSessionHandler: AnyObject {
  /// - Parameter isAlone: it is the only one of its kind that this process has in hand.
  func delivered(_ delivery: consuming Delivery, from queue: WorkQueue, isAlone: Bool)
  /// Every delivery in hand will be delivered again.
  func channelLost()
  /// A queue or exchange exists with other settings: only an operator can help.
  func topologyRefused(_ reason: String)
  /// The broker refuses the user or the virtual host, and has never let us in.
  func brokerRefused(_ reason: String)
}

/// A shard's connections to the broker, kept up: one publishes and declares the topology, another consumes, and where a registry is
/// configured two more take its changes and what devices acknowledge.
///
/// They are separate because a broker under a resource alarm stops reading from those that publish, and with them their
/// acknowledgements.
final class BrokerSession: Acknowledger {
  weak var handler: (any BrokerSessionHandler)?
  private let configuration: Configuration
  private let topology: Topology
  private let time: Turn
  private let log: Log
  private let name: String
  private let outbox: Outbox
  private let publishing: BrokerConnection
  private let consuming: BrokerConnection
  /// nil where no registry is configured.
  private(set) var changes: ChangeFeed?
  private(set) var acknowledgements: ChangeFeed?
  let holds: HoldFeed
  /// nil where requests are not traced.
  let trace: TraceFeed?
  private var publisher: Publisher?
  private var consumer: Consumer?
  private var isConsuming = false
  private var lanes: LaneSubscriptions
  /// The broker has accepted the user once.
  private(set) var hasBeenLetIn = false
  /// Why the last connection ended.
  private(set) var lastReason = "no answer"
  private var isDraining = false
  private var isDeclaring = false
  /// The publisher is ready, and the outbox does not have it yet.
  private var isPublisherNew = false
  private var noticesLogged: [TopologyNotice] = []
  /// Why it could not be declared the last time; nil once it has been.
  private var refusalLogged: String?
  /// Of the first shard, and of each shard of a batch.
  private(set) var watch: TopologyWatch?
  /// It ends when nothing comes any more, so it has to know what was missing by which messages come back.
  private let isBatch: Bool
  /// Applications whose hold queue was declared here.
  private var heldApps: Set<String> = []
  /// Questions on their way for hold queues, by tags below zero.
  private var questions: [Int: (Bool?) -> Void] = [:]
  private var lastQuestion = 0
  private var onClosed: (() -> Void)?

  init(_ setup: ShardSetup, host: any ShardHost, log: Log, shard: Int, isBatch: Bool, outbox: Outbox) {
    self.isBatch = isBatch
    configuration = setup.configuration
    time = host.time
    self.log = log
    self.outbox = outbox
    topology = configuration.topology
    name = "pushfleet \(setup.version) worker, \(ThisProcess.name), shard \(shard)"
    // One for the process: what kills it takes no other of them along.
    lanes = LaneSubscriptions(
      prefetch: configuration.prefetch, fanOutPrefetch: configuration.fanOut.prefetch, takesQuarantine: shard == 0)
    let dial: BrokerConnection.Dial = { host.dial($0, to: $1) }
    publishing = BrokerConnection(time: time, brokers: setup.brokers, dial: dial)
    consuming = BrokerConnection(time: time, brokers: setup.brokers, dial: dial)
    holds = HoldFeed(
      time: time, log: log, maximumBody: Self.keptBody,
      settings: { [name] in ConnectionSettings(broker: $0, name: "\(name), hold queues") },
      connection: { [time, consuming] in BrokerConnection(time: time, brokers: consuming.brokers, dial: dial) })
    trace = configuration.trace.map { [configuration, name] settings in
      TraceFeed(
        settings, topology: configuration.topology,
        connection: BrokerConnection(time: host.time, brokers: setup.brokers, dial: dial),
        time: host.time, log: log, connectionSettings: { ConnectionSettings(broker: $0, name: "\(name), trace") })
    }
    holds.onEnded = { [unowned self] in reportIfClosed() }
    trace?.onEnded = { [unowned self] in reportIfClosed() }
    outbox.renewConnection = { [unowned self] in publisher?.close() }
    publishing.makeMachine = { [unowned self] in makePublisher($0) }
    consuming.makeMachine = { [unowned self] in makeConsumer($0) }
    if shard == 0 || isBatch {
      watch = TopologyWatch(
        topology, time: time, log: log,
        publisher: { [unowned self] in
          publisher.flatMap { $0.isReady && !$0.isBlocked && !isDeclaring && !isDraining ? $0 : nil }
        }, restore: { [unowned self] in restoreTopology() })
    }
    guard configuration.registry != nil else { return }
    changes = makeFeed(.changes, topology.registryQueue, dial)
    acknowledgements = makeFeed(.acknowledgements, topology.acknowledgementQueue, dial)
  }

  private func makeFeed(_ content: ChangeFeed.Content, _ queue: String, _ dial: @escaping BrokerConnection.Dial) -> ChangeFeed {
    let feed = ChangeFeed(
      content, queue: queue, prefetch: configuration.prefetch, noteReader: NoteReader(prefix: topology.prefix), time: time,
      log: log,
      settings: { [name] in ConnectionSettings(broker: $0, name: "\(name), \(content.role)") },
      connection: { [unowned self] in BrokerConnection(time: time, brokers: consuming.brokers, dial: dial) })
    feed.onQueueLost = { [unowned self] in restoreTopology() }
    feed.onEnded = { [unowned self] in reportIfClosed() }
    return feed
  }

  private var feeds: [ChangeFeed] { [changes, acknowledgements].compactMap(\.self) }

  func start() {
    publishing.start()
    watch?.start()
  }

  private func makePublisher(_ broker: BrokerURI) -> Publisher {
    let publisher = Publisher(
      settings: ConnectionSettings(broker: broker, name: "\(name), publishing"), window: Outbox.window, handler: self)
    self.publisher = publisher
    return publisher
  }

  private func makeConsumer(_ broker: BrokerURI) -> Consumer {
    let settings = ConnectionSettings(broker: broker, name: "\(name), consuming")
    let consumer = Consumer(
      settings: settings, queues: lanes.sources.map { lanes.subscription($0, topology) }, maximumBody: Self.keptBody,
      handler: self)
    self.consumer = consumer
    applyWants()
    return consumer
  }

  /// Bytes of a body that are kept, parsed or not, so that a dead letter is the request as it came; a longer one is cut.
  private static let keptBody = 4 << 20

  // MARK: asked by the shard

  func acknowledge(_ token: DeliveryToken) { consumer?.acknowledge(token) }

  var isReadingPaused = false {
    didSet {
      consumer?.transport?.isReadingPaused = isReadingPaused
      holds.isReadingPaused = isReadingPaused
      // A new connection would bring more.
      consuming.isPaused = isReadingPaused
    }
  }

  func adjustPrefetch(fitting: Int, ahead: Int) {
    let isAheadChanged = lanes.takeAhead(ahead, at: time.now)
    if lanes.adjust(fitting: fitting, at: time.now) || isAheadChanged { applyWants() }
  }

  private func applyWants() {
    for (index, source) in lanes.sources.enumerated() { consumer?.want(lanes.isWanted(source), queue: index) }
  }

  func takeLanes(_ takes: Bool) {
    guard lanes.takeLanes(takes) else { return }
    log.warning(takes ? "the lanes are consumed again" : "every provider is in trouble: the lanes are not consumed")
    applyWants()
  }

  /// A resource alarm keeps the broker from taking publications.
  var isBlocked: Bool { publisher?.isBlocked == true }
  /// Connections that were there and ended, since the start.
  private(set) var connectionsEnded = 0

  /// Publishing and consuming.
  var isUp: Bool { publisher?.isReady == true && consumer?.isReady == true }

  /// Addresses, passwords and authorities for connections from now on; the present ones go on.
  func reload(_ brokers: [BrokerAddress]) {
    publishing.brokers = brokers
    consuming.brokers = brokers
    for feed in feeds { feed.reload(brokers) }
    holds.reload(brokers)
    trace?.reload(brokers)
  }

  /// No new delivery from now on; acknowledgements still go out.
  func cancelConsumers() {
    isDraining = true
    consumer?.cancelConsumers()
    for feed in feeds { feed.drain() }
    holds.drain()
  }

  /// Ready messages of each queue, in order; nil when one could not be asked.
  func countMessages(of queues: [String], _ completion: @escaping ([Int]?) -> Void) {
    count(queues[...], [], completion)
  }

  /// Declares the hold queue of an application, and says whether it is there now.
  func declareHold(_ app: String, _ completion: @escaping (Bool) -> Void) {
    heldApps.insert(app)
    declare(topology.holdCommands(app)[...], completion)
  }

  private func declare(_ commands: ArraySlice<Command>, _ completion: @escaping (Bool) -> Void) {
    guard let command = commands.first else { return completion(true) }
    guard let publisher, publisher.isReady else { return completion(false) }
    publisher.perform(command) { [weak self] answer in
      guard let self, case .success = answer else { return completion(false) }
      declare(commands.dropFirst(), completion)
    }
  }

  /// Ready messages of an application's hold queue; nil where there is none, or the broker can't be asked.
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void) {
    countMessages(of: [topology.holdQueue(app)]) { completion($0?.first) }
  }

  private func count(_ queues: ArraySlice<String>, _ counts: [Int], _ completion: @escaping ([Int]?) -> Void) {
    guard let queue = queues.first else { return completion(counts) }
    guard let publisher, publisher.isReady else { return completion(nil) }
    publisher.perform(.queueInspect(name: queue)) { [weak self] answer in
      guard let self, case .success(.queue(let messages, _)) = answer else { return completion(nil) }
      count(queues.dropFirst(), counts + [messages], completion)
    }
  }

  /// How many shards of the fleet take requests, as the consumers of a queue that each of them consumes once; nil when this one takes none, or
  /// the broker can't be asked.
  func countShards(_ completion: @escaping (Int?) -> Void) {
    guard let publisher, publisher.isReady, consumer?.isReady == true, lanes.takesLanes, !isDraining else {
      return completion(nil)
    }
    publisher.perform(.queueInspect(name: topology.name(WorkQueue.fanoutNormal.origin))) { answer in
      guard case .success(.queue(_, let consumers)) = answer, consumers > 0 else { return completion(nil) }
      completion(consumers)
    }
  }

  /// Flushes what is acknowledged, says goodbye on every connection, then calls `completion`.
  func close(_ completion: @escaping () -> Void) {
    isDraining = true
    onClosed = completion
    publishing.stop()
    consuming.stop()
    publisher?.close()
    consumer?.close()
    for feed in feeds { feed.close() }
    holds.close()
    trace?.close()
    time.schedule(after: Self.closeTimeout) { [weak self] in self?.reportClosed() }
    reportIfClosed()
  }

  /// Seconds for which the broker may take in the last acknowledgements.
  private static let closeTimeout = 10.0

  private func reportIfClosed() {
    if publisher == nil, consumer == nil, holds.isClosed, trace?.isClosed != false, feeds.allSatisfy(\.isClosed) {
      reportClosed()
    }
  }

  private func reportClosed() {
    onClosed?()
    onClosed = nil
  }

  // MARK: topology, then consuming

  private static let declarationPause = 5.0

  private func declareTopology(on publisher: Publisher) {
    isDeclaring = true
    publisher.declare(topology) { [weak self] result in
      guard let self else { return }
      isDeclaring = false
      self.publish(on: publisher)
      switch result {
      case .success(let notices):
        for notice in notices where !noticesLogged.contains(notice) { log.warning("\(notice)") }
        noticesLogged = notices
        refusalLogged = nil
        watch?.declared()
        for app in heldApps.sorted() { declare(topology.holdCommands(app)[...]) { _ in } }
        startConsuming()
      case .failure(let failure) where failure.reason.isFatalConfiguration:
        handler?.topologyRefused("\(failure); delete it, or choose another prefix")
      case .failure(let failure):
        if refusalLogged != "\(failure)" { log.warning("the topology could not be declared", ["reason": "\(failure)"]) }
        refusalLogged = "\(failure)"
        // A user without the permission to declare may still consume what an operator has declared.
        if case .accessRefused = failure.reason { return startConsuming() }
        time.schedule(after: Self.declarationPause) { [weak self] in self?.restoreTopology() }
      }
    }
  }

  private func startConsuming() {
    for feed in feeds { feed.topologyDeclared() }
    trace?.start()
    guard !isConsuming, !isDraining else { return }
    isConsuming = true
    consuming.start()
  }

  /// A queue or exchange is gone: declared anew, it can be used again.
  private func restoreTopology() {
    if let publisher, publisher.isReady, !isDeclaring { declareTopology(on: publisher) }
  }

  private func noteEnd(_ connection: BrokerConnection, _ role: String, _ reason: ConnectionEnd) {
    lastReason = "\(reason)"
    if reason.isRefusal, !hasBeenLetIn, !isDraining { handler?.brokerRefused("\(reason)") }
    let wasEstablished = connection.isEstablished
    if wasEstablished, !isDraining { connectionsEnded += 1 }
    guard let seconds = connection.ended(at: time.now) else { return }
    log.warning(
      wasEstablished ? "broker connection ended" : "no broker connection",
      ["role": role, "reason": "\(reason)", "again_in_seconds": seconds])
  }
}

extension BrokerSession: PublisherHandler {
  func ready(_ publisher: Publisher) {
    hasBeenLetIn = true
    publishing.established(at: time.now)
    log.info("publishing", ["broker": publishing.address])
    // Declared first: under an alarm the broker reads nothing more of a connection once it has published. But what is to be published
    // doesn't wait long for a queue that can't be declared.
    isPublisherNew = true
    if isBatch, !isConsuming, let watch {
      watch.lookFirst(publisher) { [weak self, weak publisher] in
        if let publisher, publisher.isReady { self?.declareTopology(on: publisher) }
      }
    } else {
      declareTopology(on: publisher)
    }
    time.schedule(after: Self.declarationPause) { [weak self, weak publisher] in
      if let publisher { self?.publish(on: publisher) }
    }
  }

  private func publish(on publisher: Publisher) {
    guard isPublisherNew, publisher === self.publisher, publisher.isReady else { return }
    isPublisherNew = false
    outbox.use(publisher)
  }

  func confirmed(_ tag: Int) {
    if tag < 0 { answer(tag, true) } else { outbox.confirmed(tag) }
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    if tag < 0 {
      if case .returned = failure { return answer(tag, false) }
      return answer(tag, nil)
    }
    if outbox.failed(tag, failure) { restoreTopology() }
  }

  func blocked(_ publisher: Publisher, reason: String) {
    log.warning("the broker blocks publishing: a resource alarm", ["reason": reason])
  }

  func unblocked(_ publisher: Publisher) {
    log.info("the broker takes publications again")
    outbox.use(publisher)
  }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    outbox.use(nil)
    noteEnd(publishing, "publishing", reason)
    reportIfClosed()
  }
}

extension BrokerSession: ConsumerHandler {
  func ready(_ consumer: Consumer) {
    consuming.established(at: time.now)
    log.info("consuming", ["broker": consuming.address])
    if isDraining { consumer.cancelConsumers() }
  }

  func delivered(_ delivery: consuming Delivery) {
    switch lanes.sources[delivery.consumer] {
    case .lane(let queue), .more(let queue), .ahead(let queue, _):
      handler?.delivered(consume delivery, from: queue, isAlone: false)
    case .quarantine:
      let origin = delivery.properties.headers.string(Topology.originHeader)
      handler?.delivered(consume delivery, from: origin.flatMap { WorkQueue(origin: $0) } ?? .sendNormal, isAlone: true)
    }
  }

  func cancelled(queue: Int) {
    log.error(
      "the broker ended the consumption of a queue", ["queue": lanes.subscription(lanes.sources[queue], topology).queue])
    restoreTopology()
    time.schedule(after: 1) { [weak self] in self?.consumer?.consume(queue: queue) }
  }

  func channelLost(_ reason: ConnectionEnd) {
    log.warning("the broker closed the consuming channel", ["reason": "\(reason)"])
    handler?.channelLost()
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    handler?.channelLost()
    if case .notFound = reason { restoreTopology() }
    noteEnd(consuming, "consuming", reason)
    reportIfClosed()
  }
}

extension BrokerSession: HoldBroker {
  var canAsk: Bool { publisher?.canPublish == true && !isPublisherNew && isConsuming }

  /// Asks by a message of no meaning, which comes back where there is no queue for it: RabbitMQ logs a question that names a queue which isn't
  /// there as an error.
  func findHold(_ app: String, _ completion: @escaping (Bool?) -> Void) {
    guard let publisher, canAsk else { return completion(nil) }
    lastQuestion -= 1
    questions[lastQuestion] = completion
    var properties = BasicProperties()
    properties.headers.append(Topology.questionHeader, .bool(true))
    publisher.publish(
      exchange: Array(topology.holdExchange.utf8), routingKey: Array(app.utf8), properties: properties, body: [],
      tag: lastQuestion)
  }

  private func answer(_ question: Int, _ isThere: Bool?) { questions.removeValue(forKey: question)?(isThere) }

  func consumeHold(_ app: String, index: Int) { holds.consume(topology.holdQueue(app), of: index) }
  func flow(_ app: Int) -> HoldFeed.Flow { holds.flow(app) }
  func setFlow(_ flow: HoldFeed.Flow, _ app: Int, isForProbe: Bool) { holds.setFlow(flow, app, isForProbe: isForProbe) }
  func acknowledgeHeld(_ token: DeliveryToken, _ app: Int) { holds.acknowledge(token, app) }
  func heldInHand(_ app: Int) -> Int { holds.inHand(app) }
  var heldInHand: Int { holds.inHand }
}

extension BrokerSession: ReplyBroker {
  var isReachable: Bool { publisher?.isReady == true }

  func inspect(_ queue: String, _ completion: @escaping (ReplyQueueKind?) -> Void) {
    guard let publisher, publisher.isReady else { return completion(nil) }
    publisher.perform(.queueInspect(name: queue)) { [weak publisher] answer in
      completion(ReplyQueueKind(answer, isConnected: publisher?.isReady == true))
    }
  }
}
