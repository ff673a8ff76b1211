import Wire

/// Whoever has machines on the network: a worker, the broker, a provider, a producer. Takes its turn whenever something is due for it.
class Party {
  let name: String
  unowned let world: World
  private(set) var ends: [NetworkEnd] = []
  /// It takes no turn: a process that is stopped, with its connections open.
  var isFrozen = false
  private var isWoken = false

  init(_ name: String, in world: World) {
    self.name = name
    self.world = world
    world.add(self)
  }

  func attach(_ end: NetworkEnd) { ends.append(end) }

  /// It is to have a turn at once.
  func wake() { isWoken = true }

  /// When something besides its connections is due.
  var ownDeadline: MonotonicTime { .distantFuture }

  /// What it does in a turn, between what has arrived and what is sent.
  func act(at now: MonotonicTime) {}

  /// It has closed a connection.
  func closed(_ end: NetworkEnd, at now: MonotonicTime) {}

  /// Before anything else of a turn.
  func turnBegins(at now: MonotonicTime) {}

  final var deadline: MonotonicTime {
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
    for end in ends { end.driver.checkDeadline(at: now) }
    act(at: now)
    for end in ends { end.transmit(at: now) }
    ends.removeAll { $0.isOver }
  }

  /// The process is gone; its peers hear of it from the kernel.
  func vanish(at now: MonotonicTime) {
    for end in ends where !end.isOver { end.path.carry(.ended(.failed("connection reset")), from: end, at: now) }
    ends = []
    isFrozen = false
  }
}
