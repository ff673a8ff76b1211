import Wire

/// One end of a connection: a party's machine, and what is on its way to it.
final class NetworkEnd {
  enum Segment {
    case opened
    case bytes([UInt8])
    case ended(TransportEnd)
  }

  let driver: MachineDriver
  unowned let path: NetworkPath
  unowned let party: Party
  private var arriving = Ring<(at: MonotonicTime, segment: Segment)>()
  /// Bytes on their way: what a peer's socket buffers would hold.
  private(set) var buffered = 0
  /// The machine has been called since it was last asked for output.
  private var wasCalled = false
  /// When bytes were last handed over.
  private var heard = MonotonicTime(nanoseconds: 0)

  init(_ machine: any Machine, of party: Party, on path: NetworkPath) {
    driver = MachineDriver(machine)
    self.party = party
    self.path = path
  }

  /// It comes no sooner than what was sent before it.
  func send(_ segment: Segment, arriving time: MonotonicTime) {
    if case .bytes(let bytes) = segment { buffered += bytes.count }
    arriving.append((max(time, arriving.last?.at ?? time), segment))
    party.forgetDeadline()
  }

  var isOver: Bool { driver.end != nil }

  /// When this end has something to do.
  var deadline: MonotonicTime {
    guard !isOver else { return .distantFuture }
    if driver.isDue, !isStopped { return MonotonicTime(nanoseconds: 0) }
    var next = driver.isOpen ? driver.machine.deadline : .distantFuture
    if let first = arriving.first, mayTake(first.segment) { next = min(next, first.at) }
    return next
  }

  /// A paused reader notices neither bytes nor the end behind them.
  private func mayTake(_ segment: Segment) -> Bool {
    if case .opened = segment { true } else { !driver.isReadingPaused }
  }

  /// The peer's buffers are full.
  var isStopped: Bool { path.other(self)?.buffered ?? 0 >= NetworkPath.window }

  /// Hands over what has arrived, cut as the network pleases.
  func deliver(at now: MonotonicTime) {
    while !isOver, let (time, segment) = arriving.first, time <= now, mayTake(segment) {
      _ = arriving.popFirst()
      wasCalled = true
      switch segment {
      case .opened: driver.open(at: now)
      case .bytes(let bytes):
        buffered -= bytes.count
        heard = now
        for piece in path.cut(bytes) { driver.receive(piece, at: now) }
        path.other(self)?.party.wake()
      case .ended(let reason): driver.finish(reason, at: now)
      }
    }
  }

  /// When the peer was last heard of, be it that nobody has read it yet.
  func lastWord(at now: MonotonicTime) -> MonotonicTime {
    var last = heard
    for (time, segment) in arriving where time <= now {
      if case .bytes = segment { last = max(last, time) }
    }
    return last
  }

  func checkDeadline(at now: MonotonicTime) {
    if driver.checkDeadline(at: now) { wasCalled = true }
  }

  /// Sends what the machine has to say, and says goodbye when it is done.
  func transmit(at now: MonotonicTime) {
    guard !isOver, wasCalled || driver.isDue else { return }
    if !isStopped {
      wasCalled = false
      let bytes = driver.collect(at: now)
      if !bytes.isEmpty { path.carry(.bytes(bytes), from: self, at: now) }
    }
    if driver.settle(at: now) {
      path.carry(.ended(.closedByPeer), from: self, at: now)
      party.closed(self, at: now)
    }
  }

  /// Everything on its way to this end is lost.
  func dropArriving() {
    arriving = Ring()
    buffered = 0
  }
}
