import Testing

@testable import Simulation

/// A few runs in a debug build. `deploy/test` runs many more with the release build.
@Suite("A simulated fleet")
struct SimulationTests {
  @Test("does the same again for the same seed, and something else for another one")
  func repeats() throws {
    let first = try FleetSimulation(seed: 10).run()
    let other = try FleetSimulation(seed: 11).run()
    #expect(try FleetSimulation(seed: 10).run().traceHash == first.traceHash && other.traceHash != first.traceHash)
    for outcome in [first, other] {
      #expect(outcome.failures == [])
      #expect(outcome.requests > 0 && outcome.pushes >= outcome.requests / 2)
    }
  }

  @Test("does the same again with web push, whose pushes are encrypted with random keys")
  func encrypted() throws {
    let first = try FleetSimulation(seed: 5, kinds: [.workerReloaded]).run()
    #expect(try FleetSimulation(seed: 5, kinds: [.workerReloaded]).run().traceHash == first.traceHash)
    #expect(first.failures == [])
  }

  @Test("without trouble sends nothing twice")
  func calm() throws {
    let outcome = try FleetSimulation(seed: 4, kinds: []).run()
    #expect(outcome.failures == [] && outcome.duplicates == 0)
  }
}
