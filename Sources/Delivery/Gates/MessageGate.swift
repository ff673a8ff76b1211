/// Stores the message id in the registry: UPMC devices acknowledge a push by its message's key.
enum MessageGate: Gate {
  static func concerns(_ entry: InFlight, in pipeline: Pipeline) -> Bool {
    entry.route.routes.isUPMC && pipeline.registry != nil && entry.request?.isDryRun != true
  }

  static func pass(_ entry: InFlight, in pipeline: Pipeline) -> GateAnswer {
    pipeline.wait(at: entry, for: .keepMessage(entry.identity.messageID)) { entry, _ in
      entry.registry.isKept = true
    } orElse: { entry in
      // Tokens in the request itself need no registry.
      !entry.recipients.contains { $0.row >= 0 }
    }
  }
}
