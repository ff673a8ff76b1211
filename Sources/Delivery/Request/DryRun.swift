import PushCore

/// `dry_run` and `validate_only`: checks and translates everything, sends to no device, and reports what translation changed.
/// FCM validates targets that are its own tokens or topics, without sending. APNs can't.
struct DryRun {
  let translator: Translator
  let controls: Controls

  /// The provider's id in a result if nothing was sent.
  static let name = Array("dry_run".utf8)

  /// Decides every recipient that FCM doesn't validate.
  func rehearse(_ entry: InFlight, at now: Int64) {
    var reports = DryRunReport()
    for index in entry.recipients.indices {
      let recipient = entry.recipients[index]
      switch recipient.state {
      case .gone:
        entry.recipients[index].state = .failed(.notRegistered)
        continue
      // Outcomes of earlier attempts are only reported.
      case .waiting, .postponed, .delivered: break
      case .unresolved, .refused, .sent, .failed, .sameAs: continue
      }
      switch rehearse(entry, entry.way(index), at: now, &reports) {
      case .success where recipient.platform == .fcm && recipient.row < 0 && !isPaused(entry, recipient): break
      case .success: entry.recipients[index].state = .delivered(name: Self.name)
      case .failure(let rejection): entry.recipients[index].state = .refused(rejection)
      }
    }
    entry.attempt.dryRun = reports
  }

  /// While FCM can't be asked because of an operator's order, the request doesn't wait for its answer.
  private func isPaused(_ entry: InFlight, _ recipient: Recipient) -> Bool {
    if recipient.state.isDelivered { return false }
    return controls.isPaused(entry.identity.app) || controls.isPaused(recipient.pool, of: entry.identity.app)
  }

  /// Translates for each platform with a credential. The registry isn't asked.
  func rehearseAudience(_ entry: InFlight, at now: Int64) -> Result<DryRunReport, Rejection> {
    var reports = DryRunReport()
    let routes = entry.route.routes
    let ways = [
      routes.apns.map { PushWay(platform: .apns, pool: $0.pool, isChannel: false) },
      routes.fcm.map { PushWay(platform: .fcm, pool: $0, isChannel: false) },
      routes.webpush.map { _ in PushWay(platform: .webpush, pool: -1, isChannel: false) },
    ]
    for way in ways.compactMap(\.self) {
      if case .failure(let rejection) = rehearse(entry, way, at: now, &reports), rejection.code != .nothingForPlatform {
        return .failure(rejection)
      }
    }
    return .success(reports)
  }

  /// Translates as for sending. Each platform is reported once.
  private func rehearse(
    _ entry: InFlight, _ way: PushWay, at now: Int64, _ reports: inout DryRunReport
  ) -> Result<Bool, Rejection> {
    var report: LossReport? = reports[way.platform] == nil ? LossReport() : nil
    let verdict = translator.rehearse(entry, way, at: now, &report) ?? .success(false)
    if case .success = verdict, let report { reports[way.platform] = report }
    return verdict
  }
}

extension Translator {
  /// Translates and discards the result; nil if there is nothing to translate.
  /// - Returns: whether the push would have a page's address.
  func rehearse(_ entry: InFlight, _ way: PushWay, at now: Int64, _ report: inout LossReport?) -> Result<Bool, Rejection>? {
    guard entry.request != nil else { return nil }
    return Result { () throws(Rejection) in
      switch way.platform {
      case .apns:
        try apns(entry, pool: way.pool, isBroadcast: way.isChannel, isRehearsed: true, at: now, &report).usesPage
      case .fcm: try fcm(entry, isRehearsed: true, at: now, &report).usesPage
      case .webpush: try webpush(entry, isRehearsed: true, at: now, &report).usesPage
      }
    }
  }
}
