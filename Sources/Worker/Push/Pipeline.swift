import AMQP
import Broker
import DeviceRegistry
import Logging
import Providers
import PushCore
import Settings
import Wire

/// The path of one request: admitted, dispatched, answered, its consequences published and confirmed, acknowledged.
///
/// Holds nothing beyond what the broker delivered unacknowledged; confined to its shard's thread.
final class Pipeline: OutboxOwner {
  struct App {
    var id: [UInt8]
    /// What `restricted_package_name` may say.
    var packages: [[UInt8]]
    var rights = AppRights()
    /// Names in a request that aren't known are left out, and what old senders write is taken.
    var ignoresUnknownNames = false
    /// Its library acknowledges pushes by their object `mps`.
    var isUPMC = false
    /// A request without a badge counts as one with `auto`.
    var countsBadges = false
    /// Of requests that don't say it.
    var unknownOutcome = UnknownOutcome.retry
    var routes: Routes
    var senders: [[UInt8]: Routes] = [:]
    /// Of senders that were removed: requests that were here before may still go by them.
    var formerSenders: [Routes] = []
    /// False once it is removed.
    var isConfigured = true
    /// The pools that reach its devices.
    var pools: [Int] = []
  }

  /// The pools that reach an application's devices for one sender, by index. Shared by the requests that take them; changed when
  /// credentials or settings are.
  final class Routes {
    /// For tokens whose environment isn't known.
    var apns: APNsRoute? { didSet { listPools() } }
    var production: APNsRoute? { didSet { listPools() } }
    var sandbox: APNsRoute? { didSet { listPools() } }
    /// Where broadcasts to channels go, if that is elsewhere than pushes to devices.
    var broadcasts: [APNsConfiguration.Environment: APNsRoute] = [:] { didSet { listPools() } }
    var fcm: Int? { didSet { listPools() } }
    /// All of these; may name one twice.
    private(set) var pools: [Int] = []
    var fcmSettings = FCMSettings()
    /// Devices acknowledge pushes by what the registry keeps of their messages.
    var isUPMC = false
    /// What requests that were here before a change may still go by.
    var former: [APNsRoute] = []

    private func listPools() {
      pools = [apns?.pool, production?.pool, sandbox?.pool, fcm].compactMap(\.self) + broadcasts.values.map(\.pool)
    }
  }

  struct APNsRoute {
    var pool: Int
    var settings: APNsSettings
  }

  let apps: Applications
  let intake: Intake
  let translator: Translator
  let noteReader: NoteReader
  let publications: OutcomePublications
  let outbox: Outbox
  let time: Turn
  let log: Log
  var observers: Observers
  let results: ResultsSetting
  /// As ``Configuration/deadLetters``.
  let deadLetters: Set<PushError>
  let attemptLimit: Int
  /// Requests of a lane in hand at most.
  let prefetch: Int
  /// Pages that a lane brings.
  let pagePrefetch: Int

  /// nil where no registry is configured.
  let lookUps: LookUps?
  let owners: DeviceOwners?
  let marks: TokenMarks
  let collapses: Collapses
  let broadcasts: Broadcasts
  let replyQueues: ReplyQueues
  var pools: [PoolLanes]
  /// Pools that something waits for or is on its way to, or that are in trouble.
  var active: [Int] = []
  /// Counts dispatches.
  var turns = 0
  /// Requests with devices that no pool takes, whose dead letters are to be published.
  var refusals = Ring<PoolLanes.Waiting>()
  /// When it may be said again that messages wait for a newer worker.
  var nextNewerNotice = MonotonicTime(nanoseconds: 0)
  /// When what was held is looked through again.
  var nextHoldAgain = MonotonicTime(nanoseconds: 0)
  var table = InFlightTable()
  var duplicates: DuplicateWindow
  /// The request that came last from the quarantine.
  var alone: RequestReference?
  /// Requests whose channel is gone, by fingerprint, until the broker delivers them here again.
  var orphans: [UInt64: Int] = [:]
  weak var acknowledger: (any Acknowledger)?
  let holds: Holds
  var isDraining = false
  var ahead = DeliveriesAhead()
  /// Requests on their way to hold queues, by their applications.
  var leavingForHold = Tally<Int>()
  /// Requests that came by hold queues, as this turn's end began.
  var heldInHand = 0
  var bodies: BodiesInHand
  /// When it was last logged that there is no room for an application's requests.
  var crowdedSince: [Int: MonotonicTime] = [:]

  init(
    apps: Applications, pools: [PoolLanes], intake: Intake, publications: OutcomePublications, outbox: Outbox,
    lookUps: LookUps?, owners: DeviceOwners?, holds: Holds, marks: TokenMarks, collapses: Collapses, broadcasts: Broadcasts,
    replyQueues: ReplyQueues,
    time: Turn, log: Log,
    results: ResultsSetting, deadLetters: Set<PushError> = [], attemptLimit: Int, prefetch: Int, pagePrefetch: Int,
    pages: RichPageSettings? = nil
  ) {
    self.apps = apps
    self.pools = pools
    self.intake = intake
    translator = Translator(apps: apps, pages: pages)
    noteReader = NoteReader(prefix: publications.prefix)
    observers = Observers(apps: apps, prefix: publications.prefix, noteReader: noteReader, time: time, log: log)
    self.publications = publications
    self.outbox = outbox
    self.lookUps = lookUps
    self.owners = owners
    self.holds = holds
    self.marks = marks
    self.collapses = collapses
    self.broadcasts = broadcasts
    self.replyQueues = replyQueues
    self.time = time
    duplicates = DuplicateWindow(seed: time.random.next())
    self.log = log
    self.results = results
    self.deadLetters = deadLetters
    self.attemptLimit = attemptLimit
    self.prefetch = prefetch
    self.pagePrefetch = pagePrefetch
    bodies = BodiesInHand(isShared: apps.count > 1)
    outbox.owner = self
    lookUps?.handler = self
    owners?.handler = self
    collapses.handler = self
    broadcasts.pipeline = self
    holds.onEmptied = { [unowned self] in holdEmptied($0) }
  }

  /// nil where none is configured.
  var registry: RegistryClient? { broadcasts.registry }

  var counters: Counters { observers.figures.counters }

  /// Seconds since the oldest request in hand was taken; 0 where none is.
  var oldestAge: Double {
    var oldest = time.now
    for entry in table.entries where entry.isInUse && !entry.ledger.isOrphan { oldest = min(oldest, entry.source.takenAt) }
    return time.now.seconds(since: oldest)
  }

  /// Nothing is in hand and nothing waits to be confirmed.
  var isIdle: Bool { table.count == 0 && ahead.isEmpty && outbox.backlog == 0 }
  /// No push is on a stream and nothing waits to be confirmed or answered: what is still in hand has not been begun.
  var hasNothingUnderway: Bool {
    outbox.backlog == 0 && ahead.isEmpty && active.allSatisfy { pools[$0].account.inFlight == 0 }
      && !table.entries.contains { $0.isInUse && !$0.ledger.isOrphan && !$0.ledger.isSettled }
  }

  // MARK: admitted

  /// - Parameters:
  ///   - isAlone: it comes from the quarantine.
  ///   - hold: the application whose hold queue it comes from; nil for a lane.
  func accept(_ delivery: consuming Delivery, from queue: WorkQueue, isAlone: Bool = false, hold: Int? = nil) {
    noteReader.limitHeaders(of: &delivery, queue: queue)
    observers.figures.counters.received += 1
    if delivery.redelivered { observers.figures.counters.redelivered += 1 }
    if hold == nil, !isAlone, hasToWait(delivery, from: queue) { return takeAhead(delivery, from: queue) }
    begin(delivery, from: queue, isAlone: isAlone, hold: hold)
  }

  /// - Parameter taken: when it was taken ahead; nil where it comes now.
  func begin(
    _ delivery: consuming Delivery, from queue: WorkQueue, isAlone: Bool = false, hold: Int? = nil,
    taken: DeliveriesAhead.Moment? = nil
  ) {
    if taken != nil { bodies.addLeaving(delivery.weight) } else { bodies.add(delivery.weight) }
    // A copy has only those of its headers that were read, and would pass: what is refused for the others is refused here.
    if !delivery.properties.hasUnreadableHeaders, delivery.properties.omittedHeaders == 0 {
      if !isAlone, isSuspect(delivery) { return quarantine(consume delivery, from: queue, hold: hold) }
      if isAlone, hasComeBack(delivery) { return countLoss(of: consume delivery, from: queue) }
    }
    // A message in the quarantine is a new one for the broker.
    if isAlone { delivery.redelivered = true }
    let entry = table.insert(from: queue)
    entry.source.takenAt = time.now
    entry.source.takenAhead = taken
    entry.source.hold = hold
    entry.source.producer = noteReader.producer(of: delivery, queue: queue)
    intake.identify(entry, delivery, using: &time.random)
    entry.source.reply = replyVerdict(entry, delivery.properties.replyTo)
    if entry.source.reply == .unknown { entry.delivery = consume delivery } else { admit(entry, consume delivery) }
    // What was known here is let go of for the one that is in hand already.
    if isAlone, entry.isInUse { alone = entry.reference }
  }

  /// Who may not send to the application has nothing asked for.
  func replyVerdict(_ entry: InFlight, _ queue: [UInt8]?) -> ReplyQueues.Verdict {
    guard let producer = entry.source.producer else { return .allowed }
    if let app = entry.identity.app, apps[app].rights.refusal(of: producer) != nil {
      return replyQueues.knownVerdict(on: queue)
    }
    return replyQueues.verdict(on: queue, of: producer)
  }

  /// The broker has said more of the queues that results are to go to.
  func decideReplies() {
    for entry in table.entries where entry.isInUse && entry.source.reply == .unknown && !entry.ledger.isConcluded {
      entry.source.reply = replyVerdict(entry, entry.delivery.properties.replyTo)
      if entry.source.reply != .unknown { admit(entry, entry.delivery) }
    }
  }

  /// Where its result may go is known.
  private func admit(_ entry: InFlight, _ delivery: consuming Delivery) {
    let isIdentified = delivery.properties.messageID != nil
    var record: RetryRecord?
    var rejection =
      entry.source.reply != .refused ? nil : Rejection(.notAllowed, "reply_to: not a queue that results may go to")
    switch noteReader.notes(on: delivery.properties, exchange: delivery.exchange, queue: entry.source.queue, at: time.wallClock)
    {
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
      let firstSeen =
        noteReader.firstSeen(delivery.properties, exchange: delivery.exchange, queue: entry.source.queue)
        ?? entry.source.takenAhead?.at
      rejection = intake.admit(entry, delivery, record, firstSeen: firstSeen, at: time.wallClock) ?? refusal(of: entry)
    }
    entry.delivery = consume delivery
    observers.note(.taken, entry)
    if let rejection {
      reject(entry, rejection)
    } else if entry.source.reply == .crowded {
      putOff(entry, by: Self.questionDelay, "reply_to: the producer names too many queues at once")
    } else {
      begin(entry, record, isIdentified: isIdentified)
    }
  }

  /// Milliseconds.
  private static let questionDelay: Int64 = 1_000

  /// What its producer may not ask for. Checked once: what a worker sends on from here on is allowed.
  private func refusal(of entry: InFlight) -> Rejection? {
    guard let producer = entry.source.producer, let app = entry.identity.app else { return nil }
    let rights = apps[app].rights
    if let refusal = rights.refusal(of: producer) ?? rights.refusal(ofTopic: entry.parsed?.topic) { return refusal }
    if entry.source.reply != .crowded { entry.source.producer = nil }
    return nil
  }

  /// Admitted: on to its devices, or to its audience.
  private func begin(_ entry: InFlight, _ record: RetryRecord?, isIdentified: Bool) {
    entry.identity.admittedAt = time.wallClock
    if entry.parsed?.isCollapsible == true { noteArrival(entry, record) }
    if let page = entry.broadcast.page {
      guard entry.parsed?.audience != nil else {
        return reject(entry, Rejection(.invalidParameters, "\(PageTicket.header): the request names no audience"))
      }
      entry.identity.deadline = page.deadline
    }
    let choice: Translator.Choice
    switch translator.choice(of: entry.delivery.properties.headers) {
    case .failure(let rejection): return reject(entry, rejection)
    case .success(let made): choice = made
    }
    if isIdentified, isDuplicate(entry, choice) { return }
    observers.figures.enterAccount(entry)
    if let rejection = translator.route(entry, choice) { return reject(entry, rejection) }
    entry.attempt.settledBefore = record?.settled
    if !hasRoom(for: entry) {
      waitForRoom(entry)
    } else if isWhollyHeldBack(entry) {
      holdWhole(entry)
    } else if entry.parsed?.isDryRun == true, entry.parsed?.audience != nil {
      concludeDryRunOfAudience(entry)
    } else if let audience = entry.parsed?.audience {
      broadcasts.begin(entry, audience)
    } else if case .automatic? = entry.parsed?.badge, !entry.isNamed, lookUps != nil {
      broadcasts.nameAndPublishAgain(entry)
    } else {
      addRecipients(to: entry, by: entry.route.routes)
      // What is too late needs no look-up.
      if entry.registry.unresolved == 0 || time.wallClock > entry.identity.deadline { sendRecipients(of: entry) }
    }
  }

  /// The recipients are known: what an earlier round settled is put back, the rest goes out.
  func sendRecipients(of entry: InFlight) {
    if let settled = entry.attempt.settledBefore {
      SettledTargets.restore(settled, to: &entry.recipients, until: entry.identity.deadline, lag: entry.identity.clockLag)
      for case .postponed(let until) in entry.recipients.lazy.map(\.state) {
        entry.attempt.longestWait = max(entry.attempt.longestWait, until - time.wallClock)
      }
    }
    observers.note(.resolved, entry)
    if time.wallClock > entry.identity.deadline {
      expire(entry)
    } else {
      passGates(entry)
    }
  }

  /// A retransmission of what this shard has delivered or is delivering is acknowledged, not sent again. What was in flight
  /// when its channel was lost goes on under its new delivery.
  private func isDuplicate(_ entry: InFlight, _ choice: Translator.Choice) -> Bool {
    let print = duplicates.fingerprint(
      app: entry.identity.app ?? -1, sender: choice.name, messageID: entry.identity.messageID, body: entry.delivery.body,
      round: entry.lap)
    if !orphans.isEmpty, let index = orphans.removeValue(forKey: print) {
      let orphan = table[index]
      orphan.delivery.token = entry.delivery.token
      orphan.source.hold = entry.source.hold
      release(entry)
      perform(orphan.ledger.redelivered(), orphan)
      return true
    }
    if duplicates.insert(print, at: time.wallClock) {
      entry.identity.fingerprint = print
      return false
    }
    observers.note(.duplicate, entry)
    // A broker that has lost touch with one of its nodes delivers again what is in hand here, on the same channel, and takes no
    // acknowledgement of the first delivery: this one is acknowledged when the request is, or the broker would forget it too early.
    if let first = table.entries.first(where: { $0.isInUse && $0.identity.fingerprint == print && !$0.ledger.isOrphan }) {
      first.source.repeats.append((entry.delivery.token, entry.source.hold))
      release(entry)
    } else {
      conclude(entry) {}
    }
    return true
  }

  /// At the end of each turn: as much is taken from the broker as there is room for.
  func adjustIntake() {
    if bodies.adjustReading() { acknowledger?.isReadingPaused = bodies.isReadingPaused }
    acknowledger?.adjustPrefetch(fitting: bodies.fitting, ahead: wantedAhead)
  }
}
