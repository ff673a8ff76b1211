import AMQP
import Broker
import DeviceRegistry
import PushCore
import Settings
import Wire

/// One request between its delivery by the broker and its acknowledgement.
///
/// The objects are reused, so that a steady worker allocates none. Confined to the shard's thread.
@dynamicMemberLookup
package final class InFlight {
  /// Its place in the table, which is in the tag of every push and publication made for it.
  let index: Int

  /// Counts the requests that have had this place, so that a lane's reference to an earlier one is known as stale.
  private(set) var generation = 0
  private(set) var isInUse = false
  /// Of a request that isn't admitted.
  private let noRoutes = SenderRoutes()
  private var fields: Fields

  /// Everything about one request. One assignment resets it for the next.
  package struct Fields {
    var delivery = Delivery()
    var source = Source()
    var identity = Identity()
    /// What the body says, once it is admitted; let go of when nothing more is to be read from it.
    var parsed: ParsedRequest?
    /// In the order of the request's targets; then the further devices of `registry.members`.
    var recipients: [Recipient] = []
    var registry = RegistryAnswers()
    var route: Route
    var collapse = CollapseState()
    var attempt = Attempt()
    /// What it waits for before its acknowledgement.
    package var ledger = Ledger()
    var broadcast = BroadcastState()
    var trace = RequestTrace()
  }

  /// How it came to this worker.
  struct Source {
    var queue = WorkQueue.sendNormal
    /// The application whose hold queue it came by; nil where it came by a lane.
    var hold: Int?
    /// The fleet's notes on it count: see ``NoteReader``.
    var areNotesOurs = false
    /// Whose rights are still to be checked; nil once they have been. See ``NoteReader/producer(of:areNotesOurs:)``.
    var producer: [UInt8]?
    /// Whether its result may go where `reply_to` says; nothing is done before that is known.
    var reply = ReplyQueues.Verdict.allowed
    var takenAt = MonotonicTime(nanoseconds: 0)
    /// When it was taken, if it then waited to be begun.
    var takenAhead: DeliveriesAhead.Moment?
    /// Further deliveries of it, acknowledged with it.
    var repeats: [(token: DeliveryToken, hold: Int?)] = []
    /// When its channel was lost.
    var orphanedAt = MonotonicTime(nanoseconds: 0)
    /// The series of the application in whose ledger it is counted; nil where it is in none.
    var account: Int?
    /// The application for whose share of the shard's room the body counts; nil while it is leaving.
    var keptFor: Int?
  }

  /// Which request it is, and how long it is worth something. Times are unix milliseconds.
  struct Identity {
    /// Index of the app in the configuration; nil while it is not known which it is.
    var app: Int?
    var messageID: [UInt8] = []
    /// Its entry in the window of duplicates.
    var fingerprint: UInt64?
    /// When the producer published it or, if the producer doesn't say so, when a worker first saw it.
    var published: Int64 = 0
    /// The producer says when.
    var isDated = false
    /// How far the clock is behind the one by which it is dated, in milliseconds.
    var clockLag: Int64 = 0
    var admittedAt: Int64 = 0
    /// After this time the request is worth nothing.
    var deadline: Int64 = 0
  }

  /// What the registry has said about it.
  struct RegistryAnswers {
    /// Registrations not yet looked up.
    var unresolved = 0
    /// The devices of the registry that recipients refer to.
    var rows: DeviceRows?
    /// The further devices of a list's users and groups: their places after those of the list's entries.
    var members: [(place: Int, others: Range<Int>)] = []
    /// The registry keeps its message id, for acknowledgements that name it by its key.
    var isKept = false
    /// Where its `data.ext` can be fetched; nil where it has no page: every push has room for it, none has room for the address, or the
    /// registry has no room.
    var contentPage: [UInt8]?
    /// What each recipient's badge counter is with this request; nil for one that has no counter. Empty for a request
    /// that leaves them alone, and where it goes on without the registry.
    var badges: [Int64?] = []
    /// Of ``Gate``.
    var gatesPassed = 0
    /// The registry's answer for the next gate has not come yet.
    var isAsked = false
  }

  /// The credentials that it goes by, and its translations.
  struct Route {
    var routes: SenderRoutes
    /// Which APNs the tokens that came with the request belong to; nil for the application's first.
    var environment: APNsConfiguration.Environment?
    var unknownOutcome = UnknownOutcome.retry
    var apns: APNsTemplate?
    /// The pool whose settings `apns` was made with.
    var apnsPool = -1
    var fcm: FCMTemplate?
  }

  /// Its place among requests with the same collapse key.
  struct CollapseState {
    /// When it came; nil where nothing replaces it.
    var arrival: Arrival?
    /// Of a page of a campaign with a collapse key: by what a newer broadcast replaces it.
    var broadcastNote: CollapseNote?
    /// It has been on the ladder or in a hold queue, or waits for a provider in trouble: a newer one may replace it.
    var hasWaited = false
    var keys: CollapseKeys?
    /// When the registry has last said whether there is a newer one.
    var knownAt: MonotonicTime?
  }

  /// This attempt, those before it, and the next one. Times are unix milliseconds.
  struct Attempt {
    /// Earlier attempts, by any worker.
    var earlier = 0
    /// Trips through the retry queues. Parking increments this, not `earlier`.
    var round = 0
    /// What an earlier round had settled of a list, until its devices are known.
    var settledBefore: [UInt8]?
    /// A provider was asked in this round; being parked for an unreachable one costs no attempt.
    var hasAsked = false
    /// A `time_to_live` of 0: it is never tried again.
    var isLast = false
    /// Recipients were put off because their provider is in trouble, and none for another reason: it goes to the hold queue.
    var goesToHold = false
    /// It was put off.
    var isPutOff = false
    /// When its copy on the ladder is to be tried; nil while there is none.
    var waitsUntil: Int64?
    /// The same of a copy that has been decided on and may still be due.
    var copyDue: Int64 = 0
    /// The longest that any of its recipients was to wait when that was decided, in milliseconds. The clock may be set back until its copy leaves.
    var longestWait: Int64 = 0
    /// A random number by which its devices' next attempts differ from those of other requests.
    var draw: UInt64?
    /// What put the last recipient off.
    var lastFailure: (error: PushError, reason: String, status: Int?)?
    /// What the dead letters of its recipients say, for the result; by recipient.
    var reasons: [Int: String] = [:]
    /// What translation would change, of a request that is not to be sent.
    var dryRun: DryRunReport?
  }

  /// Nothing in a request to devices.
  struct BroadcastState {
    /// Which part of the request's audience this is; nil while its audience is not yet known.
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

  func begin(from queue: WorkQueue) {
    fields.source.queue = queue
    isInUse = true
  }

  /// Lets go of the request's memory and keeps the arrays' storage.
  func end() {
    isInUse = false
    generation += 1
    fields.recipients.removeAll(keepingCapacity: fields.recipients.capacity <= 16)
    fields.trace.end()
    fields = Fields(
      recipients: exchange(&fields.recipients, with: []), route: Route(routes: noRoutes),
      trace: exchange(&fields.trace, with: RequestTrace()))
  }

  var request: SendRequest? { fields.parsed?.request }

  /// It came with a message id, and so is known again after a crash.
  var isNamed: Bool { fields.delivery.properties.messageID?.isEmpty == false }

  /// The registry's id of a recipient's device; nil for a token that came with the request.
  func registration(of recipient: Int) -> [UInt8]? {
    let row = fields.recipients[recipient].row
    return row < 0 ? nil : fields.registry.rows?.registration(row)
  }

  /// A newer one may replace it once it waits.
  var isReplaceable: Bool { fields.collapse.arrival != nil || fields.collapse.broadcastNote != nil }

  /// It is for one part of an audience. (`page != nil` would copy the ticket.)
  var isPage: Bool { if case .none = fields.broadcast.page { false } else { true } }

  /// It is a page of a campaign.
  var isOfCampaign: Bool { fields.broadcast.page?.campaign.isEmpty == false }

  /// It is a page of a campaign, or came by a queue of pages.
  var isWholePage: Bool { isOfCampaign || !isPage && fields.source.queue.isFanOut }

  /// Unix milliseconds at which the first of those that wait for another attempt is to be tried; nil where none does.
  var earliestRetry: Int64? {
    var earliest: Int64?
    for recipient in fields.recipients {
      if case .postponed(let until) = recipient.state { earliest = min(earliest ?? until, until) }
    }
    return earliest
  }

  /// No recipient waits for longer than was decided, though the clock has been set back since.
  func boundWaits(at now: Int64) {
    let latest = now + fields.attempt.longestWait
    for index in fields.recipients.indices {
      if case .postponed(let until) = fields.recipients[index].state, until > latest {
        fields.recipients[index].state = .postponed(until: latest)
      }
    }
  }

  /// Puts back the outcomes of a list's devices that an earlier round has noted.
  func restore(_ settled: [UInt8], at now: Int64) {
    SettledTargets.restore(
      settled, to: &fields.recipients, until: fields.identity.deadline, lag: fields.identity.clockLag)
    for case .postponed(let until) in fields.recipients.lazy.map(\.state) {
      fields.attempt.longestWait = max(fields.attempt.longestWait, until - now)
    }
  }

  /// A small audience that nothing was sent to is a request again: no ticket names its devices.
  func forgetUnsentAudience() {
    guard fields.broadcast.page?.campaign.isEmpty == true, fields.broadcast.page?.pending == nil else { return }
    fields.broadcast.page = nil
    fields.recipients.removeAll(keepingCapacity: true)
  }

  /// To the hold queue: nothing else has put it off.
  func goToHold() {
    fields.attempt.goesToHold = true
    if fields.attempt.lastFailure == nil { fields.attempt.lastFailure = (.unavailable, "waiting for the provider", nil) }
  }

  func goToHold(_ index: Int, at now: Int64) {
    goToHold()
    fields.recipients[index].state = .postponed(until: now)
  }

  /// Distinguishes its rounds on the ladder and, for an audience, its pages and their copies.
  var lap: Int { fields.broadcast.page.map { Int(truncatingIfNeeded: $0.copy) ^ fields.attempt.round } ?? fields.attempt.round }

  /// Every device has it.
  var isDelivered: Bool {
    !fields.recipients.isEmpty
      && fields.recipients.allSatisfy {
        switch $0.state {
        case .delivered, .sameAs: true
        default: false
        }
      }
  }

  /// What became of the devices, for the log: how many of each state.
  var outcomes: String {
    var counts: [String: Int] = [:]
    for recipient in fields.recipients {
      switch recipient.state {
      case .delivered: counts["delivered", default: 0] += 1
      case .failed(let code): counts[code.rawValue, default: 0] += 1
      case .postponed: counts["put off", default: 0] += 1
      case .sameAs: counts["repeated", default: 0] += 1
      case .waiting, .unresolved, .gone, .refused, .sent: counts["open", default: 0] += 1
      }
    }
    return counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }.joined(separator: ", ")
  }

  /// At least one recipient has ended.
  var hasSettledDevice: Bool {
    fields.recipients.contains {
      switch $0.state {
      case .delivered, .failed: true
      case .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: false
      }
    }
  }

  /// Sending it again would reach a device twice.
  var hasReachedDevice: Bool {
    fields.recipients.contains { if case .delivered = $0.state { true } else { false } }
  }

  /// At least one recipient has been sent to or settled, and so the request can't go to another worker as it came.
  package var hasBegun: Bool {
    fields.recipients.contains {
      switch $0.state {
      case .sent, .delivered, .failed, .postponed: true
      case .waiting, .unresolved, .gone, .refused, .sameAs: false
      }
    }
  }

  /// Whose name at the provider a result may show: that of each target, and of a user or group that of the first of its devices
  /// that was reached.
  var namesToKeep: (Int) -> Bool {
    guard let first = fields.registry.members.first else { return { _ in true } }
    var others: Set<Int> = []
    for member in fields.registry.members {
      if case .delivered = fields.recipients[member.place].state { continue }
      for other in member.others {
        guard case .delivered = fields.recipients[other].state else { continue }
        others.insert(other)
        break
      }
    }
    return { $0 < first.others.lowerBound || others.contains($0) }
  }

  /// The outcome of each target is to be published.
  func wantsResult(_ setting: ResultsSetting) -> Bool {
    setting != .none || fields.source.reply == .allowed && fields.delivery.properties.replyTo?.isEmpty == false
  }
}
