import AMQP
import Broker
import DeviceRegistry
import PushCore
import Settings
import Wire

/// A request between its delivery by the broker and its acknowledgement. The objects are reused to avoid allocations. Confined
/// to the shard's thread.
@dynamicMemberLookup
package final class InFlight {
  /// The place in the table, which is in the tag of every push and publication of the request.
  let index: Int

  /// Counts the requests that have had this place, to detect stale references.
  private(set) var generation = 0
  var isInUse = false
  /// The routes of a request that isn't admitted.
  private let noRoutes = SenderRoutes()
  private var fields: Fields

  /// All data of a request. One assignment resets it for the next.
  package struct Fields {
    var delivery = Delivery()
    var source = Source()
    var identity = Identity()
    /// The parsed body once the request is admitted; released when it is no longer needed.
    var request: SendRequest?
    /// In the order of the request's targets, followed by the further devices of `registry.members`.
    var recipients: [Recipient] = []
    var registry = RegistryAnswers()
    var route: Route
    var collapse = CollapseState()
    var attempt = Attempt()
    package var ledger = Ledger()
    var broadcast = BroadcastState()
    var trace = RequestTrace()
  }

  struct Source {
    var queue = WorkQueue.sendNormal
    /// The application of the hold queue that it came by; nil for a lane.
    var hold: Int?
    /// Whether a worker has written its notes: see ``NoteReader``.
    var areNotesOurs = false
    /// The user whose rights are to be checked; nil after the check. See ``NoteReader/producer(of:areNotesOurs:)``.
    var producer: [UInt8]?
    /// Whether the result may go to `reply_to`; the request waits until that is known.
    var reply = ReplyQueues.Verdict.allowed
    var takenAt = MonotonicTime(nanoseconds: 0)
    var takenAhead: DeliveriesAhead.Moment?
    /// Further deliveries, which are acknowledged with it.
    var repeats: [(token: DeliveryToken, hold: Int?)] = []
    var orphanedAt = MonotonicTime(nanoseconds: 0)
    /// The application's series in the request ledger; nil if it isn't counted.
    var account: Int?
    /// The application whose memory share has the body; nil if none.
    var keptFor: Int?
  }

  /// Identity and lifetime. Times are unix milliseconds.
  struct Identity {
    /// The application's index; nil if unknown.
    var app: Int?
    var messageID: [UInt8] = []
    /// The entry in the window of duplicates.
    var fingerprint: UInt64?
    /// The producer's time of publishing or, without one, when a worker first saw the request.
    var published: Int64 = 0
    var isDated = false
    /// How far this clock is behind the clock of the retry record, in milliseconds.
    var clockLag: Int64 = 0
    var admittedAt: Int64 = 0
    var deadline: Int64 = 0
  }

  struct RegistryAnswers {
    /// The number of registrations being looked up.
    var unresolved = 0
    var rows: DeviceRows?
    /// The further devices of a list's users and groups, whose places follow the list's entries.
    var members: [(place: Int, others: Range<Int>)] = []
    /// The registry has stored the message id for acknowledgements by key.
    var isKept = false
    /// The address of the page with `data.ext`; nil if there is none, because every push has room for `data.ext`, no push has
    /// room for the address, or the registry has no room.
    var contentPage: [UInt8]?
    /// Each recipient's badge counter after this request; nil for one without a counter. Empty if the request doesn't count
    /// badges, or continues without the registry.
    var badges: [Int64?] = []
    var gatesPassed = 0
    /// The next gate waits for the registry's answer.
    var isAsked = false
  }

  struct Route {
    var routes: SenderRoutes
    /// The APNs environment of the request's tokens; nil for the application's first.
    var environment: APNsConfiguration.Environment?
    var unknownOutcome = UnknownOutcome.retry
    var apns: APNsTemplate?
    /// The pool whose settings `apns` was made with.
    var apnsPool = -1
    var fcm: FCMTemplate?
    var webpush: WebPushTemplate?
  }

  /// The request's place among requests with the same collapse key.
  struct CollapseState {
    /// When it arrived; nil if nothing replaces it.
    var arrival: Arrival?
    /// For a page of a campaign with a collapse key: the note that newer broadcasts are compared with.
    var broadcastNote: CollapseNote?
    /// The request has been on the ladder or in a hold queue, or waits for a provider in trouble: a newer one may replace it.
    var hasWaited = false
    var keys: CollapseKeys?
    /// The time of the registry's last answer about newer requests.
    var knownAt: MonotonicTime?
  }

  /// The present, earlier and next attempts. Times are unix milliseconds.
  struct Attempt {
    /// Earlier attempts, by any worker.
    var earlier = 0
    /// Trips through the retry queues. Parking increments this, not `earlier`.
    var round = 0
    /// The outcomes of a list's targets from earlier rounds, until the devices are known.
    var settledBefore: [UInt8]?
    /// A provider was asked in this round. If not, the round counts as no attempt.
    var hasAsked = false
    /// A `time_to_live` of 0: the request is never retried.
    var isLast = false
    /// All recipients that were put off wait for a provider in trouble: the request goes to the hold queue.
    var goesToHold = false
    /// The campaign was stopped while the page was being sent: the round counts as no attempt.
    var isStopped = false
    var isCounted: Bool { hasAsked && !isStopped }
    var isPutOff = false
    /// When it was first put off.
    var putOffAt: Int64?
    /// When the copy on the ladder is due; nil if there is none.
    var waitsUntil: Int64?
    /// When a planned copy is due.
    var copyDue: Int64 = 0
    /// The longest planned wait of a recipient in milliseconds. It bounds the waits if the clock is set back before the copy
    /// leaves.
    var longestWait: Int64 = 0
    /// A random number that spreads the next attempts of different requests.
    var draw: UInt64?
    /// The last reason for putting a recipient off.
    var lastFailure: (error: PushError, reason: String, status: Int?)?
    /// The reasons of recipients' dead letters, for the result; by recipient.
    var reasons: [Int: String] = [:]
    /// The changes by translation, for a dry run.
    var dryRun: DryRunReport?
  }

  /// Empty for a request to devices.
  struct BroadcastState {
    /// The part of the audience; nil until the audience is known.
    var page: PageTicket?
    var work: AudienceWork?
  }

  init(index: Int) {
    self.index = index
    fields = Fields(route: Route(routes: noRoutes))
  }

  package subscript<Value>(dynamicMember field: WritableKeyPath<Fields, Value>) -> Value {
    @inline(__always) get { fields[keyPath: field] }
    @inline(__always) _modify { yield &fields[keyPath: field] }
  }

  var reference: RequestReference { RequestReference(index: index, generation: generation) }

  /// Releases the request's memory, but keeps the arrays' storage.
  func end() {
    isInUse = false
    generation += 1
    fields.recipients.removeAll(keepingCapacity: fields.recipients.capacity <= 16)
    fields = Fields(
      recipients: exchange(&fields.recipients, with: []), route: Route(routes: noRoutes), trace: fields.trace.emptied())
  }

  /// True if the request has a message id, by which it is recognised after a crash.
  var isNamed: Bool { fields.delivery.properties.messageID?.isEmpty == false }

  /// The registry's id of a recipient's device; nil for a token that came with the request.
  func registration(of recipient: Int) -> [UInt8]? {
    let row = fields.recipients[recipient].row
    return row < 0 ? nil : fields.registry.rows?.registration(row)
  }

  /// A newer request may replace this one while it waits.
  var isReplaceable: Bool { fields.collapse.arrival != nil || fields.collapse.broadcastNote != nil }

  /// The request is for one part of an audience. (`page != nil` would copy the ticket.)
  var isPage: Bool { if case .none = fields.broadcast.page { false } else { true } }

  var isOfCampaign: Bool { fields.broadcast.page?.campaign.isEmpty == false }

  /// A page of a campaign, or any message of a fan-out queue that isn't a small audience's.
  var isWholePage: Bool { isOfCampaign || !isPage && fields.source.queue.isFanOut }

  /// Unix milliseconds of the earliest next attempt of a recipient; nil if none waits.
  var earliestRetry: Int64? { fields.recipients.lazy.compactMap(\.state.dueAt).min() }

  /// Limits the recipients' waits to the longest planned one, in case the clock was set back.
  func boundWaits(at now: Int64) {
    let latest = now + fields.attempt.longestWait
    for index in fields.recipients.indices where fields.recipients[index].state.dueAt ?? .min > latest {
      fields.recipients[index].state = .postponed(until: latest)
    }
  }

  /// Restores the outcomes of a list's devices from earlier rounds.
  func restore(_ settled: [UInt8], at now: Int64) {
    SettledTargets.restore(
      settled, to: &fields.recipients, until: fields.identity.deadline, lag: fields.identity.clockLag)
    for until in fields.recipients.lazy.compactMap(\.state.dueAt) {
      fields.attempt.longestWait = max(fields.attempt.longestWait, until - now)
    }
  }

  /// Makes a small audience without a sent push a plain request again, because no ticket names its devices.
  func forgetUnsentAudience() {
    guard fields.broadcast.page?.campaign.isEmpty == true, fields.broadcast.page?.pending == nil else { return }
    fields.broadcast.page = nil
    fields.recipients.removeAll(keepingCapacity: true)
  }

  func goToHold(because reason: String) {
    fields.attempt.goesToHold = true
    if fields.attempt.lastFailure == nil { fields.attempt.lastFailure = (.unavailable, reason, nil) }
  }

  func goToHold(_ index: Int, at now: Int64, because reason: String) {
    goToHold(because: reason)
    fields.recipients[index].state = .postponed(until: now)
  }

  /// Distinguishes the request's rounds on the ladder and, for an audience, its pages and their copies.
  var lap: Int { fields.broadcast.page.map { Int(truncatingIfNeeded: $0.copy) ^ fields.attempt.round } ?? fields.attempt.round }

  var isDelivered: Bool {
    !fields.recipients.isEmpty
      && fields.recipients.allSatisfy { if case .sameAs = $0.state { true } else { $0.state.isDelivered } }
  }

  /// The number of devices with each outcome, sorted by outcome.
  func outcomeCounts(open: String) -> [(key: String, value: Int)] {
    var counts: [(key: String, value: Int)] = []
    for index in fields.recipients.indices {
      let outcome = fields.recipients[index].state.outcome ?? open
      let place = counts.firstIndex { $0.key == outcome } ?? counts.count
      if place == counts.count { counts.append((outcome, 0)) }
      counts[place].value += 1
    }
    return counts.sorted { $0.key < $1.key }
  }

  var hasSettledDevice: Bool {
    fields.recipients.contains {
      switch $0.state {
      case .delivered, .failed: true
      case .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: false
      }
    }
  }

  /// At least one device was reached, so sending the request again would repeat a push.
  var hasReachedDevice: Bool { fields.recipients.indices.contains { fields.recipients[$0].state.isDelivered } }

  /// At least one recipient has been sent to or has ended, so the request can't go to another worker unchanged.
  package var hasBegun: Bool {
    fields.recipients.contains {
      switch $0.state {
      case .sent, .delivered, .failed, .postponed: true
      case .waiting, .unresolved, .gone, .refused, .sameAs: false
      }
    }
  }

  /// The recipients whose provider name a result may show: each target, and of a user or group the first device that was
  /// reached.
  var namesToKeep: (Int) -> Bool {
    guard let first = fields.registry.members.first else { return { _ in true } }
    var others: Set<Int> = []
    for member in fields.registry.members {
      if fields.recipients[member.place].state.isDelivered { continue }
      if let first = member.others.first(where: { fields.recipients[$0].state.isDelivered }) { others.insert(first) }
    }
    return { $0 < first.others.lowerBound || others.contains($0) }
  }

  /// The `apns-id` of a device's push.
  func apnsID(of recipient: Recipient) -> [UInt8] {
    fields.route.apns?.stamp(token: recipient.token).id ?? fields.request?.apnsID
      ?? DeviceIdentity.apnsID(messageID: fields.identity.messageID, token: Array(recipient.token))
  }

  func wantsResult(_ setting: ResultsSetting) -> Bool {
    setting != .none || fields.source.reply == .allowed && fields.delivery.properties.replyTo?.isEmpty == false
  }
}
