extension Configuration {
  /// The settings that differ from a running worker's and need a restart.
  package func changesForRestart(from running: Configuration) -> [String] {
    Self.fixedSettings.filter { $0.differs(self, running) }.map(\.name)
  }

  /// The settings that differ from a running gateway's and need a restart. A gateway reloads the
  /// broker's addresses, applications and certificates.
  public func changesForGatewayRestart(from running: Configuration) -> [String] {
    let shared: Set = [
      "drainTimeout", "laneQueues", "limits", "log", "logFormat", "metrics", "prefix", "registry", "registryLimits",
    ]
    return changesForRestart(from: running).filter(shared.contains)
      + Self.doorSettings.filter { $0.differs(self, running) }.map(\.name)
  }

  /// The settings that differ from those of a running process of webhooks and need a restart. It reloads webhooks.
  package func changesForWebhookRestart(from running: Configuration) -> [String] {
    changesForGatewayRestart(from: running).filter { !$0.hasPrefix("gateway.") && $0 != "limits" }
  }

  private static let doorSettings: [FixedSetting] = [
    .init("gateway.metrics", \.gateway?.metrics),
    .init("gateway.http.listen", \.gateway?.http?.listen), .init("gateway.http.wait", \.gateway?.http?.wait),
    .init("gateway.http.retransmission", \.gateway?.http?.retransmission),
    .init("gateway.http.shared", \.gateway?.http?.isShared), .init("gateway.http.deviceUsers", \.gateway?.http?.deviceUsers),
    .init("gateway.http.registerUnknown", \.gateway?.http?.registersUnknown),
    .init("gateway.http.login", \.gateway?.http?.login),
    .init("gateway.http.certificate") { $0.gateway?.http?.identity == nil },
    .init("gateway.apns.listen", \.gateway?.apns?.listen), .init("gateway.apns.feedback", \.gateway?.apns?.feedback),
    .init("gateway.apns.badTokens", \.gateway?.apns?.listsBadTokens), .init("gateway.apns.app", \.gateway?.apns?.app),
  ]

  /// The settings that a worker can't reload.
  private static let fixedSettings: [FixedSetting] = [
    .init("breaker", \.breaker), .init("deadLetters", \.deadLetters), .init("drainTimeout", \.drainTimeout),
    .init("fanOut", \.fanOut), .init("laneQueues", \.laneQueues), .init("limits", \.limits), .init("log", \.log),
    .init("logFormat", \.logFormat),
    .init("metrics", \.metrics), .init("prefetch", \.prefetch), .init("prefix", \.prefix), .init("registry", \.registry),
    .init("receipts", \.receipts), .init("registryLimits", \.registryLimits), .init("registryStaleAfter", \.registryStaleAfter),
    .init("results", \.results), .init("retry", \.retry), .init("richPages", \.richPages), .init("shards", \.shards),
    .init("trace", \.trace), .init("traces", \.traces),
  ]
}

/// A setting that a running process can't reload.
private struct FixedSetting: Sendable {
  let name: String
  let differs: @Sendable (Configuration, Configuration) -> Bool

  init<Value: Equatable & SendableMetatype>(_ name: String, _ value: @escaping @Sendable (Configuration) -> Value) {
    self.name = name
    differs = { value($0) != value($1) }
  }
}
