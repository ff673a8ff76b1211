import Wire

/// Whoever has machines on the network: a worker, the broker, a provider, a producer. Takes its turn whenever something is due for it.
class Party {
  let name: String
  unowned let world: World
  private(set) var ends: [NetworkEnd] = []
  /// It takes no turn: a process that is stopped, with its connections open.
  var isFrozen = false { didSet { forgetDeadline() } }
  private var isWoken = false
  /// What `deadline` was, until something may have changed it: a turn, what arrives, or an event of the world's.
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

  /// It is to have a turn at once.
  func wake() {
    isWoken = true
    forgetDeadline()
  }

  final func forgetDeadline() { knownDeadline = nil }

  /// When something besides its connections is due.
  var ownDeadline: MonotonicTime { .distantFuture }

  /// What it does in a turn, between what has arrived and what is sent.
  func act(at now: MonotonicTime) {}

  /// It has closed a connection.
  func closed(_ end: NetworkEnd, at now: MonotonicTime) {}

  /// Before anything else of a turn.
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

  /// The process is gone; its peers hear of it from the kernel.
  func vanish(at now: MonotonicTime) {
    for end in ends where !end.isOver { end.path.carry(.ended(.failed("connection reset")), from: end, at: now) }
    ends = []
    isFrozen = false
  }
}
