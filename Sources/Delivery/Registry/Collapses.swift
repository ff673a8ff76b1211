import DeviceRegistry
import PushCore
import Wire

/// Sends only the newest of the waiting requests for each device and collapse key. A request waits on the retry ladder, in a
/// hold queue, or in the worker while its provider is in trouble. A request that has never waited is sent at once. Broadcasts
/// are compared with others to the same audience. A shard knows the requests that waited here, and asks the registry when one
/// comes back. Without a registry, or if it can't answer, the request doesn't wait. Confined to the shard's thread.
final class Collapses {
  /// A request that has waited is about to be sent: asks the registry for newer ones.
  struct Question {
    var places: [CollapsePlace]
    var waiting: PoolLanes.Waiting
    var pool: Int
  }

  /// The registry has stored the notes of these requests.
  var onNoted: (([RequestReference]) -> Void)?
  var onAnswered: (([Question]) -> Void)?
  private let tools: ShardTools
  /// The newest order by place: the present generation, and the one before it.
  private var recent: [CollapsePlace: CollapseOrder] = [:]
  private var earlier: [CollapsePlace: CollapseOrder] = [:]
  private var nextTurnover: MonotonicTime
  private var lastArrival: Int64 = 0
  /// Notes to store, and the requests that wait for them.
  private var notes: [CollapsePlace: CollapseNote] = [:]
  private var requests: [RequestReference] = []
  /// The number of notes that the registry is storing.
  private var underWay = 0
  private var questions: [Question] = []

  /// The limit of places in one generation.
  private static let most = 32_768
  /// Seconds.
  private static let turnover = 43_200.0
  /// The limit of unstored notes. Above it notes are dropped, because requests wait faster than the database writes.
  private static let mostUnderWay = 8_192
  private static let mostAtOnce = 1_024

  init(_ tools: ShardTools) {
    self.tools = tools
    nextTurnover = tools.time.now.advanced(bySeconds: Self.turnover)
  }

  var isEmpty: Bool { recent.isEmpty && earlier.isEmpty }

  /// Wall-clock microseconds, unique in this shard.
  func arrival() -> Int64 {
    lastArrival = max(lastArrival + 1, tools.time.wallClock * 1_000)
    return lastArrival
  }

  // MARK: requests that come and wait

  func noteArrival(_ entry: InFlight, _ record: RetryRecord?) {
    // The rest of a small audience comes from the ladder, where its order was noted.
    let isRest = entry.broadcast.page?.campaign.isEmpty == true
    entry.collapse.hasWaited = record != nil || isRest || entry.broadcast.page?.hasWaited == true
    guard !entry.isOfCampaign, entry.request?.audience?.isSmall != false else { return }
    let date = Intake.dateForOrder(entry.delivery.properties, published: entry.identity.published, at: tools.time.wallClock)
    entry.collapse.arrival =
      record?.arrival ?? Arrival(published: date, number: isRest ? 0 : entry.source.takenAhead?.number ?? arrival())
  }

  /// The request goes to the ladder or to a hold queue and replaces older ones. Its acknowledgement waits until the note is
  /// stored.
  func noteWaiting(_ entry: InFlight) {
    guard entry.collapse.arrival != nil else { return }
    let order = entry.collapseOrder
    let notes = places(of: entry).map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }
    for note in notes { learn(order, in: note.place) }
    if store(notes, for: entry.reference) { entry.ledger.owes() }
  }

  /// A broadcast begins and replaces older waiting ones to the same audience. Its acknowledgement waits until the note is
  /// stored.
  func noteBegun(_ entry: InFlight, _ campaign: Campaign) {
    guard let note = note(of: entry, campaign) else { return }
    if store([note], for: entry.reference) { entry.ledger.owes() }
  }

  /// See ``InFlight/collapseNote(of:_:)``.
  func note(of entry: InFlight, _ campaign: Campaign) -> CollapseNote? {
    entry.collapseNote(of: campaign, tools.apps.id(of: entry.identity.app))
  }

  /// The request waits in the worker because its provider is in trouble, or has waited before.
  func noteWaitingHere(_ entry: InFlight) {
    // A broadcast was noted when it began.
    guard entry.collapse.arrival != nil else { return entry.collapse.hasWaited = true }
    let order = entry.collapseOrder
    let places = places(of: entry)
    for place in places { learn(order, in: place) }
    // Other places have stored it already.
    if !entry.collapse.hasWaited {
      _ = store(places.map { CollapseNote(place: $0, order: order, until: entry.identity.deadline) }, for: nil)
    }
    entry.collapse.hasWaited = true
  }

  /// The request has reached a device and replaces older waiting ones.
  func noteDelivered(_ entry: InFlight, _ index: Int) {
    guard !isEmpty else { return }
    let order = entry.collapseOrder
    var notes: [CollapseNote] = []
    for place in entry.collapsePlaces(of: index, tools.apps.id(of: entry.identity.app)) {
      guard let newest = newest(in: place), newest.isReplaced(by: order) else { continue }
      learn(order, in: place)
      notes.append(CollapseNote(place: place, order: order, until: entry.identity.deadline))
    }
    _ = store(notes, for: nil)
  }

  private func places(of entry: InFlight) -> [CollapsePlace] { entry.collapsePlaces(tools.apps.id(of: entry.identity.app)) }

  // MARK: requests that are to be sent

  /// Whether the registry must be asked for newer requests first. If true, ``onAnswered`` follows. For
  /// waited requests only.
  func asksFirst(_ entry: InFlight, _ waiting: PoolLanes.Waiting, _ pool: Int) -> Bool {
    guard entry.isReplaceable, tools.registry != nil else { return false }
    if let time = entry.collapse.knownAt, tools.time.now.seconds(since: time) < Self.longestKnown { return false }
    let places = entry.collapse.broadcastNote.map { [$0.place] } ?? places(of: entry)
    guard !places.isEmpty else { return false }
    ask(Question(places: places, waiting: waiting, pool: pool))
    return true
  }

  /// The number of seconds for which an answer is valid.
  private static let longestKnown = 1.0

  /// Whether a newer request has replaced this one for the device. For waited requests only.
  func isReplaced(_ entry: InFlight, _ index: Int) -> Bool {
    guard entry.isReplaceable, !isEmpty else { return false }
    if let note = entry.collapse.broadcastNote {
      return newest(in: note.place).map { note.order.isReplaced(by: $0) } ?? false
    }
    let order = entry.collapseOrder
    return entry.collapsePlaces(of: index, tools.apps.id(of: entry.identity.app)).contains { place in
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
    if recent.count >= Self.most || tools.time.now >= nextTurnover { turnOver() }
    recent[place] = order
  }

  private func turnOver() {
    earlier = recent
    recent = [:]
    nextTurnover = tools.time.now.advanced(bySeconds: Self.turnover)
  }

  // MARK: known in the fleet

  /// Stores notes for other shards and later processes.
  /// - Parameter request: the request that waits for them; nil if none does.
  /// - Returns: false if they are dropped.
  func store(_ notes: [CollapseNote], for request: RequestReference?) -> Bool {
    guard tools.registry != nil, !notes.isEmpty, underWay + self.notes.count < Self.mostUnderWay else { return false }
    for note in notes { self.notes[note.place, default: note].merge(note) }
    if let request { requests.append(request) }
    return true
  }

  func ask(_ question: Question) { questions.append(question) }

  /// Sends the turn's notes and questions to the registry.
  func flush() {
    if tools.time.now >= nextTurnover, !isEmpty { turnOver() }
    storeNotes()
    askQuestions()
  }

  private func storeNotes() {
    guard !notes.isEmpty else { return }
    // A fixed order keeps concurrent writers from blocking each other.
    var rest = notes.values.sorted { ($0.place.high, $0.place.low) < ($1.place.high, $1.place.low) }[...]
    let owing = requests
    notes = [:]
    requests = []
    while !rest.isEmpty {
      let portion = Array(rest.prefix(Self.mostAtOnce))
      rest = rest.dropFirst(portion.count)
      let isLast = rest.isEmpty
      underWay += portion.count
      tools.registry?.call(.write(.notes) { store, _ in try store.noteWaiting(portion) }) { [weak self] _ in
        self?.underWay -= portion.count
        if isLast { self?.onNoted?(owing) }
      }
    }
  }

  private func askQuestions() {
    guard !questions.isEmpty else { return }
    let asked = questions
    questions = []
    let places = asked.flatMap(\.places)
    tools.registry?.call(.read { try $0.newestWaiting(in: places) }) { [weak self] result in
      if case .success(let orders) = result {
        for (place, order) in zip(places, orders) { if let order { self?.learn(order, in: place) } }
      }
      self?.onAnswered?(asked)
    }
  }
}
