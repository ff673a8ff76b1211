import Wire

/// A participant with machines on the network: a worker, the broker, a provider or the producer. It takes a turn whenever
/// something is due.
class Participant {
  let name: String
  unowned let world: World
  private(set) var ends: [NetworkEnd] = []
  /// True for a stopped process: it takes no turns, and its connections stay open.
  var isFrozen = false { didSet { forgetDeadline() } }
  private var isWoken = false
  /// The cached `deadline`; nil after a turn, an arrival or an event of the world.
  private var knownDeadline: MonotonicTime?

  init(_ name: String, in world: World) {
    self.name = name
    self.world = world
    world.add(self)
  }

  func attach(_ end: NetworkEnd) {
    ends.append(end)
    forgetDeadline()
  }

  /// Requests a turn at once.
  func wake() {
    isWoken = true
    forgetDeadline()
  }

  final func forgetDeadline() { knownDeadline = nil }

  /// When something besides the connections is due.
  var ownDeadline: MonotonicTime { .distantFuture }

  /// The work of a turn, between receiving and sending.
  func act(at now: MonotonicTime) {}

  func closed(_ end: NetworkEnd, at now: MonotonicTime) {}

  func turnBegins(at now: MonotonicTime) {}

  final var deadline: MonotonicTime {
    if let knownDeadline { return knownDeadline }
    let deadline = nextDeadline
    knownDeadline = deadline
    return deadline
  }

  private var nextDeadline: MonotonicTime {
    guard !isFrozen else { return .distantFuture }
    var next = isWoken ? world.now : ownDeadline
    for end in ends { next = min(next, end.deadline) }
    return next
  }

  final func turn(at now: MonotonicTime) {
    guard deadline <= now else { return }
    isWoken = false
    turnBegins(at: now)
    for end in ends { end.deliver(at: now) }
    for end in ends { end.checkDeadline(at: now) }
    act(at: now)
    for end in ends { end.transmit(at: now) }
    ends.removeAll { $0.isOver }
    forgetDeadline()
  }

  /// The process ends. The kernel closes its connections.
  func vanish(at now: MonotonicTime) {
    for end in ends where !end.isOver { end.path.carry(.ended(.failed("connection reset")), from: end, at: now) }
    ends = []
    isFrozen = false
  }
}
