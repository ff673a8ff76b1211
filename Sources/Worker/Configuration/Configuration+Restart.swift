extension Configuration {
  /// The settings that differ from those of a running worker, and that it can't take over.
  func changesForRestart(from running: Configuration) -> [String] {
    Self.fixedSettings.filter { $0.differs(self, running) }.map(\.name)
  }

  /// What a worker is built around.
  private static let fixedSettings: [(name: String, differs: @Sendable (Configuration, Configuration) -> Bool)] = [
    ("breaker", { $0.breaker != $1.breaker }), ("drainTimeout", { $0.drainTimeout != $1.drainTimeout }),
    ("fanOut", { $0.fanOut != $1.fanOut }), ("limits", { $0.limits != $1.limits }), ("log", { $0.log != $1.log }),
    ("metrics", { $0.metrics != $1.metrics }), ("prefetch", { $0.prefetch != $1.prefetch }),
    ("prefix", { $0.prefix != $1.prefix }), ("registry", { $0.registry != $1.registry }),
    ("receipts", { $0.receipts != $1.receipts }), ("registryLimits", { $0.registryLimits != $1.registryLimits }),
    ("registryStaleAfter", { $0.registryStaleAfter != $1.registryStaleAfter }), ("results", { $0.results != $1.results }),
    ("retry", { $0.retry != $1.retry }), ("shards", { $0.shards != $1.shards }),
  ]
}
