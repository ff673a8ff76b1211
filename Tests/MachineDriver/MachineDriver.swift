import Wire

/// Drives one machine in memory: the test plays the network and the clock. Keeps the guarantees of a real link: calls are never
/// re-entrant, `transportClosed` comes exactly once, and a machine that pauses reading gets no bytes.
public final class MachineDriver: Transport {
  public let machine: any Machine
  public var isReadingPaused = false
  /// Set by the test before `open`, as if by a TLS handshake.
  public var applicationProtocol: String?
  public private(set) var transcript: [UInt8] = []
  public private(set) var end: TransportEnd?
  public private(set) var isOpen = false
  /// True from `outputReady` until the output is collected.
  public private(set) var isOutputReady = false
  private var pendingEnd: TransportEnd?
  /// True if the machine asked for something outside of the driver's calls.
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
    guard pendingEnd == nil else { return }
    isOpen = true
    machine.transportOpened(at: now)
  }

  public func receive(_ bytes: [UInt8], at now: MonotonicTime) {
    guard isOpen, end == nil, pendingEnd == nil, !bytes.isEmpty else { return }
    unsafe machine.receive(bytes.span.bytes, at: now)
  }

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

  /// Ends the transport if `close` was called or the machine is finished. Returns true if it did.
  @discardableResult
  public func settle(at now: MonotonicTime) -> Bool {
    guard end == nil else { return false }
    if pendingEnd == nil, isOpen, machine.isFinished { pendingEnd = .closedLocally }
    guard let pendingEnd else { return false }
    finish(pendingEnd, at: now)
    return true
  }

  /// Ends the transport from outside: closed by the peer, an error, or a refused connection (without `open`).
  public func finish(_ reason: TransportEnd, at now: MonotonicTime) {
    guard end == nil else { return }
    end = reason
    isOpen = false
    machine.transportClosed(reason, at: now)
  }

  @discardableResult
  public func checkDeadline(at now: MonotonicTime) -> Bool {
    guard isOpen, end == nil, pendingEnd == nil, machine.deadline <= now else { return false }
    machine.deadlineReached(at: now)
    return true
  }
}
