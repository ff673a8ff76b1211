import Testing
import Wire

@testable import Providers

@Suite("A circuit")
struct CircuitTests {
  let start = MonotonicTime(nanoseconds: 1_000_000_000)

  private func fail(_ circuit: inout Circuit, opens: Bool) {
    let pause = circuit.failed(at: start)
    #expect((pause != nil) == opens)
  }

  @Test("opens after twenty failures in a row, and not before")
  func trips() {
    var circuit = Circuit()
    for _ in 1..<Circuit.tripAfter { fail(&circuit, opens: false) }
    #expect(circuit.allowance == .max)
    fail(&circuit, opens: true)
    #expect(circuit.allowance == 0)
  }

  @Test("one failure in ten never opens it")
  func tolerates() {
    var circuit = Circuit()
    for index in 0..<10_000 {
      if index.isMultiple(of: 10) { fail(&circuit, opens: false) } else { circuit.succeeded() }
    }
    #expect(circuit.state == .closed)
  }

  @Test("after its pause lets one probe through; a failed probe doubles the pause up to one and a half seconds")
  func probes() {
    var circuit = Circuit()
    var now = start
    for _ in 1..<Circuit.tripAfter { _ = circuit.failed(at: now) }
    var pauses: [Double] = []
    for _ in 0..<10 {
      pauses.append(circuit.failed(at: now) ?? 0)
      now = circuit.deadline
      circuit.advance(to: now)
      #expect(circuit.allowance == 1)
    }
    #expect(pauses[0] <= 0.5)
    #expect(pauses.suffix(3).allSatisfy { (0.75...1.5).contains($0) })
  }

  @Test("failures that straggle in while it is open change nothing")
  func stragglers() {
    var circuit = Circuit()
    for _ in 0..<Circuit.tripAfter { _ = circuit.failed(at: start) }
    let until = circuit.deadline
    for _ in 0..<500 { fail(&circuit, opens: false) }
    #expect(circuit.deadline == until)
  }

  @Test("after a good probe the allowance grows by each success until nothing limits it")
  func ramps() {
    var circuit = Circuit()
    circuit.probe()
    circuit.succeeded()
    #expect(circuit.allowance == 2)
    for _ in 0..<Circuit.fullAllowance { circuit.succeeded() }
    #expect(circuit.state == .closed)
  }

  @Test("a pause asked for by the provider only lengthens")
  func pauses() {
    var circuit = Circuit()
    let isLonger = [30.0, 10].map { circuit.pause(seconds: $0, at: start) }
    #expect(isLonger == [true, false])
    circuit.advance(to: start.advanced(bySeconds: 29))
    #expect(circuit.allowance == 0)
    circuit.advance(to: start.advanced(bySeconds: 30))
    #expect(circuit.allowance == 1)
  }
}

extension Circuit {
  fileprivate mutating func failed(at now: MonotonicTime) -> Double? {
    var random = RandomSource(seed: 1)
    return failed(at: now, using: &random)
  }
}
