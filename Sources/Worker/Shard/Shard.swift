import AMQP
import Broker
import Delivery
import DeviceRegistry
import Logging
import Providers
import PushCore
import Reactor
import Settings
import Wire

/// One thread of a worker: broker connections, provider pools, and the pipeline between them. Shards share no deliveries.
package final class Shard: TurnHook {
  private let configuration: Configuration
  private let number: Int
  private let isUntilEmpty: Bool
  private let control: ShardControl
  let time: Turn
  private let log: Log
  let pipeline: Pipeline
  private let changes: ChangeQueue
  private let acknowledgements: AcknowledgementQueue
  let registry: RegistryClient?
  /// Set in the first shard if there is a registry.
  private let audit: AuditPublisher?
  /// Set in the first shard if there is a registry and devices become stale.
  private let stale: StaleWatch?
  let outbox: Outbox
  private let replyQueues: ReplyQueues
  let broker: BrokerSession
  let pools: PoolSet
  private var emptiness: EmptinessCheck?
  private var batchNotice = BatchNotice()
  private var isReloading = false
  private var expiryWatch = ExpiryWatch()
  private var fleetSize = FleetSize()
  private var nextFleetSize = MonotonicTime(nanoseconds: .min)
  private var drainDeadline: MonotonicTime?
  let fleetFigures: FleetFigures
  private(set) var loopLag = LoopLag()
  /// By provider.
  private(set) var connectionsOpened = Platform.allCases.map { _ in 0 }
  private(set) var goAways = Platform.allCases.map { _ in 0 }
  private var end: Fleet.End?
  private var onEnded: (() -> Void)?

  /// - Throws: if the registry can't be used.
  package init(_ setup: ShardSetup, number: Int, isUntilEmpty: Bool, host: any ShardHost, control: ShardControl)
    throws(ConfigurationError)
  {
    self.control = control
    configuration = setup.configuration
    self.number = number
    self.isUntilEmpty = isUntilEmpty
    time = host.time
    log = Log(level: configuration.log, format: configuration.logFormat, shard: number, to: host.log)
    outbox = Outbox(time: time, log: log)
    replyQueues = ReplyQueues(time: time)
    replyQueues.listed = configuration.listedReplyQueues
    pools = PoolSet(setup, host: host)
    registry = try configuration.registryClient(host: host, log: log)
    let apps = pools.apps
    let publications = OutcomePublications(prefix: configuration.prefix, apps: apps, steps: configuration.retry.steps)
    let tools = ShardTools(
      apps: apps, registry: registry, publications: publications, outbox: outbox, time: time, log: log)
    changes = ChangeQueue(tools, limits: configuration.registryLimits, replyQueues: replyQueues)
    acknowledgements = AcknowledgementQueue(tools, wantsReceipts: configuration.receipts)
    let isWatching = number == 0 && registry != nil
    audit = isWatching ? AuditPublisher(tools) : nil
    stale = isWatching ? configuration.registryStaleAfter.map { StaleWatch(tools, after: $0) } : nil
    pipeline = Pipeline(configuration, tools, accounts: pools.accounts, replyQueues: replyQueues)
    let (holds, controls) = (pipeline.dispatcher.holds, pipeline.dispatcher.controls)
    pipeline.observers.spans.exporter = try configuration.traces.map { [time, log] (traces) throws(ConfigurationError) in
      try SpanExporter(traces, version: setup.version, time: time, dialer: host, log: log)
    }
    broker = BrokerSession(setup, host: host, log: log, shard: number, isBatch: isUntilEmpty, outbox: outbox)
    fleetFigures = FleetFigures(configuration.topology, broker: broker, registry: registry, time: time)
    controls.onRead = { [broker] in broker.pause(controls.pausedLanes) }
    broker.shard = self
    pipeline.backpressure.acknowledger = broker
    pipeline.observers.trace.recorder = broker.trace?.recorder
    holds.broker = broker
    broker.holds.onDelivered = { [weak self] in self?.heldDelivered($0, app: $1) }
    broker.holds.onLost = { [pipeline] in pipeline.channelLost(ofHolds: true) }
    broker.holds.onQueueLost = { holds.lost() }
    broker.changes?.handler = changes
    changes.feed = broker.changes
    broker.acknowledgements?.handler = acknowledgements
    acknowledgements.feed = broker.acknowledgements
    replyQueues.broker = broker
    replyQueues.onAnswer = { [unowned self] in decideReplies() }
    pools.connect(handler: pipeline, observer: self)
    pools.onOpened = { [unowned self] in pipeline.dispatcher.follow(pools.accounts) }
  }

  /// Starts the work, in the turns of the host.
  /// - Parameter onEnded: called when the shard has drained, found all queues empty, or failed; possibly more than once.
  package func start(_ onEnded: @escaping () -> Void) {
    self.onEnded = onEnded
    startBroker()
    if isUntilEmpty { endUnlessReached() }
    everySecond()
    everyQuarter()
    if isUntilEmpty { watchEmptiness() }
  }

  /// A shard consumes once it knows what operators have paused, or after a moment if the registry doesn't answer.
  private func startBroker() {
    var isDue = true
    let start = { [weak self] in
      if isDue, self?.isDraining == false { self?.broker.start() }
      isDue = false
    }
    func look() {
      let controls = pipeline.dispatcher.controls
      controls.look { [weak self] in
        if controls.areKnown { return start() }
        self?.time.schedule(after: Self.lookPause) { if isDue { look() } }
      }
    }
    look()
    time.schedule(after: Self.longestLook, start)
  }

  /// Seconds for which a shard waits for the registry, and seconds between two looks.
  private static let longestLook = 2.0
  private static let lookPause = 0.25

  /// Closes pools and registry. Returns how the shard ended, and its counters.
  package func close() -> (Fleet.End, Counters) {
    pools.shutdown()
    registry?.close()
    return (end ?? .done, counters)
  }

  var counters: Counters {
    var counters = pipeline.observers.figures.counters
    counters += changes.counters
    counters += acknowledgements.counters
    if let stale { counters += stale.counters }
    if let trace = broker.trace { counters += trace.recorder.counters }
    if let spans { counters += spans.counters }
    return counters
  }

  var spans: SpanExporter? { pipeline.observers.spans.exporter }
  var inHand: Int { pipeline.table.count + changes.count + acknowledgements.count }
  var isDraining: Bool { drainDeadline != nil }
  private var isIdle: Bool { pipeline.isIdle && changes.count == 0 && acknowledgements.count == 0 }

  /// Ends a batch that can't reach the broker; other workers keep trying.
  private func endUnlessReached() {
    time.schedule(after: Self.batchTimeout) { [weak self] in
      guard let self, !broker.hasBeenLetIn else { return }
      finish(.unreachable("the broker is unreachable: \(broker.lastReason)"))
    }
  }

  private static let batchTimeout = 15.0

  /// Starts nothing new, finishes what is in flight, and ends; a second call ends at once. If the connection is lost meanwhile,
  /// the next one consumes until it is ready, so that redelivered requests in hand are recognised; others are not started.
  package func drain() {
    guard drainDeadline == nil else { return breakOff("a second signal", within: 2) }
    log.info("draining", ["in_hand": inHand, "seconds": configuration.drainTimeout])
    drainDeadline = time.now.advanced(bySeconds: Double(configuration.drainTimeout))
    pipeline.dispatcher.isDraining = true
    broker.cancelConsumers()
    pipeline.handOverBegunLists()
    time.schedule(after: Double(configuration.drainTimeout)) { [weak self] in
      if let self, end == nil { breakOff("drainTimeout", within: Self.closeTimeout) }
    }
  }

  /// Ends although requests are in hand; the broker delivers them again.
  private func breakOff(_ reason: String, within timeout: Double) {
    guard end == nil else { return finish(.done) }
    let given = inHand + pipeline.backpressure.ahead.count
    if given > 0 {
      // Pushes without an answer, and outcomes without a confirm, may be sent again.
      let begun = pipeline.table.inHand.count { $0.ledger.onStreams > 0 || $0.hasBegun }
      log.warning(
        "stopped before everything was settled: the broker delivers it again",
        ["because": reason, "given_back": given, "may_be_sent_twice": begun])
    }
    finish(.done, within: timeout)
  }

  // MARK: turns

  package func turnEnding(at now: MonotonicTime) {
    if let (setup, stops) = control.take() {
      if let setup { reload(setup) }
      for _ in 0..<stops { drain() }
    }
    acknowledgements.flush()
    pipeline.dispatchAll()
    pipeline.backpressure.adjustIntake()
    guard drainDeadline != nil, end == nil else { return }
    pipeline.feedback.marks.write()
    pipeline.returnToQuarantine()
    if pipeline.hasNothingUnderway, registry?.isIdle != false { finish(.done) }
  }

  private func decideReplies() {
    pipeline.decideReplies()
    changes.decideReplies()
  }

  private func everySecond() {
    replyQueues.ask()
    decideReplies()
    pipeline.look()
    pipeline.dispatcher.controls.look()
    pipeline.feedback.marks.write()
    pipeline.feedback.marks.writeKept()
    pipeline.dispatcher.forget(pools: pools.letGo(inHand: pipeline.table.uses))
    changes.giveBackStuck()
    changes.apply()
    broker.changes?.check()
    acknowledgements.giveBackStuck()
    acknowledgements.retry()
    broker.acknowledgements?.check()
    registry?.lookAfter()
    stale?.look()
    audit?.look()
    pipeline.lookAtPages()
    pipeline.observers.steps.reportDeadLetters()
    changes.letters.report(at: time.now)
    acknowledgements.letters.report(at: time.now)
    askForFleetSize()
    if number == 0, configuration.metrics != nil { fleetFigures.look() }
    control.report(report)
    expiryWatch.warn(of: pools.expiries, at: time.wallClock / 1000, log)
    time.schedule(after: 1) { [weak self] in self?.everySecond() }
  }

  /// FCM's project quotas are shared by the whole fleet.
  private func askForFleetSize() {
    guard time.now >= nextFleetSize, pools.hasQuotas else { return }
    broker.countShards { [weak self] count in
      guard let self, let count else { return }
      nextFleetSize = time.now.advanced(bySeconds: FleetSize.interval)
      let shards = fleetSize.counted(count, at: time.now)
      if pools.divideQuotas(among: shards) { log.info("the fleet's quotas are divided", ["among_shards": shards]) }
    }
  }

  /// Runs four times a second.
  private func everyQuarter(due: MonotonicTime? = nil) {
    if let due { loopLag.note(time.now.seconds(since: due), at: time.now) }
    pipeline.watchAll()
    outbox.look()
    broker.trace?.flush()
    spans?.flush()
    let due = time.now.advanced(bySeconds: 0.25)
    time.schedule(at: due) { [weak self] in self?.everyQuarter(due: due) }
  }

  private static let reloadPortion = 32

  /// Replaces applications, credentials and settings without failing a push.
  package func reload(_ setup: ShardSetup) {
    broker.reload(setup.brokers)
    replyQueues.listed = setup.configuration.listedReplyQueues
    let isUnderWay = isReloading
    isReloading = true
    pools.begin(setup)
    if !isUnderWay { advanceReload() }
  }

  /// Applies some applications per turn, so that a change of thousands doesn't delay pushes.
  private func advanceReload() {
    let isDone = pools.advance(Self.reloadPortion)
    pipeline.dispatcher.follow(pools.accounts)
    guard isDone else {
      time.schedule(after: 0) { [weak self] in self?.advanceReload() }
      return
    }
    isReloading = false
    let changes = pools.changes
    log.info("reloaded", ["changed": changes.count, "first": Log.first(of: changes)])
  }

  /// Looks ten times a second, so that a batch ends soon after its last request. The end waits neither for marks that the registry
  /// has refused, nor for the audit, so these are also tried as often.
  private func watchEmptiness() {
    if drainDeadline == nil { checkEmptiness() }
    pipeline.feedback.marks.writeKept()
    audit?.look()
    time.schedule(after: 0.1) { [weak self] in self?.watchEmptiness() }
  }

  private func checkEmptiness() {
    let controls = pipeline.dispatcher.controls
    guard isIdle, pipeline.dispatcher.holds.areKnown || !controls.areKnown else { return found(nil) }
    if emptiness == nil { emptiness = EmptinessCheck(configuration.topology) }
    let held = pipeline.dispatcher.holds.present.filter { controls.mode(of: $0) != .paused }.map {
      configuration.topology.holdQueue(String(decoding: pools.apps[$0].id, as: UTF8.self))
    }
    let queues = (emptiness?.queues ?? []) + held
    let paused = Set(controls.pausedLanes.flatMap(configuration.topology.queues))
    broker.countMessages(of: queues[...]) { [weak self] counts in
      guard let self else { return }
      // A batch doesn't wait for an operator.
      let counts = counts.map { zip(queues, $0).map { paused.contains($0) ? 0 : $1 } }
      if number == 0, isIdle, let counts { sayWaiting(zip(queues, counts).map { ($0, $1) }) }
      found(isIdle ? counts : nil)
    }
  }

  private func sayWaiting(_ queues: [(name: String, ready: Int)]) {
    let filled = batchNotice.due(queues, at: time.now)
    if !filled.isEmpty { log.info("waiting", ["for": Log.first(of: filled)]) }
  }

  /// - Parameter counts: ready messages per queue; nil if requests are in hand or the broker couldn't be asked.
  private func found(_ counts: [Int]?) {
    guard drainDeadline == nil else { return }
    var isEmpty = counts.map { emptiness?.observe($0, at: time.now) == true } ?? false
    if counts == nil { emptiness = nil }
    // Messages that the broker holds because it can't route them are in no queue's count.
    if isEmpty, let watch = broker.watch, let since = emptiness?.emptySince, !watch.isSound(since: since) {
      isEmpty = false
      watch.look()
    }
    if control.batch.note(number, isEmpty: isEmpty) { drain() }
  }

  /// Seconds for the broker to answer the last acknowledgements.
  static let closeTimeout = 10.0

  /// Closes the broker session and the exporter of spans, then calls `onEnded`. A second call calls it at once.
  func finish(_ end: Fleet.End, within timeout: Double = closeTimeout) {
    guard self.end == nil else { onEnded?(); return }
    self.end = end
    broker.close(within: timeout) { [weak self] in
      guard let self, let spans else { self?.onEnded?(); return }
      spans.close { [weak self] in self?.onEnded?() }
    }
  }
}

extension Shard {
  private func heldDelivered(_ delivery: consuming Delivery, app: Int) {
    let headers = delivery.properties.headers
    // Only workers may publish to this exchange.
    if delivery.exchange.elementsEqual(configuration.topology.holdExchange.utf8), headers[Topology.questionHeader] != nil {
      return broker.holds.acknowledge(delivery.token, app)
    }
    let origin = headers.string(Topology.originHeader)
    pipeline.accept(consume delivery, from: origin.flatMap { WorkQueue(origin: $0) } ?? .sendNormal, hold: app)
  }
}

extension Shard: PoolObserver {
  package func observed(_ event: PoolEvent, of name: String, from pool: ProviderPool) {
    switch event {
    case .connected:
      connectionsOpened[Int(pool.platform.rawValue)] += 1
      log.info("connected to the provider", ["pool": name])
    case .disconnected(let reason): log.info("provider connection ended", ["pool": name, "reason": reason])
    case .goAway(let reason):
      goAways[Int(pool.platform.rawValue)] += 1
      log.info("provider sent GOAWAY", ["pool": name, "reason": reason])
    case .tokenRefreshed: log.info("provider token in use", ["pool": name])
    case .tokenFailed(let reason): log.warning("access token could not be fetched", ["pool": name, "reason": reason])
    case .tokenRefused(let reason, let credential):
      log.error(
        "credential refused by the token endpoint",
        [
          "pool": name, "credential": credential, "reason": reason,
          "remedy": "check that the project still has this key, and this machine's clock",
        ])
    case .credentialStopped(let reason, let topic, let credential):
      let remedy = ProviderRemedy.of(reason, isCredentialRefused: true)
      log.error(
        "credential refused by the provider",
        [
          "pool": name, "credential": credential, "reason": reason,
          "remedy": remedy.words + (topic.map { " (the topic is \($0))" } ?? ""), "runbook": remedy.section,
        ])
    case .alarm(let reason, let advice, let count):
      log.error(
        "the provider refuses pushes: an operator has to fix the cause",
        ["pool": name, "reason": reason, "advice": advice, "pushes": count])
    case .credentialAccepted: log.info("credential accepted again", ["pool": name])
    case .backingOff(let seconds, let reason):
      log.warning("provider unreachable", ["pool": name, "again_in_seconds": seconds, "reason": reason])
    case .paused(let seconds, let reason):
      log.warning("provider is throttling: pool paused", ["pool": name, "seconds": seconds, "reason": reason])
    case .silent(let seconds): log.warning("provider doesn't answer", ["pool": name, "seconds": seconds])
    case .clockOff(let seconds): log.error("this machine's clock is off", ["pool": name, "seconds": seconds])
    }
  }
}
