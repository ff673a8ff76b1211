import PushCore

/// `dry_run` and `validate_only`: everything is checked and translated, and reaches no device; the result says what translation changed.
/// FCM itself is asked for the targets that the request names by what FCM gave out: it validates without sending. APNs can't.
struct DryRun {
  let translator: Translator

  /// In the place of a provider's id where nothing was sent.
  static let name = Array("dry_run".utf8)

  /// Decides every recipient but those that FCM is asked about.
  func rehearse(_ entry: InFlight, at now: Int64) {
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
      switch rehearse(entry, PushWay(recipient), at: now, &reports) {
      case .success where recipient.platform == .fcm && recipient.row < 0: break
      case .success: entry.recipients[index].state = .delivered(name: Self.name)
      case .failure(let rejection): entry.recipients[index].state = .refused(rejection)
      }
    }
    entry.attempt.dryRun = reports
  }

  /// For an audience: every platform that the sender has a credential for; the registry isn't asked.
  func rehearseAudience(_ entry: InFlight, at now: Int64) -> Result<DryRunReport, Rejection> {
    var reports = DryRunReport()
    let routes = entry.route.routes
    let ways = [
      routes.apns.map { PushWay(platform: .apns, pool: $0.pool, isChannel: false) },
      routes.fcm.map { PushWay(platform: .fcm, pool: $0, isChannel: false) },
    ]
    for way in ways.compactMap(\.self) {
      if case .failure(let rejection) = rehearse(entry, way, at: now, &reports), rejection.code != .nothingForPlatform {
        return .failure(rejection)
      }
    }
    return .success(reports)
  }

  /// Translates as for sending; each platform is reported on once.
  private func rehearse(
    _ entry: InFlight, _ way: PushWay, at now: Int64, _ reports: inout DryRunReport
  ) -> Result<Void, Rejection> {
    var report: LossReport? = reports[way.platform] == nil ? LossReport() : nil
    let verdict = translator.rehearse(entry, way, at: now, &report) ?? .success(())
    if case .success = verdict, let report { reports[way.platform] = report }
    return verdict
  }
}

extension Translator {
  /// Translates without keeping what comes of it; nil where there is nothing to translate.
  func rehearse(_ entry: InFlight, _ way: PushWay, at now: Int64, _ report: inout LossReport?) -> Result<Void, Rejection>? {
    guard entry.parsed != nil else { return nil }
    return switch way.platform {
    case .apns: apns(entry, pool: way.pool, isBroadcast: way.isChannel, isRehearsed: true, at: now, &report).map { _ in }
    case .fcm: fcm(entry, isRehearsed: true, at: now, &report).map { _ in }
    }
  }
}
