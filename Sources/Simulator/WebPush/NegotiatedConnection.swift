import Wire

/// A connection with the protocol that the client has selected in the TLS handshake. A client that selects none gets HTTP/1.1.
final class NegotiatedConnection: Machine {
  weak var transport: (any Transport)?
  /// Nil until the handshake is over.
  private var machine: (any Machine)?
  private let make: (_ isHTTP1: Bool) -> any Machine

  init(_ make: @escaping (_ isHTTP1: Bool) -> any Machine) { self.make = make }

  func transportOpened(at now: MonotonicTime) {
    let selected = transport?.applicationProtocol
    let machine = make(selected == "" || selected == "http/1.1")
    machine.transport = transport
    self.machine = machine
    machine.transportOpened(at: now)
  }

  func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {
    (machine ?? make(false)).transportClosed(reason, at: now)
  }

  func receive(_ bytes: RawSpan, at now: MonotonicTime) { machine?.receive(bytes, at: now) }
  func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) { machine?.writeOutput(to: &buffer, at: now) }
  var isFinished: Bool { machine?.isFinished ?? false }
  var deadline: MonotonicTime { machine?.deadline ?? .distantFuture }
  func deadlineReached(at now: MonotonicTime) { machine?.deadlineReached(at: now) }
}
