import PushCore

/// Requests that are only checked: see ``DryRun``.
extension Pipeline {
  func concludeDryRunOfAudience(_ entry: InFlight) {
    switch DryRun(translator: translations.translator).rehearseAudience(entry, at: time.wallClock) {
    case .failure(let rejection): reject(entry, rejection)
    case .success(let report):
      conclude(entry) { publisher.publishResult(of: entry, targets: [.accepted(id: DryRun.name)], report: report) }
    }
  }
}
