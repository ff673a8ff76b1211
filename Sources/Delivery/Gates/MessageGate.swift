/// Devices of UPMC acknowledge a push by its message's key: the registry keeps the message id first.
enum MessageGate: Gate {
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool {
    entry.route.routes.isUPMC && pipeline.registry != nil && entry.parsed?.isDryRun != true
  }

  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer {
    pipeline.wait(at: entry, for: .keepMessage(entry.identity.messageID)) { entry, _ in
      entry.registry.isKept = true
    } orElse: { entry in
      // Tokens that came with the request are sent to all the same.
      !entry.recipients.contains { $0.row >= 0 }
    }
  }
}
