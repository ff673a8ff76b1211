import DeviceRegistry
import Providers
import PushCore

/// What follows from a whole request: dead letters, the ladder, its result.
extension Pipeline {
  /// The request with one device as its target.
  func deadLetterBody(_ entry: InFlight, _ index: Int) -> [UInt8] {
    guard let request = entry.request else { return entry.delivery.body }
    let recipient = entry.recipients[index]
    let target =
      entry.registration(of: index)
      ?? (recipient.token.isEmpty
        ? request.targetText(index)
        : recipient.kind == .channel
          ? DeadLetter.target(channel: Array(recipient.token))
          : DeadLetter.target(recipient.platform, token: Array(recipient.token)))
    return DeadLetter.body(request.document, naming: target)
  }

  /// Never admitted: a dead letter as it came, and the same word to whoever waits.
  func reject(_ entry: InFlight, _ rejection: Rejection) {
    observers.note(.refused(rejection), entry)
    conclude(entry) { publishRejection(rejection, of: entry) }
  }

  private func publishRejection(_ rejection: Rejection, of entry: InFlight) {
    let letter = DeadLetter(
      error: rejection.code, reason: rejection.reason, attempts: entry.attempt.earlier, failedAt: time.wallClock)
    let isWholePage = entry.isPage || entry.source.queue.isFanOut
    publishDeadLetter(letter, isWholePage: isWholePage, of: entry)
    if let page = entry.broadcast.page, page.campaign.isEmpty {
      let pending = page.pending ?? []
      var failures = page.failureCounts
      failures.add(rejection.code, on: nil, devices: Int64(pending.count))
      publishFanOutResult(
        of: entry, success: page.sent, failure: page.failed + Int64(pending.count), failed: page.failures + pending,
        failures: failures)
    } else if isWholePage {
      pageRejected(entry, rejection)
    } else {
      publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
    }
  }

  /// Its chain may end here: an operator is to see that, and to replay the letter.
  private func pageRejected(_ entry: InFlight, _ rejection: Rejection) {
    let campaign = entry.broadcast.page?.campaign
    log.error(
      "a page of a campaign is a dead letter: fix what it says, resume the campaign, replay the letter",
      ["campaign": campaign.map { String(decoding: $0, as: UTF8.self) } ?? "unknown", "reason": rejection.reason])
    if let campaign { broadcasts.hold(campaign: campaign) }
  }

  /// Too late: not sent to whom it has not reached.
  func expire(_ entry: InFlight) {
    observers.note(.late, entry)
    conclude(entry) {
      // Nobody has got it or a dead letter of his own: one for all names them as it came.
      let isWhole = !entry.isPage && entry.attempt.earlier == 0 && !entry.hasSettledDevice
      if isWhole { publishOptionalLetter(.expired, of: entry) }
      for index in entry.recipients.indices {
        switch entry.recipients[index].state {
        case .waiting, .sent, .postponed, .refused, .unresolved, .gone: noteExpired(entry, index, hasLetter: isWhole)
        case .delivered, .failed, .sameAs: continue
        }
      }
      if let page = entry.broadcast.page, let left = page.pending {
        broadcasts.concludeExpired(entry, page, left)
      } else if entry.recipients.isEmpty {
        observers.note(.expired(1), entry)
        publishResult(of: entry, targets: [.failed(.expired)])
      } else {
        publishResult(of: entry, targets: resultTargets(of: entry))
      }
    }
  }

  func expire(_ entry: InFlight, _ index: Int) {
    noteExpired(entry, index)
    perform(entry.ledger.closed(), entry)
  }

  /// Too late for one recipient: after attempts it is a dead letter with the last reason, before any just a result. What was parked
  /// or put off has had no attempt.
  func noteExpired(_ entry: InFlight, _ index: Int, hasLetter: Bool = false) {
    observers.note(.expired, entry, index)
    if entry.attempt.earlier > 0, let last = entry.attempt.lastFailure {
      let letter = DeadLetter(
        error: last.error, reason: last.reason, status: last.status, attempts: entry.attempt.earlier, failedAt: time.wallClock)
      publishDeadLetter(letter, naming: index, of: entry)
    } else if !hasLetter {
      publishOptionalLetter(.expired, naming: index, of: entry)
    }
    entry.recipients[index].state = .failed(.expired)
  }

  /// - Parameters:
  ///   - recipient: which of the request's devices, where only that one has failed.
  ///   - registration: of the one device that it is to name, where that is no recipient.
  ///   - keepsNotes: what earlier rounds have noted is the fleet's own, and stays.
  func publishDeadLetter(
    _ letter: DeadLetter, naming recipient: Int? = nil, registration: [UInt8]? = nil, isWholePage: Bool = false,
    keepsNotes: Bool = false, of entry: InFlight
  ) {
    observers.note(.deadLetter(letter, recipient), entry)
    var publication = publications.deadLetter(
      letter, naming: recipient, isWholePage: isWholePage, keepsNotes: keepsNotes, for: entry)
    if let registration, let request = entry.request {
      publication.body = DeadLetter.body(request.document, naming: registration)
    }
    publish(publication)
  }

  /// A dead letter that the setting `deadLetters` asks for.
  /// - Parameters:
  ///   - recipient: which of the request's devices; nil for the request as it came.
  ///   - registration: of the one device that it is to name, where the request has no recipients.
  func publishOptionalLetter(
    _ code: PushError, naming recipient: Int? = nil, registration: [UInt8]? = nil, of entry: InFlight
  ) {
    guard deadLetters.contains(code), entry.parsed?.isDryRun != true else { return }
    let reason =
      code == .collapsed ? "a newer request with its collapse key has taken its place" : "its time to live has passed"
    let letter = DeadLetter(error: code, reason: reason, attempts: entry.attempt.earlier, failedAt: time.wallClock)
    publishDeadLetter(letter, naming: recipient, registration: registration, of: entry)
  }

  /// What follows once every recipient has ended or waits: the ladder, or the result.
  func publishConsequences(of entry: InFlight) {
    if let page = entry.broadcast.page { return broadcasts.concludePage(entry, page) }
    if entry.earliestRetry != nil {
      putOffWhenSafe(entry)
    } else if entry.wantsResult(results) {
      publishResult(of: entry, targets: resultTargets(of: entry), report: entry.attempt.dryRun)
    }
  }

  /// - Parameter earliest: unix milliseconds before which nothing is to be tried.
  func publishRetry(of entry: InFlight, at earliest: Int64) {
    let last = entry.attempt.lastFailure ?? (.unavailable, "waiting for the provider", nil)
    let now = time.wallClock
    entry.boundWaits(at: now)
    let delay = min(max(earliest - now, 0), entry.attempt.longestWait)
    // What is too late already waits for something else than a provider.
    let step = publications.ladder.step(
      for: delay, within: entry.identity.deadline > now ? entry.identity.deadline - now : .max)
    var (settled, lag) = (entry.attempt.settledBefore, entry.identity.clockLag)
    if !entry.isPage, entry.registry.unresolved == 0, entry.recipients.count > 1 || entry.attempt.hasAsked {
      // One device has its time noted where it comes back before that.
      let isNoted = entry.recipients.count > 1 || publications.ladder.isTooShort(step, for: delay)
      let names = entry.wantsResult(results) ? entry.namesToKeep : nil
      settled = isNoted ? SettledTargets.encode(entry.recipients, byToken: !entry.registry.members.isEmpty, names: names) : nil
      lag = 0
    }
    let record = RetryRecord(
      attempts: entry.attempt.earlier + (entry.attempt.hasAsked ? 1 : 0), round: entry.attempt.round &+ 1,
      deadline: entry.identity.deadline,
      error: last.error, reason: last.reason, status: last.status, settled: settled, arrival: entry.collapse.arrival)
    collapses.noteWaiting(entry)
    if entry.attempt.goesToHold, !entry.attempt.hasAsked, let app = entry.identity.app, dispatcher.holds.isPresent(app) {
      return publish(publications.hold(record, of: app, at: now + lag, for: entry))
    }
    observers.note(.retried, entry)
    entry.attempt.waitsUntil = now + delay
    publish(publications.retry(record, by: step, at: now + lag, for: entry))
  }

  func resultTargets(of entry: InFlight) -> [SendResult.Target] {
    let identity = DeviceIdentity(messageID: entry.identity.messageID)
    let fixedID = entry.request.flatMap(\.apnsID)
    var targets: [SendResult.Target] = []
    targets.reserveCapacity(entry.recipients.count)
    for (index, recipient) in entry.recipients.enumerated() {
      switch recipient.state {
      case .delivered(let name):
        let isOfAPNs = recipient.platform == .apns && entry.attempt.dryRun == nil
        targets.append(
          .accepted(
            id: name.isEmpty || isOfAPNs ? fixedID ?? identity.apnsID(token: recipient.token.span) : name,
            registration: recipient.isOldRegistration ? entry.registry.rows?.registration(recipient.row) : nil,
            uniqueID: isOfAPNs && !name.isEmpty ? name : nil))
      case .failed(let code): targets.append(.failed(code, reason: entry.attempt.reasons[index]))
      case .sameAs(let earlier): targets.append(targets[earlier])
      case .waiting, .unresolved, .gone, .sent, .refused, .postponed: targets.append(.failed(.unavailable))
      }
    }
    // A user, group or topic in a list has been reached when one of its devices has.
    for member in entry.registry.members {
      guard case .failed = targets[member.place] else { continue }
      for target in targets[member.others] {
        if case .accepted = target { targets[member.place] = target }
      }
    }
    if let first = entry.registry.members.first { targets.removeLast(targets.count - first.others.lowerBound) }
    return targets
  }

  func publishResult(of entry: InFlight, targets: [SendResult.Target], report: DryRunReport? = nil) {
    guard entry.wantsResult(results) else { return }
    let app = entry.identity.app.map { apps[$0].id } ?? entry.delivery.properties.appID ?? []
    let result = SendResult(messageID: entry.identity.messageID, app: app, targets: targets)
    let body = result.json(report: report)
    if results == .all || (results == .failures && result.failure > 0) {
      observers.note(.result, entry)
      publish(publications.result(body, for: entry))
    }
    if let reply = publications.reply(body, for: entry) {
      observers.note(.result, entry)
      publish(reply)
    }
  }

  /// An audience's: how many of its devices, and of a small one which have failed.
  /// - Parameter unknown: those of which nobody knows whether they were reached.
  func publishFanOutResult(
    of entry: InFlight, success: Int64, failure: Int64, unknown: Int64 = 0, failed: [PageTicket.Device] = [],
    failures: [FailureCount]
  ) {
    guard entry.wantsResult(results) else { return }
    let body = SendResult.fanOut(
      messageID: entry.identity.messageID, success: Int(success), failure: Int(failure), unknown: Int(unknown),
      failed: failed.map { DeviceRows.registration(id: $0.id, salt: $0.salt) }, failures: failures)
    if results == .all || (results == .failures && failure + unknown > 0) {
      observers.note(.result, entry)
      publish(publications.result(body, for: entry))
    }
    if let reply = publications.reply(body, for: entry) {
      observers.note(.result, entry)
      publish(reply)
    }
  }
}
