import DeviceRegistry
import PushCore
import Wire

/// Who has questions about requests that wait.
protocol CollapsesHandler: AnyObject {
  /// What they noted is stored, or can't be.
  func noted(_ requests: [RequestReference])
  /// What the registry knows is known here, or it can't say.
  func answered(_ questions: [Collapses.Question])
}

/// Of requests with a collapse key that wait, only the newest for each device and key goes out: on the ladder, in a hold queue, or here while the
/// provider is in trouble. What has never waited is sent, and nobody is asked. Broadcasts are compared with those to the same audience.
///
/// A shard knows those that have waited here, and what the registry said when one came back. Where there is no registry, or it can't be
/// asked, nothing waits for it. Confined to the shard's thread.
final class Collapses {
  /// A request that has waited is to be sent.
  struct Question {
    var request: RequestReference
    var places: [CollapsePlace]
    /// What goes back into the pool's lanes afterwards.
    var next: PoolLanes.Next
    var pool: Int
  }

  weak var handler: (any CollapsesHandler)?
  private let apps: Applications
  private let registry: RegistryClient?
  private let time: Turn
  /// Newest order by place: what was noted of late, and what before that.
  private var recent: [CollapsePlace: CollapseOrder] = [:]
  private var earlier: [CollapsePlace: CollapseOrder] = [:]
  private var nextTurnover: MonotonicTime
  private var lastArrival: Int64 = 0
  /// To be stored, and for whom.
  private var notes: [CollapsePlace: CollapseNote] = [:]
  private var requests: [RequestReference] = []
  /// Notes on their way to the registry.
  private var underWay = 0
  private var questions: [Question] = []

  /// Places of each of the two.
  private static let most = 32_768
  /// Seconds.
  private static let turnover = 43_200.0
  /// Beyond these nothing more is stored until some are: what waits is moved faster than a database writes.
  private static let mostUnderWay = 8_192
  private static let mostAtOnce = 1_024

  init(apps: Applications, registry: RegistryClient?, time: Turn) {
    self.apps = apps
    self.registry = registry
    self.time = time
    nextTurnover = time.now.advanced(bySeconds: Self.turnover)
  }

  /// Nothing has waited of late.
  var isEmpty: Bool { recent.isEmpty && earlier.isEmpty }

  /// Microseconds of the clock, no two alike.
  func arrival() -> Int64 {
    lastArrival = max(lastArrival + 1, time.wallClock * 1_000)
    return lastArrival
  }

  // MARK: requests that come and wait

  /// It has come, with a collapse key.
  func noteArrival(_ entry: InFlight, _ record: RetryRecord?) {
    // What is left of a small audience comes from the ladder, and its place in the order was noted as it went there.
    let isRest = entry.broadcast.page?.campaign.isEmpty == true
    entry.collapse.hasWaited = record != nil || isRest || entry.broadcast.page?.hasWaited == true
    // A broadcast's place in the order is its campaign's.
    guard !entry.isOfCampaign, entry.parsed?.audience?.isSmall != false else { return }
    let date = Intake.dateForOrder(entry.delivery.properties, published: entry.identity.published, at: time.wallClock)
    entry.collapse.arrival =
      record?.arrival ?? Arrival(published: date, number: isRest ? 0 : entry.source.takenAhead?.number ?? arrival())
  }

  /// It goes to the ladder or to a hold queue: older ones are not sent any more. Owed, like what is published beside it.
  func noteWaiting(_ entry: InFlight) {
    guard entry.collapse.arrival != nil else { return }
    let order = entry.collapseOrder
    let notes = places(of: entry).map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }
    for note in notes { learn(order, in: note.place) }
    if store(notes, for: entry.reference) { entry.ledger.owes() }
  }

  /// A broadcast begins: older ones to the same audience are not sent any more where they wait. Owed, like its first page.
  func noteBegun(_ entry: InFlight, _ campaign: Campaign) {
    guard let note = note(of: entry, campaign) else { return }
    if store([note], for: entry.reference) { entry.ledger.owes() }
  }

  /// See ``InFlight/collapseNote(of:_:)``.
  func note(of entry: InFlight, _ campaign: Campaign) -> CollapseNote? {
    entry.collapseNote(of: campaign, apps.id(of: entry.identity.app))
  }

  /// It waits here, as its provider is in trouble, or has waited before.
  func noteWaitingHere(_ entry: InFlight) {
    // A broadcast was noted when it began.
    guard entry.collapse.arrival != nil else { return entry.collapse.hasWaited = true }
    let order = entry.collapseOrder
    let places = places(of: entry)
    for place in places { learn(order, in: place) }
    // What has waited elsewhere was stored when it went there.
    if !entry.collapse.hasWaited {
      _ = store(places.map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }, for: nil)
    }
    entry.collapse.hasWaited = true
  }

  /// It has reached a device for which older ones wait.
  func noteDelivered(_ entry: InFlight, _ index: Int) {
    guard !isEmpty else { return }
    let order = entry.collapseOrder
    var notes: [CollapseNote] = []
    for place in entry.collapsePlaces(of: index, apps.id(of: entry.identity.app)) {
      guard let newest = newest(in: place), newest.isReplaced(by: order) else { continue }
      learn(order, in: place)
      notes.append(CollapseNote(place: place, order: order, until: entry.identity.deadline))
    }
    _ = store(notes, for: nil)
  }

  private func places(of entry: InFlight) -> [CollapsePlace] { entry.collapsePlaces(apps.id(of: entry.identity.app)) }

  // MARK: requests that are to be sent

  /// Whether other shards are asked first if they know of a newer request. Only for a request that has waited. ``CollapsesHandler/answered(_:)`` follows.
  func asksFirst(_ entry: InFlight, _ next: PoolLanes.Next, _ pool: Int) -> Bool {
    guard entry.isReplaceable, registry != nil else { return false }
    if let time = entry.collapse.knownAt, self.time.now.seconds(since: time) < Self.longestKnown { return false }
    let places = entry.collapse.broadcastNote.map { [$0.place] } ?? places(of: entry)
    guard !places.isEmpty else { return false }
    ask(Question(request: entry.reference, places: places, next: next, pool: pool))
    return true
  }

  /// Seconds for which an answer is good.
  private static let longestKnown = 1.0

  /// A newer request has taken its place for the device. Only for a request that has waited.
  func isReplaced(_ entry: InFlight, _ index: Int) -> Bool {
    guard entry.isReplaceable, !isEmpty else { return false }
    if let note = entry.collapse.broadcastNote {
      return newest(in: note.place).map { note.order.isReplaced(by: $0) } ?? false
    }
    let order = entry.collapseOrder
    return entry.collapsePlaces(of: index, apps.id(of: entry.identity.app)).contains { place in
      newest(in: place).map { order.isReplaced(by: $0) } ?? false
    }
  }

  // MARK: known here

  func newest(in place: CollapsePlace) -> CollapseOrder? {
    switch (recent[place], earlier[place]) {
    case (let one?, let other?): max(one, other)
    case (let one, let other): one ?? other
    }
  }

  func learn(_ order: CollapseOrder, in place: CollapsePlace) {
    if let known = recent[place], known >= order { return }
    if recent.count >= Self.most || time.now >= nextTurnover { turnOver() }
    recent[place] = order
  }

  private func turnOver() {
    earlier = recent
    recent = [:]
    nextTurnover = time.now.advanced(bySeconds: Self.turnover)
  }

  // MARK: known in the fleet

  /// Has notes stored for the other shards, and for whoever comes after this one.
  /// - Parameter request: which owes them; nil where none does.
  /// - Returns: false where none are stored.
  func store(_ notes: [CollapseNote], for request: RequestReference?) -> Bool {
    guard registry != nil, !notes.isEmpty, underWay + self.notes.count < Self.mostUnderWay else { return false }
    for note in notes { self.notes[note.place, default: note].merge(note) }
    if let request { requests.append(request) }
    return true
  }

  func ask(_ question: Question) { questions.append(question) }

  /// At the end of a turn: all that it has brought, together.
  func flush() {
    if time.now >= nextTurnover, !isEmpty { turnOver() }
    storeNotes()
    askQuestions()
  }

  private func storeNotes() {
    guard !notes.isEmpty else { return }
    // In one order, in which writers don't get into each other's way.
    var rest = notes.values.sorted { ($0.place.high, $0.place.low) < ($1.place.high, $1.place.low) }[...]
    let owing = requests
    notes = [:]
    requests = []
    while !rest.isEmpty {
      let portion = Array(rest.prefix(Self.mostAtOnce))
      rest = rest.dropFirst(portion.count)
      let isLast = rest.isEmpty
      underWay += portion.count
      registry?.call(.write(.notes) { store, _ in try store.noteWaiting(portion) }) { [weak self] _ in
        self?.underWay -= portion.count
        if isLast { self?.handler?.noted(owing) }
      }
    }
  }

  private func askQuestions() {
    guard !questions.isEmpty else { return }
    let asked = questions
    questions = []
    let places = asked.flatMap(\.places)
    registry?.call(.read { try $0.newestWaiting(in: places) }) { [weak self] result in
      if case .success(let orders) = result {
        for (place, order) in zip(places, orders) { if let order { self?.learn(order, in: place) } }
      }
      self?.handler?.answered(asked)
    }
  }
}
