import Simulation

/// The choices of one simulation.
struct Run {
  var seed: UInt64
  /// Nil for the seed's choice.
  var kinds: Set<FaultKind>?
  /// Nil for all.
  var events: Set<Int>?
  var isPlain = false

  /// Each kind of fault by itself, then runs that failed once.
  static var fixed: [Run] {
    FaultKind.allCases.enumerated().map { Run(seed: 3_000 + UInt64($0), kinds: [$1]) }
      // These failed when each lane had one queue, and each broadcast one chain.
      + failedOnce.map { Run(seed: $0.seed, kinds: $0.kinds, events: $0.events, isPlain: true) }
  }

  private static let pushServices: Set<FaultKind> = [
    .appRefuses, .appSilent, .appUnavailable, .storm, .streamsReset, .tokensGone,
  ]
  private static let failedOnce = [
    Run(seed: 8, kinds: pushServices),
    Run(seed: 48, kinds: pushServices),
    Run(seed: 18_172, kinds: [.appTokenHangs, .brokerCrash, .registryFailsAfter, .workerFrozen], events: [0, 3, 6]),
    Run(seed: 19_313, kinds: [.appSilent, .brokerFrozen, .credentialRefused], events: [0, 1, 2]),
    Run(seed: 20_927, kinds: [.appSlow, .appUnavailable], events: [0, 1]),
    Run(seed: 22_246, kinds: [.brokerFrozen, .credentialRefused, .goAway, .pathCut, .streamsReset, .workerDrained]),
    Run(seed: 31_768, kinds: [.confirmsNacked], events: [0]),
    Run(seed: 40_227, kinds: [.credentialRefused], events: [0]),
    Run(seed: 200_667, kinds: [.outcomesUnconfirmed, .workerReloaded], events: [0, 1]),
    Run(seed: 901_050, kinds: [.pathCut, .streamsReset, .workerDrained, .workerSkewed], events: [0, 1, 2, 3, 5, 7]),
    Run(seed: 960_214, kinds: [.brokerAlarm, .streamsStalled, .consumersClosed]),
    Run(seed: 1_005_114, kinds: [.brokerCrash, .connectionsClosed], events: [0, 2]),
    Run(seed: 1_006_589, kinds: [.outcomesUnconfirmed], events: [0, 1]),
    Run(seed: 1_015_452, kinds: [.brokerCrash, .pathStalled, .workerDrained, .workerFrozen], events: [0, 2, 3, 4]),
    Run(seed: 1_016_259, kinds: [.appSilent]),
    Run(seed: 1_030_647, kinds: [.appSlow, .appTokenHangs], events: [1, 5]),
  ]

  func outcome(keepsTrace: Bool = false) throws -> FleetSimulation.Outcome {
    try FleetSimulation(seed: seed, kinds: kinds, events: events, isPlain: isPlain, keepsTrace: keepsTrace).run()
  }
}
