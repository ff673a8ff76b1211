import MachineDriver
import Wire

/// One end of a connection: a participant's machine and the data on its way to it.
final class NetworkEnd {
  enum Segment {
    case opened
    case bytes([UInt8])
    case ended(TransportEnd)
  }

  let driver: MachineDriver
  unowned let path: NetworkPath
  unowned let participant: Participant
  private var arriving = Ring<(at: MonotonicTime, segment: Segment)>()
  /// Bytes on their way, as in a peer's socket buffers.
  private(set) var buffered = 0
  /// True if the machine was called since it was last asked for output.
  private var wasCalled = false
  /// When bytes were last delivered.
  private var heard = MonotonicTime(nanoseconds: 0)

  init(_ machine: any Machine, of participant: Participant, on path: NetworkPath) {
    driver = MachineDriver(machine)
    self.participant = participant
    self.path = path
  }

  /// Data never arrives before earlier data.
  func send(_ segment: Segment, arriving time: MonotonicTime) {
    if case .bytes(let bytes) = segment { buffered += bytes.count }
    arriving.append((max(time, arriving.last?.at ?? time), segment))
    participant.forgetDeadline()
  }

  var isOver: Bool { driver.end != nil }

  /// When this end next has something to do.
  var deadline: MonotonicTime {
    guard !isOver else { return .distantFuture }
    if driver.isDue, !isStopped { return MonotonicTime(nanoseconds: 0) }
    var next = driver.isOpen ? driver.machine.deadline : .distantFuture
    if let first = arriving.first, mayTake(first.segment) { next = min(next, first.at) }
    return next
  }

  /// A paused reader notices neither bytes nor the end of the connection.
  private func mayTake(_ segment: Segment) -> Bool {
    if case .opened = segment { true } else { !driver.isReadingPaused }
  }

  /// True if the peer's buffers are full.
  var isStopped: Bool { path.other(self)?.buffered ?? 0 >= NetworkPath.window }

  /// Delivers arrived data, sliced by the network.
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
        path.other(self)?.participant.wake()
      case .ended(let reason): driver.finish(reason, at: now)
      }
    }
  }

  /// Time of the last bytes received, read or not.
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

  /// Sends the machine's output, and the end of the connection when it is finished.
  func transmit(at now: MonotonicTime) {
    guard !isOver, wasCalled || driver.isDue else { return }
    // The machine may dial again when it ends, and the network then forgets this path.
    let path = path
    if !isStopped {
      wasCalled = false
      let bytes = driver.collect(at: now)
      if !bytes.isEmpty { path.carry(.bytes(bytes), from: self, at: now) }
    }
    if driver.settle(at: now) {
      path.carry(.ended(.closedByPeer), from: self, at: now)
      participant.closed(self, at: now)
    }
  }

  func dropArriving() {
    arriving = Ring()
    buffered = 0
  }
}
