import Providers
import PushCore

/// Answered: what an answer means for one recipient, and what follows from it.
extension Pipeline: PoolHandler {
  func answered(tag: Int, meaning: ReplyMeaning, name: [UInt8]?, from pool: any Pool) {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    log.debug(
      "answer",
      [
        "message_id": entry.messageID, "recipient": tag.recipient, "status": meaning.status,
        "error": meaning.reaction.code?.rawValue ?? "none", "reason": DeadLetterLog.words(of: meaning.reason),
      ])
    mark(meaning, entry, tag.recipient)
    if let event = feedback(meaning, entry, tag.recipient) {
      counters.feedback += 1
      publish(publications.feedback(event, for: entry))
    }
    switch meaning.reaction {
    case .delivered:
      counters.delivered += 1
      settle(entry, tag.recipient, .delivered(name: name ?? []))
    case .gone(let code):
      settle(entry, tag.recipient, .failed(code))
    case .drop(let code), .suspect(let code), .credential(let code):
      fail(entry, tag.recipient, code, reason: meaning.reason, status: meaning.status, attempts: entry.attempts + 1)
    case .retry(let kind, let code):
      let delay = kind.delay(afterAttempt: entry.attempts + 1, retryAfter: meaning.retryAfter)
      postpone(entry, tag.recipient, by: delay, code, reason: meaning.reason, status: meaning.status)
    }
  }

  func notSent(tag: Int, why: NotSentReason, from pool: any Pool) {
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    entry.recipients[tag.recipient].state = .waiting
    log.debug("not sent", ["message_id": entry.messageID, "recipient": tag.recipient, "reason": "\(why)"])
    switch why {
    case _ where entry.ledger.isOrphan: finishIfSettled(entry)
    case .refused:
      // Longer with each round, which costs no attempt.
      let delay = RetryClass.connection.delay(afterAttempt: min(max(entry.round, entry.attempts), 20) + 1)
      park(entry, tag.recipient, delay, "the provider refuses its stream")
    case .unreachable, .unauthorised, .shutDown:
      // A stopping worker sends nothing more: the rest of a begun list goes to the next one.
      if isDraining, entry.hasBegun { return handOver(entry, tag.recipient) }
      pools[entry.recipients[tag.recipient].pool].giveBack(
        .init(entry: tag.entry, generation: entry.generation, recipient: tag.recipient), to: entry.queue)
    }
  }

  func unknown(tag: Int, reason: String, from pool: any Pool) {
    counters.unknownOutcomes += 1
    let tag = PushTag(rawValue: tag)
    let entry = table[tag.entry]
    entry.ledger.pushReturned()
    log.debug(
      "outcome unknown", ["message_id": entry.messageID, "recipient": tag.recipient, "reason": DeadLetterLog.words(of: reason)])
    let delay = RetryClass.connection.delay(afterAttempt: entry.attempts + 1)
    postpone(entry, tag.recipient, by: delay, .unavailable, reason: "outcome unknown: \(reason)")
  }

  /// The end of the turn dispatches; what only the flush after it brings up has a turn of its own.
  func capacityAvailable(in pool: any Pool) { time.ensureHooksRun() }

  private func feedback(_ meaning: ReplyMeaning, _ entry: InFlight, _ index: Int) -> FeedbackEvent? {
    guard meaning.reaction.isFeedback, let app = entry.app, !entry.isForActivity else { return nil }
    let recipient = entry.recipients[index]
    return FeedbackEvent(
      meaning, app: apps[app].id, platform: recipient.platform, token: Array(recipient.token),
      registration: registration(entry, index),
      messageID: entry.messageID, observedAt: time.wallClock)
  }

  /// The registry's id of the device, when it came from there.
  private func registration(_ entry: InFlight, _ index: Int) -> [UInt8]? {
    let row = entry.recipients[index].row
    return row < 0 ? nil : entry.rows?.registration(row)
  }

  /// The registry knows that the app is gone: said as the provider once said it, without asking again (GS-082).
  func settleGone(_ entry: InFlight, _ index: Int) {
    let recipient = entry.recipients[index]
    counters.failed[Int(PushError.notRegistered.code)] += 1
    entry.recipients[index].state = .failed(.notRegistered)
    guard let app = entry.app else { return }
    counters.feedback += 1
    let event = FeedbackEvent(
      event: .notRegistered, app: apps[app].id, platform: recipient.platform, token: Array(recipient.token),
      registration: registration(entry, index), reason: "gone in the registry", status: 0, messageID: entry.messageID,
      observedAt: time.wallClock)
    publish(publications.feedback(event, for: entry))
  }

  // MARK: one recipient

  func settle(_ entry: InFlight, _ index: Int, _ state: Recipient.State) {
    if case .failed(let code) = state { counters.failed[Int(code.code)] += 1 }
    entry.recipients[index].state = state
    perform(entry.ledger.closed(), entry)
  }

  /// Ends one recipient in the dead letters.
  func fail(_ entry: InFlight, _ index: Int, _ code: PushError, reason: String, status: Int? = nil, attempts: Int? = nil) {
    let letter = DeadLetter(
      error: code, reason: reason, status: status, attempts: attempts ?? entry.attempts, failedAt: time.wallClock)
    publishDeadLetter(letter, naming: index, of: entry)
    settle(entry, index, .failed(code))
  }

  /// To the ladder, unless its time or its attempts are used up: then to the dead letters with the last reason.
  func postpone(_ entry: InFlight, _ index: Int, by delay: Int64, _ code: PushError, reason: String, status: Int? = nil) {
    let until = time.wallClock + delay
    let isLast = entry.attempts + 1 >= attemptLimit || until > entry.deadline || entry.isNowOrNever
    guard !isLast else {
      return fail(entry, index, code, reason: reason, status: status, attempts: entry.attempts + 1)
    }
    entry.lastFailure = (code, reason, status)
    entry.hasAttempted = true
    counters.postponed += 1
    log.debug("put off", ["message_id": entry.messageID, "recipient": index, "seconds": Double(delay) / 1000])
    settle(entry, index, .postponed(until: until))
  }

  /// The request with one device as its target.
  func deadLetterBody(_ entry: InFlight, _ index: Int) -> [UInt8] {
    guard let request = entry.request else { return entry.delivery.body }
    let recipient = entry.recipients[index]
    let target =
      registration(entry, index)
      ?? (recipient.token.isEmpty
        ? request.targetText(index) : DeadLetter.target(recipient.platform, token: Array(recipient.token)))
    return DeadLetter.body(request.document, naming: target)
  }

  // MARK: the whole request

  /// Never admitted: a dead letter as it came, and the same word to whoever waits.
  func reject(_ entry: InFlight, _ rejection: Rejection) {
    counters.failed[Int(rejection.code.code)] += 1
    conclude(entry) { publishRejection(rejection, of: entry) }
  }

  private func publishRejection(_ rejection: Rejection, of entry: InFlight) {
    let letter = DeadLetter(error: rejection.code, reason: rejection.reason, attempts: entry.attempts, failedAt: time.wallClock)
    let isWholePage = entry.page != nil || entry.queue.isFanOut
    publishDeadLetter(letter, isWholePage: isWholePage, of: entry)
    if let page = entry.page, page.campaign.isEmpty {
      publishFanOutResult(of: entry, success: page.sent, failure: page.failed + Int64(page.pending?.count ?? 0))
    } else if isWholePage {
      pageRejected(entry, rejection)
    } else {
      publishResult(of: entry, targets: [.failed(rejection.code)])
    }
  }

  /// Its chain may end here: an operator is to see that, and to replay the letter.
  private func pageRejected(_ entry: InFlight, _ rejection: Rejection) {
    let campaign = entry.page?.campaign
    log.error(
      "a page of a campaign is a dead letter: fix what it says, resume the campaign, replay the letter",
      ["campaign": campaign.map { String(decoding: $0, as: UTF8.self) } ?? "unknown", "reason": rejection.reason])
    if let campaign { hold(campaign: campaign) }
  }

  /// Too late: not sent to whom it has not reached.
  func expire(_ entry: InFlight) {
    conclude(entry) {
      for index in entry.recipients.indices {
        switch entry.recipients[index].state {
        case .waiting, .sent, .postponed, .refused, .unresolved, .gone: noteExpired(entry, index)
        case .delivered, .failed, .sameAs: continue
        }
      }
      if entry.recipients.isEmpty {
        counters.expired += 1
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
  func noteExpired(_ entry: InFlight, _ index: Int) {
    counters.expired += 1
    counters.failed[Int(PushError.expired.code)] += 1
    if entry.attempts > 0, let last = entry.lastFailure {
      let letter = DeadLetter(
        error: last.error, reason: last.reason, status: last.status, attempts: entry.attempts, failedAt: time.wallClock)
      publishDeadLetter(letter, naming: index, of: entry)
    }
    entry.recipients[index].state = .failed(.expired)
  }

  /// What follows once every recipient has ended or waits: the ladder, or the result.
  func publishConsequences(of entry: InFlight) {
    if let page = entry.page { return concludePage(entry, page) }
    var earliest = Int64.max
    for recipient in entry.recipients {
      if case .postponed(let until) = recipient.state { earliest = min(earliest, until) }
    }
    if earliest < .max {
      publishRetry(of: entry, at: earliest)
    } else if entry.wantsResult(results) {
      publishResult(of: entry, targets: resultTargets(of: entry), report: entry.dryRun)
    }
  }

  /// - Parameter earliest: unix milliseconds before which nothing is to be tried.
  func publishRetry(of entry: InFlight, at earliest: Int64) {
    counters.retries += 1
    let last = entry.lastFailure ?? (.unavailable, "waiting for the provider", nil)
    var (settled, lag) = (entry.settledBefore, entry.clockLag)
    if entry.page == nil, entry.recipients.count > 1, entry.unresolved == 0 {
      settled = SettledTargets.encode(
        entry.recipients, byToken: !entry.members.isEmpty, names: entry.wantsResult(results) ? entry.namesToKeep : nil)
      lag = 0
    }
    let now = time.wallClock
    let record = RetryRecord(
      attempts: entry.attempts + (entry.hasAttempted ? 1 : 0), round: entry.round &+ 1, deadline: entry.deadline,
      error: last.error, reason: last.reason, status: last.status, settled: settled)
    publish(publications.retry(record, after: max(earliest - now, 0), at: now + lag, for: entry))
  }

  func resultTargets(of entry: InFlight) -> [SendResult.Target] {
    let identity = DeviceIdentity(messageID: entry.messageID)
    let fixedID = entry.request.flatMap { request in request.apnsHeader(.apnsId).map(request.document.string) }
    var targets: [SendResult.Target] = []
    targets.reserveCapacity(entry.recipients.count)
    for recipient in entry.recipients {
      switch recipient.state {
      case .delivered(let name):
        targets.append(
          .accepted(
            id: name.isEmpty ? fixedID ?? identity.apnsID(token: recipient.token.span) : name,
            registration: recipient.isOldRegistration ? entry.rows?.registration(recipient.row) : nil))
      case .failed(let code): targets.append(.failed(code))
      case .sameAs(let earlier): targets.append(targets[earlier])
      case .waiting, .unresolved, .gone, .sent, .refused, .postponed: targets.append(.failed(.unavailable))
      }
    }
    // A user, group or topic in a list has been reached when one of its devices has.
    for member in entry.members {
      guard case .failed = targets[member.place] else { continue }
      for target in targets[member.others] {
        if case .accepted = target { targets[member.place] = target }
      }
    }
    if let first = entry.members.first { targets.removeLast(targets.count - first.others.lowerBound) }
    return targets
  }

  func publishResult(of entry: InFlight, targets: [SendResult.Target], report: DryRunReport? = nil) {
    guard entry.wantsResult(results) else { return }
    let app = entry.app.map { apps[$0].id } ?? entry.delivery.properties.appID ?? []
    let result = SendResult(messageID: entry.messageID, app: app, targets: targets)
    let body = result.json(report: report)
    if results == .all || (results == .failures && result.failure > 0) {
      counters.results += 1
      publish(publications.result(body, for: entry))
    }
    if let reply = publications.reply(body, for: entry) {
      counters.results += 1
      publish(reply)
    }
  }

  /// An audience's: how many of its devices, not which.
  func publishFanOutResult(of entry: InFlight, success: Int64, failure: Int64) {
    guard entry.wantsResult(results) else { return }
    let body = SendResult.fanOut(messageID: entry.messageID, success: Int(success), failure: Int(failure))
    if results == .all || (results == .failures && failure > 0) {
      counters.results += 1
      publish(publications.result(body, for: entry))
    }
    if let reply = publications.reply(body, for: entry) {
      counters.results += 1
      publish(reply)
    }
  }
}
