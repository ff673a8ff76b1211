import Testing

@testable import Simulation

/// Each trouble alone, and what failed once, in a debug build; `deploy/test` runs the seeds 1 to 200 with the release build.
@Suite("A simulated fleet")
struct SimulationTests {
  @Test("survives each kind of trouble by itself", arguments: FaultKind.allCases)
  func kinds(_ kind: FaultKind) throws {
    let seed = UInt64(3_000 + (FaultKind.allCases.firstIndex(of: kind) ?? 0))
    let outcome = try FleetSimulation(seed: seed, kinds: [kind]).run()
    #expect(outcome.failures == [])
    #expect(outcome.faultKinds == [kind])
  }

  @Test(
    "does better where it failed once",
    arguments: [
      (901_050, [.pathCut, .streamsReset, .workerDrained, .workerSkewed], [0, 1, 2, 3, 5, 7]),
      (960_214, [.brokerAlarm, .streamsStalled, .consumersClosed], nil),
      (19_313, [.appSilent, .brokerFrozen, .credentialRefused], [0, 1, 2]),
      (20_927, [.appSlow, .appUnavailable], [0, 1]),
      (40_227, [.credentialRefused], [0]),
      (22_246, [.brokerFrozen, .credentialRefused, .goAway, .pathCut, .streamsReset, .workerDrained], nil),
      (31_768, [.confirmsNacked], [0]),
      (200_667, [.outcomesUnconfirmed, .workerReloaded], [0, 1]),
      (1_016_259, [.appSilent], nil), (1_030_647, [.appSlow, .appTokenHangs], [1, 5]),
      (1_006_589, [.outcomesUnconfirmed], [0, 1]),
      (1_005_114, [.brokerCrash, .connectionsClosed], [0, 2]),
      (1_015_452, [.brokerCrash, .pathStalled, .workerDrained, .workerFrozen], [0, 2, 3, 4]),
      (18_172, [.appTokenHangs, .brokerCrash, .registryFailsAfter, .workerFrozen], [0, 3, 6]),
    ] as [(UInt64, Set<FaultKind>, Set<Int>?)])
  func past(_ seed: UInt64, _ kinds: Set<FaultKind>, _ events: Set<Int>?) throws {
    let outcome = try FleetSimulation(seed: seed, kinds: kinds, events: events).run()
    #expect(outcome.failures == [])
  }

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

  @Test("keeps the trouble of a push service from others", arguments: [8, 48] as [UInt64])
  func pushServices(_ seed: UInt64) throws {
    let kinds: Set<FaultKind> = [.appRefuses, .appSilent, .appUnavailable, .storm, .streamsReset, .tokensGone]
    #expect(try FleetSimulation(seed: seed, kinds: kinds).run().failures == [])
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
