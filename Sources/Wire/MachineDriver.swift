/// Drives one machine in memory: the test plays the network and the clock.
///
/// Keeps the promises of a real link: calls are never re-entrant, `transportClosed` comes exactly once, and a machine
/// that pauses reading is given nothing until it resumes.
public final class MachineDriver: Transport {
  public let machine: any Machine
  public var isReadingPaused = false
  /// Everything the machine has ever written.
  public private(set) var transcript: [UInt8] = []
  /// How the transport ended, once it did.
  public private(set) var end: TransportEnd?
  public private(set) var isOpen = false
  /// True while `outputReady` was called and the output has not been collected since.
  public private(set) var isOutputReady = false
  private var pendingEnd: TransportEnd?
  /// Something has come up outside a call of the driver's.
  public var isDue: Bool { isOutputReady || pendingEnd != nil }
  private var output = OutputBuffer()

  public init(_ machine: any Machine) {
    self.machine = machine
    machine.transport = self
  }

  public func outputReady() { isOutputReady = true }

  /// Takes effect at the next `settle`, never inside the machine's own call.
  public func close() { if pendingEnd == nil { pendingEnd = .closedLocally } }

  public func open(at now: MonotonicTime) {
    precondition(!isOpen && end == nil, "a transport opens once")
    isOpen = true
    machine.transportOpened(at: now)
  }

  /// Hands bytes over as one call.
  public func receive(_ bytes: [UInt8], at now: MonotonicTime) {
    guard isOpen, end == nil, pendingEnd == nil, !bytes.isEmpty else { return }
    unsafe machine.receive(bytes.span.bytes, at: now)
  }

  /// All the output that the machine has now.
  public func collect(at now: MonotonicTime) -> [UInt8] {
    guard isOpen, end == nil, pendingEnd == nil else { return [] }
    isOutputReady = false
    var before = -1
    while output.count != before {
      before = output.count
      machine.writeOutput(to: &output, at: now)
    }
    let bytes = Array(output.bytes[output.head...])
    if !bytes.isEmpty { output.take(bytes.count) }
    transcript += bytes
    return bytes
  }

  /// Delivers an end that is due: asked for by `close`, or by a machine that has finished. True when it did.
  @discardableResult
  public func settle(at now: MonotonicTime) -> Bool {
    guard end == nil else { return false }
    if pendingEnd == nil, isOpen, machine.isFinished { pendingEnd = .closedLocally }
    guard let pendingEnd else { return false }
    finish(pendingEnd, at: now)
    return true
  }

  /// The transport ends from outside: the peer closed, a fault, a refused connection (then without `open`).
  public func finish(_ reason: TransportEnd, at now: MonotonicTime) {
    guard end == nil else { return }
    end = reason
    isOpen = false
    machine.transportClosed(reason, at: now)
  }

  /// Calls `deadlineReached` when the deadline has come. True when it did.
  @discardableResult
  public func checkDeadline(at now: MonotonicTime) -> Bool {
    guard isOpen, end == nil, pendingEnd == nil, machine.deadline <= now else { return false }
    machine.deadlineReached(at: now)
    return true
  }
}
