import AMQP
import Broker
import Delivery
import Logging
import Reactor
import Settings
import Wire

/// A shard's broker connections, with reconnection: one publishes and declares the topology, one consumes, and with a registry
/// two more consume registry changes and acknowledgements from devices.
///
/// They are separate, because a broker under a resource alarm stops reading from publishing connections, including their
/// acknowledgements.
final class BrokerSession: Acknowledger {
  weak var shard: Shard?
  private let configuration: Configuration
  private let topology: Topology
  private let time: Turn
  private let log: Log
  private let outbox: Outbox
  private let publishing: BrokerConnection
  private let consuming: BrokerConnection
  /// nil without a registry.
  private(set) var changes: ChangeFeed?
  private(set) var acknowledgements: ChangeFeed?
  let holds: HoldFeed
  /// nil if requests are not traced.
  let trace: TraceFeed?
  private var publisher: Publisher?
  private var consumer: Consumer?
  private var isConsuming = false
  private var lanes: LaneSubscriptions
  /// True once the broker has accepted the user.
  private(set) var hasBeenLetIn = false
  private(set) var lastReason = "no answer"
  private var isDraining = false
  private var isDeclaring = false
  /// True while the ready publisher has not been handed to the outbox.
  private var isPublisherNew = false
  private var noticesLogged: [TopologyNotice] = []
  /// Failed declarations on the present connection.
  private var refusalsLogged: Set<String> = []
  /// Set for the first shard, and for each shard of a batch.
  private(set) var watch: TopologyWatch?
  /// True for `--until-empty`: checks the topology before declaring it, because missing parts may have kept messages away.
  private let isBatch: Bool
  private var heldApps: Set<String> = []
  /// Pending questions for hold queues, by their negative tags.
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
    let name = "pushfleet \(setup.version) worker, \(ThisProcess.name), shard \(shard)"
    // Only one quarantine consumer per process, so that a poison message takes down no other message with it.
    lanes = LaneSubscriptions(
      prefetch: configuration.prefetch, fanOutPrefetch: configuration.fanOut.prefetch,
      laneQueues: configuration.laneQueues, takesQuarantine: shard == 0, random: &host.time.random)
    let connection = { [time] (role: String, brokers: [BrokerAddress]) in
      BrokerConnection(time: time, brokers: brokers, name: "\(name), \(role)") { host.dial($0, to: $1) }
    }
    publishing = connection("publishing", setup.brokers)
    consuming = connection("consuming", setup.brokers)
    holds = HoldFeed(time: time, log: log, maximumBody: Self.keptBody) { [consuming] in
      connection("hold queues", consuming.brokers)
    }
    trace = configuration.trace.map { [topology] settings in
      TraceFeed(settings, topology: topology, connection: connection("trace", setup.brokers), time: host.time, log: log)
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
    changes = makeFeed(.changes, topology.registryQueue, connection)
    acknowledgements = makeFeed(.acknowledgements, topology.acknowledgementQueue, connection)
  }

  private func makeFeed(
    _ content: ChangeFeed.Content, _ queue: String, _ connection: @escaping (String, [BrokerAddress]) -> BrokerConnection
  ) -> ChangeFeed {
    let feed = ChangeFeed(
      content, queue: queue, prefetch: configuration.prefetch, noteReader: NoteReader(prefix: topology.prefix), time: time,
      log: log, connection: { [unowned self] in connection(content.role, consuming.brokers) })
    feed.onQueueLost = { [unowned self] in restoreTopology() }
    feed.onEnded = { [unowned self] in reportIfClosed() }
    return feed
  }

  private var feeds: [ChangeFeed] { [changes, acknowledgements].compactMap(\.self) }

  func start() {
    publishing.start()
    watch?.start()
  }

  private func makePublisher(_ settings: ConnectionSettings) -> Publisher {
    let publisher = Publisher(settings: settings, window: Outbox.window, handler: self)
    self.publisher = publisher
    return publisher
  }

  private func makeConsumer(_ settings: ConnectionSettings) -> Consumer {
    let consumer = Consumer(
      settings: settings, queues: lanes.sources.map { lanes.subscription($0, topology) }, maximumBody: Self.keptBody,
      handler: self)
    self.consumer = consumer
    applyWants()
    return consumer
  }

  /// Bytes of a body to keep, so that a dead letter is the original request; longer bodies are cut.
  private static let keptBody = 4 << 20

  // MARK: used by the shard

  func acknowledge(_ token: DeliveryToken) { consumer?.acknowledge(token) }

  var isReadingPaused = false {
    didSet {
      consumer?.transport?.isReadingPaused = isReadingPaused
      holds.isReadingPaused = isReadingPaused
      // A new connection would deliver more.
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

  /// Stops consuming these lanes, and no others.
  func pause(_ paused: Set<WorkQueue>) { if lanes.pause(paused) { applyWants() } }

  var isBlocked: Bool { publisher?.isBlocked == true }
  /// Established connections that have ended since the start.
  private(set) var connectionsEnded = 0

  /// True while publishing and consuming.
  var isUp: Bool { publisher?.isReady == true && consumer?.isReady == true }

  /// Sets addresses, passwords and CAs for new connections; existing ones continue.
  func reload(_ brokers: [BrokerAddress]) {
    publishing.brokers = brokers
    consuming.brokers = brokers
    for feed in feeds { feed.reload(brokers) }
    holds.reload(brokers)
    trace?.reload(brokers)
  }

  /// Stops new deliveries; acknowledgements are still sent.
  func cancelConsumers() {
    isDraining = true
    consumer?.cancelConsumers()
    for feed in feeds { feed.drain() }
    holds.drain()
  }

  /// Ready messages per queue, in order; nil if a queue can't be inspected.
  func countMessages(of queues: ArraySlice<String>, _ counts: [Int] = [], _ completion: @escaping ([Int]?) -> Void) {
    guard let queue = queues.first else { return completion(counts) }
    guard let publisher, publisher.isReady else { return completion(nil) }
    publisher.perform(.queueInspect(name: queue)) { [weak self] answer in
      guard let self, case .success(.queue(let messages, _)) = answer else { return completion(nil) }
      countMessages(of: queues.dropFirst(), counts + [messages], completion)
    }
  }

  /// Declares an application's hold queue; reports whether it exists now.
  func declareHold(_ app: String, _ completion: @escaping (Bool?) -> Void) {
    heldApps.insert(app)
    guard let publisher, publisher.isReady else { return completion(nil) }
    publisher.declare(topology.holdCommands(app)[...], topology) { [weak self] result in
      guard case .failure(let failure) = result else { return completion(true) }
      self?.noteRefusal("the hold queue of an application", failure)
      completion(self?.publisher?.isReady == true ? false : nil)
    }
  }

  private func noteRefusal(_ what: String, _ failure: TopologyFailure) {
    guard !isDraining, refusalsLogged.insert("\(failure)").inserted else { return }
    log.warning("\(what) could not be declared", ["reason": "\(failure)"])
  }

  /// Ready messages in an application's hold queue; nil if there is none or the broker can't be asked.
  func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void) {
    countMessages(of: [topology.holdQueue(app)]) { completion($0?.first) }
  }

  /// The fleet's consuming shards, by the consumers of a queue that each consumes once; nil if unknown or not consuming.
  func countShards(_ completion: @escaping (Int?) -> Void) {
    guard let publisher, publisher.isReady, consumer?.isReady == true, lanes.takesLanes, !isDraining else {
      return completion(nil)
    }
    publisher.perform(.queueInspect(name: lanes.countedQueue(topology))) { answer in
      guard case .success(.queue(_, let consumers)) = answer, consumers > 0 else { return completion(nil) }
      completion(consumers)
    }
  }

  /// Sends pending acknowledgements, closes all connections, then calls `completion`.
  /// - Parameter timeout: seconds for the broker's answers.
  func close(within timeout: Double, _ completion: @escaping () -> Void) {
    isDraining = true
    onClosed = completion
    publishing.stop()
    consuming.stop()
    publisher?.close()
    consumer?.close()
    for feed in feeds { feed.close() }
    holds.close()
    trace?.close()
    time.schedule(after: timeout) { [weak self] in
      guard let self, onClosed != nil else { return }
      consumer?.logIfUnanswered(log)
      holds.logIfUnanswered()
      reportClosed()
    }
    reportIfClosed()
  }

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
        watch?.declared()
        for app in heldApps.sorted() { declareHold(app) { _ in } }
        startConsuming()
      case .failure(let failure) where failure.reason.isFatalConfiguration:
        shard?.finish(.misconfigured("\(failure); delete it, or choose another prefix"))
      case .failure(let failure):
        noteRefusal("the topology", failure)
        // A user who may not declare may still consume existing queues.
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

  /// Declares the topology again after a queue or exchange was deleted.
  private func restoreTopology() {
    if let publisher, publisher.isReady, !isDeclaring { declareTopology(on: publisher) }
  }

  private func noteEnd(_ connection: BrokerConnection, _ role: String, _ reason: ConnectionEnd) {
    lastReason = "\(reason)"
    if reason.isRefusal, !hasBeenLetIn, !isDraining { shard?.finish(.unreachable("\(reason)")) }
    if connection.isEstablished, !isDraining { connectionsEnded += 1 }
    connection.ended(reason, log, ["role": role])
  }
}

extension BrokerSession: PublisherHandler {
  func ready(_ publisher: Publisher) {
    hasBeenLetIn = true
    publishing.established(at: time.now)
    log.info("publishing", ["broker": publishing.address])
    // Declare before publishing: under an alarm the broker stops reading from a connection that has published. But a failing
    // declaration must not delay publications for long.
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
    log.info("the broker accepts publications again")
    outbox.use(publisher)
  }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    outbox.use(nil)
    refusalsLogged = []
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
    case .lane(let queue, _), .more(let queue, _), .ahead(let queue, _, _):
      shard?.pipeline.accept(consume delivery, from: queue)
    case .quarantine:
      let origin = delivery.properties.headers.string(Topology.originHeader)
      shard?.pipeline.accept(
        consume delivery, from: origin.flatMap { WorkQueue(origin: $0) } ?? .sendNormal, isAlone: true)
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
    shard?.pipeline.channelLost()
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    shard?.pipeline.channelLost()
    if case .notFound = reason { restoreTopology() }
    noteEnd(consuming, "consuming", reason)
    consumer.logIfUnanswered(log)
    reportIfClosed()
  }
}

extension BrokerSession: HoldBroker {
  var canAsk: Bool { publisher?.canPublish == true && !isPublisherNew && isConsuming }

  /// Publishes a marker message, which is returned if there is no queue. A passive declaration would leave an error in the log.
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

  func inspect(_ queue: String, _ completion: @escaping (ReplyQueues.Verdict?) -> Void) {
    guard let publisher, publisher.isReady else { return completion(nil) }
    publisher.perform(.queueInspect(name: queue)) { [weak publisher] answer in
      completion(ReplyQueues.Verdict(answer, isConnected: publisher?.isReady == true))
    }
  }
}
