import AMQP
import Broker
import DeviceRegistry
import Logging
import Providers
import PushCore
import Settings
import Wire

/// The path of a request: admitted, sent, answered, ended, acknowledged. All its state comes from unacknowledged deliveries.
/// Confined to the shard's thread.
package final class Pipeline {
  let tools: ShardTools
  let intake: Intake
  let rights: ProducerRights
  let resolver: RecipientResolver
  let translations: Translations
  package let dispatcher: Dispatcher
  package let backpressure: Backpressure
  let publisher: OutcomePublisher
  package let feedback: FeedbackReporter
  let collapses: Collapses
  let broadcasts: Broadcasts
  package let observers: Observers
  package let table: InFlightTable
  var quarantine: Quarantine

  /// - Parameter resultLease: the lifetime in milliseconds of a worker's claim of a campaign's result.
  package init(
    _ configuration: Configuration, _ tools: ShardTools, accounts: [PoolAccount], replyQueues: ReplyQueues,
    resultLease: Int64 = 10_000
  ) {
    self.tools = tools
    let (apps, messages, time) = (tools.apps, tools.publications, tools.time)
    let pages = configuration.usedRichPages
    intake = Intake(apps: apps, limits: configuration.limits, pageBytes: pages?.bytes)
    rights = ProducerRights(apps: apps, notes: NoteReader(prefix: messages.prefix), replyQueues: replyQueues)
    observers = Observers(apps: apps, prefix: messages.prefix, time: time, log: tools.log)
    table = InFlightTable(time: time)
    collapses = Collapses(tools)
    dispatcher = Dispatcher(
      tools, table: table, accounts: accounts, collapses: collapses, prefetch: configuration.prefetch)
    backpressure = Backpressure(dispatcher: dispatcher, pagePrefetch: configuration.fanOut.prefetch, log: tools.log)
    publisher = OutcomePublisher(
      tools, configuration, backpressure: backpressure, dispatcher: dispatcher, observers: observers)
    let breaker = Breaker(share: Double(configuration.breaker.percent) / 100, sample: configuration.breaker.sample)
    let marks = TokenMarks(tools, breaker: breaker)
    feedback = FeedbackReporter(
      apps: apps, marks: marks, owners: tools.registry.map(DeviceOwners.init), publisher: publisher, time: time)
    resolver = RecipientResolver(apps: apps, lookUps: tools.registry.map(LookUps.init))
    translations = Translations(translator: Translator(apps: apps, pages: pages), observers: observers)
    broadcasts = Broadcasts(
      tools, publisher: publisher, resolver: resolver, translator: translations.translator, collapses: collapses,
      marks: marks, observers: observers, fanOut: configuration.fanOut, resultLease: resultLease)
    quarantine = Quarantine(messages)
    tools.outbox.owner = self
    resolver.lookUps?.onAnswer = { [weak self] in self?.lookedUp($0, $1) }
    feedback.owners?.onCompleted = { [weak self] event, request in
      guard let self, let entry = table[request] else { return }
      publisher.publish(event, for: entry)
      consequenceEnded(of: entry)
    }
    collapses.onNoted = { [weak self] requests in
      guard let self else { return }
      for request in requests { if let entry = table[request] { consequenceEnded(of: entry) } }
    }
    collapses.onAnswered = { [weak self] in self?.sendNow($0) }
  }

  var apps: Applications { tools.apps }
  var registry: RegistryClient? { tools.registry }
  var time: Turn { tools.time }
  var log: Log { tools.log }
  private var translator: Translator { translations.translator }
  private var dryRun: DryRun { DryRun(translator: translator, controls: dispatcher.controls) }

  /// No request is in hand and no publication is unconfirmed.
  package var isIdle: Bool { table.count == 0 && backpressure.ahead.isEmpty && dispatcher.outbox.backlog == 0 }
  /// No push is unanswered and no publication is unconfirmed: requests in hand have not begun. A request whose channel was
  /// lost is under way until it is redelivered.
  package var hasNothingUnderway: Bool {
    dispatcher.outbox.backlog == 0 && backpressure.ahead.isEmpty && dispatcher.onStreams == 0
      && !table.inHand.contains { $0.ledger.isOrphan || !$0.ledger.isSettled }
  }

  // MARK: admitted

  /// - Parameters:
  ///   - isAlone: the delivery comes from the quarantine.
  ///   - hold: the application whose hold queue it comes from; nil for a lane.
  package func accept(_ delivery: consuming Delivery, from queue: WorkQueue, isAlone: Bool = false, hold: Int? = nil) {
    rights.notes.limitHeaders(of: &delivery, queue: queue)
    observers.figures.counters.received += 1
    if delivery.redelivered { observers.figures.counters.redelivered += 1 }
    if hold == nil, !isAlone, backpressure.hasToWait(delivery, from: queue) {
      return backpressure.takeAhead(delivery, from: queue)
    }
    begin(delivery, from: queue, isAlone: isAlone, hold: hold)
  }

  /// - Parameter taken: when it was read ahead; nil if it arrives now.
  func begin(
    _ delivery: consuming Delivery, from queue: WorkQueue, isAlone: Bool = false, hold: Int? = nil,
    taken: DeliveriesAhead.Moment? = nil
  ) {
    backpressure.bodies.add(delivery.weight, isNew: taken == nil)
    // A copy has only the headers that were read, so it would pass. A request with unreadable or omitted headers is refused
    // below instead.
    if !delivery.properties.hasUnreadableHeaders, delivery.properties.omittedHeaders == 0 {
      if !isAlone, delivery.redelivered, quarantine.isSuspect(delivery, table) {
        return isolate(consume delivery, from: queue, hold: hold)
      }
      if isAlone, quarantine.hasComeBack(delivery, table) { return countLoss(of: consume delivery, from: queue) }
    }
    // A message in the quarantine is new for the broker.
    if isAlone { delivery.redelivered = true }
    let entry = insert(delivery, from: queue)
    entry.source.takenAhead = taken
    entry.source.hold = hold
    intake.identify(entry, delivery, using: &time.random)
    if let queue = delivery.properties.replyTo { entry.source.reply = rights.replyVerdict(entry, queue) }
    if case .unknown = entry.source.reply { entry.delivery = consume delivery } else { admit(entry, consume delivery) }
    // A duplicate's entry has been released.
    if isAlone, entry.isInUse { quarantine.alone = entry.reference }
  }

  func insert(_ delivery: borrowing Delivery, from queue: WorkQueue) -> InFlight {
    let entry = table.insert(from: queue)
    entry.source.takenAt = time.now
    entry.source.areNotesOurs = rights.notes.areNotesOurs(delivery.exchange, queue)
    entry.source.producer = NoteReader.producer(of: delivery, areNotesOurs: entry.source.areNotesOurs)
    return entry
  }

  /// The broker has answered about reply queues.
  package func decideReplies() {
    for entry in table.entries where entry.isInUse && entry.source.reply == .unknown && !entry.ledger.isConcluded {
      guard let queue = entry.delivery.properties.replyTo else { continue }
      entry.source.reply = rights.replyVerdict(entry, queue)
      if entry.source.reply != .unknown { admit(entry, entry.delivery) }
    }
  }

  /// Admits the request, now that its reply queue is decided.
  private func admit(_ entry: InFlight, _ delivery: consuming Delivery) {
    let isIdentified = delivery.properties.messageID != nil
    var record: RetryRecord?
    let isRefused = if case .refused = entry.source.reply { true } else { false }
    var rejection = isRefused ? Rejection(.notAllowed, "reply_to: not a queue that results may go to") : nil
    let (exchange, queue) = (delivery.exchange, entry.source.queue)
    switch rights.notes.notes(on: delivery.properties, exchange: exchange, queue: queue, at: time.wallClock) {
    case .none: break
    case .notes(let page, let retry):
      entry.broadcast.page = page
      record = retry
    case .newer:
      entry.delivery = consume delivery
      return leaveToNewer(entry)
    case .refused(let reason): rejection = reason
    }
    if rejection == nil {
      let ahead = entry.source.takenAhead
      var firstSeen = ahead?.at
      if entry.source.areNotesOurs, let noted = NoteReader.firstSeen(delivery.properties) { firstSeen = noted }
      rejection =
        intake.admit(entry, delivery, record, firstSeen: firstSeen, at: time.wallClock) ?? rights.refusal(of: entry)
    }
    entry.delivery = consume delivery
    if rejection == nil, dispatcher.controls.hasDrains { rejection = dispatcher.refusalOfDrained(entry) }
    observers.note(.taken, entry)
    if let rejection {
      reject(entry, rejection)
    } else if case .crowded = entry.source.reply {
      putOff(entry, by: ReplyQueues.delayOfCrowded, "reply_to: the producer names too many queues at once")
    } else {
      begin(entry, record, isIdentified: isIdentified)
    }
  }

  private func leaveToNewer(_ entry: InFlight) {
    guard let copy = publisher.copyForNewer(of: entry) else {
      return reject(entry, Rejection(.unavailable, "no worker of the version that wrote its headers has come for four weeks"))
    }
    observers.note(.parked, entry)
    conclude(entry) { publisher.publish(copy, for: entry) }
  }

  /// Continues an admitted request with its devices or its audience.
  private func begin(_ entry: InFlight, _ record: RetryRecord?, isIdentified: Bool) {
    entry.identity.admittedAt = time.wallClock
    if entry.request?.isReplaceable == true { collapses.noteArrival(entry, record) }
    if let page = entry.broadcast.page {
      guard entry.request?.audience != nil else {
        return reject(entry, Rejection(.invalidParameters, "\(PageTicket.header): the request names no audience"))
      }
      entry.identity.deadline = page.deadline
    }
    var choice = Translator.Choice()
    if !entry.delivery.properties.headers.isEmpty {
      do { choice = try translator.choice(of: entry.delivery.properties.headers) } catch { return reject(entry, error) }
    }
    if isIdentified, isDuplicate(entry, choice) { return }
    observers.figures.enterAccount(entry)
    if let rejection = translator.route(entry, choice) { return reject(entry, rejection) }
    entry.attempt.settledBefore = record?.settled
    start(entry)
  }

  /// Finds the devices or the audience, unless the request must wait elsewhere. Also for a redelivered request whose copy was
  /// withdrawn before its devices were known.
  func start(_ entry: InFlight) {
    let request = entry.request
    let audience = request?.audience
    if entry.source.keptFor == nil, !backpressure.keep(entry) {
      putOffUnbegun(
        entry, by: backpressure.delay(of: entry), "the application's requests fill what it may hold of a worker")
    } else if dispatcher.controls.hasOrders, dispatcher.isPaused(entry) {
      entry.goToHold(because: Dispatcher.pausedReason)
      putOffUnbegun(entry, by: dispatcher.pausedDelay(entry.identity.app), Dispatcher.pausedReason)
    } else if !dispatcher.holds.present.isEmpty, dispatcher.isWhollyHeldBack(entry) {
      entry.goToHold(because: Dispatcher.holdReason)
      conclude(entry) { publisher.publishRetry(of: entry, at: time.wallClock) }
    } else if request?.isDryRun == true, audience != nil {
      concludeDryRunOfAudience(entry)
    } else if let audience {
      carryOut(broadcasts.begin(entry, audience), entry)
    } else if case .automatic? = request?.badgeOfCounter, !entry.isNamed, registry != nil {
      carryOut(broadcasts.nameAndPublishAgain(entry), entry)
    } else {
      resolver.addRecipients(to: entry, by: entry.route.routes)
      // A late request needs no look-up.
      if entry.registry.unresolved == 0 || time.wallClock > entry.identity.deadline { sendRecipients(of: entry) }
    }
  }

  private func putOffUnbegun(_ entry: InFlight, by delay: Int64, _ reason: String) {
    // A redelivered broadcast may have begun before.
    if let audience = entry.request?.audience { entry.broadcast.work = AudienceWork(audience) }
    putOff(entry, by: delay, reason)
  }

  private func concludeDryRunOfAudience(_ entry: InFlight) {
    switch dryRun.rehearseAudience(entry, at: time.wallClock) {
    case .failure(let rejection): reject(entry, rejection)
    case .success(let report):
      conclude(entry) { publisher.publishResult(of: entry, targets: [.accepted(id: DryRun.name)], report: report) }
    }
  }

  /// The recipients are known: restores the outcomes of earlier attempts and sends to the others.
  private func sendRecipients(of entry: InFlight) {
    if let settled = entry.attempt.settledBefore { entry.restore(settled, at: time.wallClock) }
    observers.note(.resolved, entry)
    if time.wallClock > entry.identity.deadline { expire(entry) } else { passGates(entry) }
  }

  /// The registry has answered about registrations that requests name.
  private func lookedUp(_ places: [RecipientReference], _ result: Result<Resolution, RegistryError>) {
    switch result {
    case .success(let resolution):
      for (place, answer) in zip(places, resolution.entries) {
        guard let entry = table[place.request], !entry.ledger.isConcluded else { continue }
        resolver.resolve(place.recipient, answer, resolution.devices, entry)
        if entry.registry.unresolved == 0 { sendRecipients(of: entry) }
      }
    case .failure(let error):
      for place in places { if let entry = table[place.request] { refuseOrPutOff(entry, error) } }
    }
  }

  // MARK: before the first push

  /// Enqueues the request once it has passed its gates.
  func passGates(_ entry: InFlight) {
    guard !entry.registry.isAsked, entry.registry.unresolved == 0,
      pass(MessageGate.self, 1, entry),
      pass(ContentGate.self, 2, entry),
      pass(BadgeGate.self, 3, entry)
    else { return }
    // A dry run only sends what FCM validates; everything else ends unsent.
    if entry.request?.isDryRun == true, entry.attempt.dryRun == nil {
      dryRun.rehearse(entry, at: time.wallClock)
    }
    enqueue(entry)
  }

  @inline(__always)
  private func pass<G: Gate>(_ gate: G.Type, _ number: Int, _ entry: InFlight) -> Bool {
    if entry.registry.gatesPassed >= number { return true }
    if G.concerns(entry, in: self), case .wait = G.pass(entry, in: self) { return false }
    entry.registry.gatesPassed = number
    return true
  }

  /// Asks the registry for a gate.
  /// - Parameters:
  ///   - then: receives the answer.
  ///   - orElse: whether the request can continue without an answer. If not, it is refused or goes to the ladder.
  func wait<Value>(
    at entry: InFlight, for call: RegistryCall<Value>, then: @escaping (InFlight, Value) -> Void,
    orElse: @escaping (InFlight) -> Bool = { _ in false }
  ) -> GateAnswer {
    entry.registry.isAsked = true
    let reference = entry.reference
    registry?.call(call) { [weak self] result in
      guard let self, let entry = table[reference] else { return }
      entry.registry.isAsked = false
      guard !entry.ledger.isConcluded else { return }
      switch result {
      case .success(let value): then(entry, value)
      case .failure(let error): guard orElse(entry) else { return refuseOrPutOff(entry, error) }
      }
      entry.registry.gatesPassed += 1
      if !entry.ledger.isOrphan { passGates(entry) }
    }
    return .wait
  }

  // MARK: each turn

  /// Called at the end of each turn: sends all pushes with free streams, then flushes once.
  package func dispatchAll() {
    beginAhead()
    resolver.lookUps?.flush()
    feedback.owners?.flush()
    dispatcher.dispatchAll(for: self)
    collapses.flush()
  }

  func beginAhead() { backpressure.beginAhead { delivery, queue, taken in begin(delivery, from: queue, taken: taken) } }

  /// To be called a few times a second.
  package func watchAll() {
    dispatcher.watchAll(fitting: backpressure.bodies.fitting, for: self)
    backpressure.acknowledger?.takeLanes(!dispatcher.areAllInTrouble)
  }

  /// To be called about once a second, for waiting requests.
  package func look() {
    forgetStrayed()
    dispatcher.holdAgain(for: self)
  }

  /// To be called about once a second, for pages that wait for the registry or whose campaign is stopped.
  package func lookAtPages() {
    broadcasts.findStopped(table) { [weak self] in if let self { dispatcher.takeOutStopped($0, for: self) } }
    broadcasts.renewResultClaims(table)
    for reference in broadcasts.takeUnsaved() {
      if let entry = table[reference] { carryOut(broadcasts.savePage(entry), entry) }
    }
  }
}

extension Pipeline {
  /// The registry has said whether there are newer requests.
  private func sendNow(_ questions: [Collapses.Question]) {
    for question in questions.reversed() {
      guard let entry = table[question.waiting.request], !entry.ledger.isOrphan else { continue }
      entry.collapse.knownAt = time.now
      dispatcher.giveBack(question.waiting, to: question.pool, entry)
    }
    time.ensureHooksRun()
  }
}
