import AMQP
import DeviceRegistry
import PushCore
import Wire

/// One request between its delivery by the broker and its acknowledgement.
///
/// The objects are reused, so that a steady worker allocates none. Confined to the shard's thread.
final class InFlight {
  /// Its place in the table; stands in the tag of every push and publication made for it.
  let index: Int

  /// Counts the requests that have had this place, so that a lane's reference to an earlier one is known as stale.
  private(set) var generation = 0
  private(set) var isInUse = false

  var delivery = Delivery()
  var queue = WorkQueue.sendNormal
  /// The application whose hold queue it came by; nil where it came by a lane.
  var hold: Int?
  /// Recipients were put off because their provider is in trouble, and none for another reason: it goes to the hold queue.
  var goesToHold = false
  /// What the body says, once it is admitted; let go of when nothing more is to be read from it.
  var parsed: ParsedRequest?
  /// A `time_to_live` of 0: it is never tried again.
  var isNowOrNever = false
  /// What follows from it puts it off.
  var isPutOff = false
  /// When its copy on the ladder is to be tried, unix milliseconds; nil while there is none.
  var waitsUntil: Int64?
  /// The same of a copy that has been decided on and may still be due.
  var copyDue: Int64 = 0
  /// The longest that any of its recipients was to wait when that was decided, in milliseconds. The clock may be set back until its copy leaves.
  var longestWait: Int64 = 0
  /// The series of the application in whose ledger it stands; nil where it stands in none.
  var account: Int?
  /// When it was taken.
  var takenAt = MonotonicTime(nanoseconds: 0)
  /// Where it waited to be begun.
  var takenAhead: DeliveriesAhead.Moment?
  /// Index of the app in the configuration; nil while it is not known which it is.
  var app: Int?
  /// The application for whose share of the shard's room the body counts; nil while it is leaving.
  var keptFor: Int?
  var messageID: [UInt8] = []
  /// Whose rights are still to be checked; nil once they have been. See ``NoteReader/producer(of:queue:)``.
  var producer: [UInt8]?
  /// Whether its result may go where `reply_to` says; nothing is done before that is known.
  var reply = ReplyQueues.Verdict.allowed
  /// When the producer published it or, where he doesn't say so, a worker first saw it; unix milliseconds.
  var published: Int64 = 0
  /// The producer says when.
  var isDated = false
  /// Unix milliseconds after which the request is worth nothing.
  var deadline: Int64 = 0
  /// Earlier attempts, by any worker.
  var attempts = 0
  /// Trips through the retry queues. Parking increments this, not `attempts`.
  var round = 0
  /// In the order of the request's targets; then ``members``.
  var recipients: [Recipient] = []
  /// What it waits for before its acknowledgement.
  var ledger = Ledger()
  /// Further deliveries of it, acknowledged with it.
  var repeats: [(token: DeliveryToken, hold: Int?)] = []
  var orphanedAt = MonotonicTime(nanoseconds: 0)
  /// Which of the duplicate window's entries it holds.
  var fingerprint: UInt64?

  var routes = Pipeline.Routes()
  /// Which APNs the tokens that came with the request belong to; nil for the application's first.
  var environment: APNsConfiguration.Environment?
  var unknownOutcome = UnknownOutcome.retry
  var apns: APNsTemplate?
  /// Whose settings `apns` was made with.
  var apnsPool = -1
  var fcm: FCMTemplate?
  /// When it came, where it has a collapse key; nil where nothing replaces it.
  var arrival: Arrival?
  /// Of a page of a campaign with a collapse key: by what a newer broadcast replaces it.
  var broadcastNote: CollapseNote?
  /// It has a collapse key and has been on the ladder or in a hold queue, or waits for a provider in trouble: a newer one may replace it.
  var hasWaited = false
  var collapseKeys: CollapseKeys?
  /// When the registry has last said whether there is a newer one.
  var collapsesKnownAt: MonotonicTime?
  /// A provider was asked in this round; being parked for an unreachable one costs no attempt.
  var hasAttempted = false
  /// A random number by which its devices' next attempts differ from those of other requests.
  var draw: UInt64?
  /// What translation would change, of a request that is not to be sent.
  var dryRun: DryRunReport?
  /// Unix milliseconds.
  var admittedAt: Int64 = 0

  /// Registrations not yet looked up.
  var unresolved = 0
  /// What each recipient's badge counter is with this request; nil for a request that leaves them alone.
  var badges: Badges?
  /// Whether the registry keeps its message id, for acknowledgements that name it by its key; nil where that wasn't asked for.
  var keeping: Keeping?
  /// Where its `data.ext` can be fetched; nil where that isn't decided yet.
  var contentPage: PageOfContent?
  /// The devices of the registry that recipients refer to.
  var rows: DeviceRows?
  /// Where the further devices of a list's users and groups stand, after those of the list's entries.
  var members: [(place: Int, others: Range<Int>)] = []
  /// What an earlier round had settled of a list, until its devices are known.
  var settledBefore: [UInt8]?
  /// How far the clock is behind the one by which it is dated, in milliseconds.
  var clockLag: Int64 = 0
  /// Which part of the request's audience this is; nil for a request to devices, and for one whose audience is not yet known.
  var page: PageTicket?
  /// Nil for a request to devices.
  var work: AudienceWork?

  /// What the dead letters of its recipients say, for the result; by recipient.
  var reasons: [Int: String] = [:]

  /// What put the last recipient off.
  var lastFailure: (error: PushError, reason: String, status: Int?)?
  var trace = RequestTrace()

  init(index: Int) { self.index = index }

  var reference: RequestReference { RequestReference(index: index, generation: generation) }

  func begin(from queue: WorkQueue) {
    self.queue = queue
    isInUse = true
  }

  var request: SendRequest? { parsed?.request }

  enum Keeping {
    /// The registry is asked. Becomes kept, or failed, or the request goes to the ladder.
    case asked
    case kept, failed
  }

  enum PageOfContent {
    /// The registry is asked to keep it. Becomes kept or needless, or the request goes to the ladder.
    case asked
    /// At this address.
    case kept([UInt8])
    /// Every push has room for it, or none would have room for the address, or the registry has no room for it.
    case needless
  }

  enum Badges {
    /// The registry counts. Becomes known, or the request goes to the ladder.
    case counting
    /// By recipient; nil for one that has no counter.
    case known([Int64?])
  }

  /// It came with a message id, and so is known again after a crash.
  var isNamed: Bool { delivery.properties.messageID?.isEmpty == false }

  /// A newer one may replace it once it waits.
  var isReplaceable: Bool { arrival != nil || broadcastNote != nil }

  /// It is for one part of an audience. (`page != nil` would copy the ticket.)
  var isPage: Bool { if case .none = page { false } else { true } }

  /// It is a page of a campaign.
  var isOfCampaign: Bool { page?.campaign.isEmpty == false }

  /// Unix milliseconds at which the first of those that wait for another attempt is to be tried; nil where none does.
  var earliestRetry: Int64? {
    var earliest: Int64?
    for recipient in recipients {
      if case .postponed(let until) = recipient.state { earliest = min(earliest ?? until, until) }
    }
    return earliest
  }

  /// No recipient waits for longer than was decided, though the clock has been set back since.
  func boundWaits(at now: Int64) {
    let latest = now + longestWait
    for index in recipients.indices {
      if case .postponed(let until) = recipients[index].state, until > latest {
        recipients[index].state = .postponed(until: latest)
      }
    }
  }

  /// Lets go of the request's memory and keeps the arrays' storage.
  func end() {
    isInUse = false
    generation += 1
    delivery = Delivery()
    parsed = nil
    isNowOrNever = false
    hold = nil
    goesToHold = false
    isPutOff = false
    waitsUntil = nil
    copyDue = 0
    longestWait = 0
    account = nil
    app = nil
    isDated = false
    keptFor = nil
    messageID = []
    producer = nil
    reply = .allowed
    attempts = 0
    round = 0
    recipients.removeAll(keepingCapacity: recipients.capacity <= 16)
    ledger = Ledger()
    if !repeats.isEmpty { repeats = [] }
    fingerprint = nil
    environment = nil
    apns = nil
    apnsPool = -1
    fcm = nil
    lastFailure = nil
    arrival = nil
    broadcastNote = nil
    hasWaited = false
    collapseKeys = nil
    collapsesKnownAt = nil
    if !reasons.isEmpty { reasons = [:] }
    hasAttempted = false
    draw = nil
    dryRun = nil
    unresolved = 0
    badges = nil
    keeping = nil
    contentPage = nil
    rows = nil
    if !members.isEmpty { members = [] }
    settledBefore = nil
    clockLag = 0
    if isPage { page = nil }
    if work != nil { work = nil }
    trace.end()
  }

  /// Distinguishes its rounds on the ladder and, for an audience, its pages and their copies.
  var lap: Int { page.map { Int(truncatingIfNeeded: $0.copy) ^ round } ?? round }

  /// Every device has it.
  var isDelivered: Bool {
    !recipients.isEmpty
      && recipients.allSatisfy {
        switch $0.state {
        case .delivered, .sameAs: true
        default: false
        }
      }
  }

  /// What became of the devices, for the log: how many of each state.
  var outcomes: String {
    var counts: [String: Int] = [:]
    for recipient in recipients {
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
    recipients.contains {
      switch $0.state {
      case .delivered, .failed: true
      case .waiting, .unresolved, .gone, .refused, .sent, .postponed, .sameAs: false
      }
    }
  }

  /// Sending it again would reach a device twice.
  var hasReachedDevice: Bool {
    recipients.contains { if case .delivered = $0.state { true } else { false } }
  }

  /// At least one recipient has been sent to or settled, and so the request can't go to another worker as it came.
  var hasBegun: Bool {
    recipients.contains {
      switch $0.state {
      case .sent, .delivered, .failed, .postponed: true
      case .waiting, .unresolved, .gone, .refused, .sameAs: false
      }
    }
  }

  /// Whose name at the provider a result may show: that of each target, and of a user or group that of the first of its devices
  /// that was reached.
  var namesToKeep: (Int) -> Bool {
    guard let first = members.first else { return { _ in true } }
    var others: Set<Int> = []
    for member in members {
      if case .delivered = recipients[member.place].state { continue }
      for other in member.others {
        guard case .delivered = recipients[other].state else { continue }
        others.insert(other)
        break
      }
    }
    return { $0 < first.others.lowerBound || others.contains($0) }
  }

  /// The outcome of each target is to be published.
  func wantsResult(_ setting: ResultsSetting) -> Bool {
    setting != .none || reply == .allowed && delivery.properties.replyTo?.isEmpty == false
  }
}

/// An admitted request, read from its body once. What every request is asked for is beside it: a look into the request from
/// outside of its module copies all of it.
final class ParsedRequest {
  let request: SendRequest
  let isDryRun: Bool
  let lifetime: Int?
  /// As ``SendRequest/expirationOfTokens``.
  let expiration: Int64?
  let package: [UInt8]?
  /// The one that it chooses itself.
  let topic: [UInt8]?
  let audience: Audience?
  let badge: SendRequest.Badge?
  /// It says nothing of a badge itself.
  let countsBadge: Bool
  /// A newer one may replace it while it waits.
  let isCollapsible: Bool
  /// Of the registered tokens that it goes to.
  private(set) lazy var kind = request.tokenKind
  private(set) lazy var hasExtension = request.hasExtension

  init(parsing body: [UInt8], limits: RequestLimits) throws(Rejection) {
    let request = try SendRequest(parsing: body, limits: limits)
    isDryRun = request.isDryRun
    lifetime = request.lifetime
    expiration = request.expirationOfTokens
    package = request.restrictedPackageName
    topic = request.apnsHeader(.apnsTopic).map(request.document.string)
    audience = request.audience
    badge = request.badgeOfCounter
    countsBadge = request.countsBadge
    isCollapsible = request.isCollapsible && !isDryRun
    self.request = request
  }
}

/// One device of a request.
struct Recipient {
  enum State {
    /// Not yet handed to a pool. Becomes sent, failed or postponed.
    case waiting
    /// Registered, and its device is being looked up. Becomes waiting, refused or gone.
    case unresolved
    /// The registry knows that the app is gone; becomes failed without asking the provider.
    case gone
    /// No pool can take it; becomes failed as soon as the request is dispatched.
    case refused(Rejection)
    /// On a stream. Becomes delivered, failed, postponed, or waiting again when it was certainly not processed.
    case sent
    /// The provider took it; FCM's name, or what APNs' sandbox calls it, where one is wanted. APNs' own id follows from the request.
    case delivered(name: [UInt8])
    case failed(PushError)
    /// To be tried again, not before this unix millisecond.
    case postponed(until: Int64)
    /// The same device as an earlier target of the request, whose outcome it shares.
    case sameAs(Int)

    /// A push to it is still to go out.
    var isToBeSent: Bool {
      switch self {
      case .waiting, .postponed: true
      case .unresolved, .gone, .refused, .sent, .delivered, .failed, .sameAs: false
      }
    }
  }

  var platform: Platform
  /// The provider's own token, or what stands in its place with FCM (``FCMAddress``); of a registered device, where it lies among the
  /// rows of its page.
  var token: ArraySlice<UInt8>
  /// The pool that reaches it.
  var pool: Int
  var state = State.waiting
  /// Its row in the request's devices; -1 for a token that came with the request.
  var row = -1
  /// The request named the device by a registration that has a newer one.
  var isOldRegistration = false
  /// What the provider says of it concerns a device, or not.
  var kind = Kind.device

  enum Kind {
    case device
    /// A broadcast channel of APNs: the token is its id.
    case channel
    /// Topics that FCM keeps: the token is their address.
    case topics
  }
}

/// Recipients of one request that get the same translation.
struct PushWay: Hashable {
  let platform: Platform
  let pool: Int
  let isChannel: Bool

  init(_ recipient: Recipient) {
    (platform, pool, isChannel) = (recipient.platform, recipient.pool, recipient.kind == .channel)
  }
}

extension InFlight {
  /// Of the pushes that are still to go out, each once.
  var waysToSend: [PushWay] {
    recipients.reduce(into: []) { ways, recipient in
      guard recipient.state.isToBeSent else { return }
      let way = PushWay(recipient)
      if !ways.contains(way) { ways.append(way) }
    }
  }
}

/// A request in the shard's table, for as long as its place is its own.
struct RequestReference: Equatable {
  var index: Int
  var generation: Int
}

/// The requests that a shard has in hand; bounded by the prefetch.
struct InFlightTable {
  private(set) var entries: [InFlight] = []
  private var free: [Int] = []
  private(set) var count = 0

  mutating func insert(from queue: WorkQueue) -> InFlight {
    count += 1
    let entry: InFlight
    if let index = free.popLast() {
      entry = entries[index]
    } else {
      entry = InFlight(index: entries.count)
      entries.append(entry)
    }
    entry.begin(from: queue)
    return entry
  }

  mutating func remove(_ entry: InFlight) {
    entry.end()
    free.append(entry.index)
    count -= 1
  }

  subscript(index: Int) -> InFlight { entries[index] }

  /// The request, unless its place is another one's by now.
  subscript(reference: RequestReference) -> InFlight? {
    let entry = entries[reference.index]
    return entry.generation == reference.generation ? entry : nil
  }
}
