import PushCore

/// `dry_run` and `validate_only`: everything is checked and translated, and reaches no device; the result says what translation changed.
/// FCM itself is asked for the targets that the request names by what FCM gave out: it validates without sending. APNs can't.
extension Pipeline {
  func concludeDryRun(_ entry: InFlight) {
    var reports = DryRunReport()
    for index in entry.recipients.indices {
      let recipient = entry.recipients[index]
      switch recipient.state {
      case .gone:
        entry.recipients[index].state = .failed(.notRegistered)
        continue
      // What an earlier round has settled is only reported on.
      case .waiting, .postponed, .delivered: break
      case .unresolved, .refused, .sent, .failed, .sameAs: continue
      }
      switch rehearse(entry, recipient.platform, pool: recipient.pool, isBroadcast: recipient.kind == .channel, &reports) {
      case .success where recipient.platform == .fcm && recipient.row < 0: break
      case .success: entry.recipients[index].state = .delivered(name: Self.dryRunName)
      case .failure(let rejection): entry.recipients[index].state = .refused(rejection)
      }
    }
    entry.attempt.dryRun = reports
    // What FCM is asked goes out, what is refused ends as always, and then the request.
    enqueue(entry)
  }

  /// For an audience: every platform that the sender has a credential for; the registry isn't asked.
  func concludeDryRunOfAudience(_ entry: InFlight) {
    var reports = DryRunReport()
    var platforms: [(Platform, Int)] = []
    if let apns = entry.route.routes.apns { platforms.append((.apns, apns.pool)) }
    if let fcm = entry.route.routes.fcm { platforms.append((.fcm, fcm)) }
    for (platform, pool) in platforms {
      if case .failure(let rejection) = rehearse(entry, platform, pool: pool, &reports), rejection.code != .nothingForPlatform {
        return reject(entry, rejection)
      }
    }
    conclude(entry) { publishResult(of: entry, targets: [.accepted(id: Self.dryRunName)], report: reports) }
  }

  /// Translates as for sending; each platform is reported on once.
  private func rehearse(
    _ entry: InFlight, _ platform: Platform, pool: Int, isBroadcast: Bool = false, _ reports: inout DryRunReport
  ) -> Result<Void, Rejection> {
    var report: LossReport? = reports[platform] == nil ? LossReport() : nil
    let verdict = translate(entry, platform, pool: pool, isBroadcast: isBroadcast, &report) ?? .success(())
    if case .success = verdict, let report { reports[platform] = report }
    return verdict
  }

  /// Translates without keeping what comes of it; nil where there is nothing to translate.
  func translate(
    _ entry: InFlight, _ platform: Platform, pool: Int, isBroadcast: Bool = false, _ report: inout LossReport?
  ) -> Result<Void, Rejection>? {
    guard entry.parsed != nil else { return nil }
    return switch platform {
    case .apns:
      translator.apns(entry, pool: pool, isBroadcast: isBroadcast, isRehearsed: true, at: time.wallClock, &report).map { _ in }
    case .fcm: translator.fcm(entry, isRehearsed: true, at: time.wallClock, &report).map { _ in }
    }
  }

  /// In the place of a provider's id where nothing was sent.
  private static let dryRunName = Array("dry_run".utf8)
}
