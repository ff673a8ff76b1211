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

/// Of the requests with a collapse key that wait in the fleet, which is the newest for each device and key, as far as the shard knows.
///
/// It knows those that have waited here, and what the registry said when one came back. Where there is no registry, or it can't be
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

  init(registry: RegistryClient?, time: Turn) {
    self.registry = registry
    self.time = time
    nextTurnover = time.now.advanced(bySeconds: Self.turnover)
  }

  /// Other shards may know more.
  var isShared: Bool { registry != nil }
  /// Nothing has waited of late.
  var isEmpty: Bool { recent.isEmpty && earlier.isEmpty }

  /// Microseconds of the clock, no two alike.
  func arrival() -> Int64 {
    lastArrival = max(lastArrival + 1, time.wallClock * 1_000)
    return lastArrival
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
      registry?.call(.noteWaiting(portion)) { [weak self] _ in
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
    registry?.call(.newestWaiting(in: places)) { [weak self] result in
      if case .success(let orders) = result {
        for (place, order) in zip(places, orders) { if let order { self?.learn(order, in: place) } }
      }
      self?.handler?.answered(asked)
    }
  }
}
