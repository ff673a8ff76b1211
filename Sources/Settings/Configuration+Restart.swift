extension Configuration {
  /// The settings that differ from a running worker's and need a restart.
  package func changesForRestart(from running: Configuration) -> [String] {
    Self.fixedSettings.filter { $0.differs(self, running) }.map(\.name)
  }

  /// The settings that differ from a running gateway's and need a restart. A gateway reloads applications and certificates.
  public func changesForGatewayRestart(from running: Configuration) -> [String] {
    let shared: Set = ["drainTimeout", "limits", "log", "logFormat", "metrics", "prefix", "registry", "registryLimits"]
    return changesForRestart(from: running).filter(shared.contains)
      + Self.doorSettings.filter { $0.differs(self, running) }.map(\.name)
  }

  /// The settings that differ from those of a running process of webhooks and need a restart. It reloads webhooks.
  package func changesForWebhookRestart(from running: Configuration) -> [String] {
    changesForGatewayRestart(from: running).filter { !$0.hasPrefix("gateway.") && $0 != "limits" }
  }

  private static let doorSettings: [(name: String, differs: @Sendable (Configuration, Configuration) -> Bool)] = [
    ("broker", { $0.brokers != $1.brokers }),
    ("brokerCertificate", { $0.brokerIdentity != $1.brokerIdentity }),
    ("gateway.metrics", { $0.gateway?.metrics != $1.gateway?.metrics }),
    ("gateway.http.listen", { $0.gateway?.http?.listen != $1.gateway?.http?.listen }),
    ("gateway.http.wait", { $0.gateway?.http?.wait != $1.gateway?.http?.wait }),
    ("gateway.http.retransmission", { $0.gateway?.http?.retransmission != $1.gateway?.http?.retransmission }),
    ("gateway.http.shared", { $0.gateway?.http?.isShared != $1.gateway?.http?.isShared }),
    ("gateway.http.deviceUsers", { $0.gateway?.http?.deviceUsers != $1.gateway?.http?.deviceUsers }),
    ("gateway.http.registerUnknown", { $0.gateway?.http?.registersUnknown != $1.gateway?.http?.registersUnknown }),
    ("gateway.http.login", { $0.gateway?.http?.login != $1.gateway?.http?.login }),
    ("gateway.http.certificate", { ($0.gateway?.http?.identity == nil) != ($1.gateway?.http?.identity == nil) }),
    ("gateway.apns.listen", { $0.gateway?.apns?.listen != $1.gateway?.apns?.listen }),
    ("gateway.apns.feedback", { $0.gateway?.apns?.feedback != $1.gateway?.apns?.feedback }),
    ("gateway.apns.badTokens", { $0.gateway?.apns?.listsBadTokens != $1.gateway?.apns?.listsBadTokens }),
    ("gateway.apns.app", { $0.gateway?.apns?.app != $1.gateway?.apns?.app }),
  ]

  /// The settings that a worker can't reload.
  private static let fixedSettings: [(name: String, differs: @Sendable (Configuration, Configuration) -> Bool)] = [
    ("breaker", { $0.breaker != $1.breaker }), ("deadLetters", { $0.deadLetters != $1.deadLetters }),
    ("drainTimeout", { $0.drainTimeout != $1.drainTimeout }),
    ("fanOut", { $0.fanOut != $1.fanOut }), ("limits", { $0.limits != $1.limits }), ("log", { $0.log != $1.log }),
    ("logFormat", { $0.logFormat != $1.logFormat }),
    ("metrics", { $0.metrics != $1.metrics }), ("prefetch", { $0.prefetch != $1.prefetch }),
    ("prefix", { $0.prefix != $1.prefix }), ("registry", { $0.registry != $1.registry }),
    ("receipts", { $0.receipts != $1.receipts }), ("registryLimits", { $0.registryLimits != $1.registryLimits }),
    ("registryStaleAfter", { $0.registryStaleAfter != $1.registryStaleAfter }), ("results", { $0.results != $1.results }),
    ("retry", { $0.retry != $1.retry }), ("richPages", { $0.richPages != $1.richPages }),
    ("shards", { $0.shards != $1.shards }),
    ("trace", { $0.trace != $1.trace }), ("traces", { $0.traces != $1.traces }),
  ]
}
