import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Settings
import Wire

/// Publishes the consequences of requests: dead letters, results, feedback, and copies for the ladder or a hold queue. A
/// request owes each publication until the broker has confirmed it. Confined to the shard's thread.
final class OutcomePublisher {
  let tools: ShardTools
  let results: ResultsSetting
  let attemptLimit: Int
  private let dispatcher: Dispatcher
  private let backpressure: Backpressure
  private let observers: Observers
  /// As ``Configuration/deadLetters``.
  private let deadLetters: Set<PushError>
  /// The time of the next log line about messages that wait for a newer worker.
  private var nextNewerNotice = MonotonicTime(nanoseconds: 0)

  init(
    _ tools: ShardTools, _ configuration: Configuration, backpressure: Backpressure, dispatcher: Dispatcher,
    observers: Observers
  ) {
    self.tools = tools
    results = configuration.results
    deadLetters = configuration.deadLetters
    attemptLimit = configuration.retry.attempts
    self.backpressure = backpressure
    self.dispatcher = dispatcher
    self.observers = observers
  }

  func publish(_ publication: Publication, for entry: InFlight) {
    publication.weight = publication.size
    if publication.kind == .retry || publication.kind == .hold { entry.attempt.isPutOff = true }
    entry.ledger.owes()
    observers.note(.published(publication.kind, routingKey: publication.routingKey), entry)
    backpressure.leaving(publication, entry.identity.app)
    tools.outbox.publish(publication)
  }

  /// The broker has confirmed the publication, or it was withdrawn.
  func left(_ publication: Publication, _ entry: InFlight, isConfirmed: Bool) {
    backpressure.left(publication, entry.identity.app)
    if isConfirmed, publication.kind == .hold { observers.note(.putToHold, entry) }
  }

  func publish(_ event: FeedbackEvent, for entry: InFlight) {
    observers.note(.feedback, entry)
    publish(tools.publications.feedback(event, from: entry.delivery.properties, .request(entry.index)), for: entry)
  }

  // MARK: dead letters

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

  /// - Parameters:
  ///   - recipient: the one failed device; nil for the whole request.
  ///   - registration: the one device to name if it is not a recipient.
  ///   - keepsNotes: keep the notes of earlier rounds, which are the fleet's own.
  func publish(
    _ letter: DeadLetter, naming recipient: Int? = nil, registration: [UInt8]? = nil, isWholePage: Bool = false,
    keepsNotes: Bool = false, for entry: InFlight
  ) {
    observers.note(.deadLetter(letter, recipient), entry)
    let publication = tools.publications.deadLetter(
      letter, naming: recipient, isWholePage: isWholePage, keepsNotes: keepsNotes, for: entry)
    if let registration, let request = entry.request {
      publication.body = DeadLetter.body(request.document, naming: registration)
    }
    publish(publication, for: entry)
  }

  /// Publishes a dead letter if the setting `deadLetters` has its code.
  /// - Parameters:
  ///   - recipient: the device; nil for the unchanged request.
  ///   - registration: the one device to name if the request has no recipients.
  func publishOptionalLetter(
    _ code: PushError, naming recipient: Int? = nil, registration: [UInt8]? = nil, for entry: InFlight
  ) {
    guard deadLetters.contains(code), entry.request?.isDryRun != true else { return }
    let reason =
      code == .collapsed ? "a newer request with its collapse key has taken its place" : "its time to live has passed"
    let letter = DeadLetter(error: code, reason: reason, attempts: entry.attempt.earlier, failedAt: tools.time.wallClock)
    publish(letter, naming: recipient, registration: registration, for: entry)
  }

  /// For a request that was not admitted: a dead letter with the unchanged request, and the result.
  func publish(_ rejection: Rejection, for entry: InFlight) {
    let letter = DeadLetter(rejection, attempts: entry.attempt.earlier, failedAt: tools.time.wallClock)
    publish(letter, isWholePage: entry.isPage || entry.source.queue.isFanOut, for: entry)
    if let page = entry.broadcast.page, page.campaign.isEmpty {
      let pending = page.pending ?? []
      var failures = page.failureCounts
      failures.add(rejection.code, on: nil, devices: Int64(pending.count))
      let result = FanOutResult(
        success: page.sent, failure: page.failed + Int64(pending.count), failed: page.failures + pending, failures: failures)
      publishResult(of: entry, result)
    } else if !entry.isWholePage {
      publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
    }
  }

  /// Publishes a dead letter of a request that has killed workers. The letter keeps the notes of earlier rounds, so that a
  /// replay sends no push twice. The sender gets a result only if there was no earlier round, because the outcome of an earlier
  /// round isn't known here.
  func publishAsGivenUp(_ rejection: Rejection, for entry: InFlight) {
    let headers = entry.delivery.properties.headers
    var isFirstRound = !entry.source.areNotesOurs
    if case .absent = RetryRecord.read(headers), headers[PageTicket.header] == nil { isFirstRound = true }
    publish(DeadLetter(rejection, failedAt: tools.time.wallClock), keepsNotes: entry.source.areNotesOurs, for: entry)
    if isFirstRound, !entry.source.queue.isFanOut {
      publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
    }
  }

  /// Expires all recipients that the request has not reached. If none has a push or a dead letter yet, one letter has the
  /// unchanged request.
  func expireAll(of entry: InFlight) {
    if entry.recipients.isEmpty, entry.broadcast.page?.pending == nil { observers.note(.expired(1), entry) }
    let isWhole = !entry.isPage && entry.attempt.earlier == 0 && !entry.hasSettledDevice
    if isWhole { publishOptionalLetter(.expired, for: entry) }
    for index in entry.recipients.indices {
      switch entry.recipients[index].state {
      case .waiting, .sent, .postponed, .refused, .unresolved, .gone: expire(entry, index, hasLetter: isWhole)
      case .delivered, .failed, .sameAs: continue
      }
    }
  }

  /// Expires one recipient. After attempts it has a dead letter with the last reason; before any, only a result. Parking counts
  /// as no attempt.
  func expire(_ entry: InFlight, _ index: Int, hasLetter: Bool = false) {
    observers.note(.expired, entry, index)
    if entry.attempt.earlier > 0, let last = entry.attempt.lastFailure {
      let letter = DeadLetter(
        error: last.error, reason: last.reason, status: last.status, attempts: entry.attempt.earlier,
        failedAt: tools.time.wallClock)
      publish(letter, naming: index, for: entry)
    } else if !hasLetter {
      publishOptionalLetter(.expired, naming: index, for: entry)
    }
    entry.recipients[index].state = .failed(.expired)
  }

  /// False if there is nothing to replay: the request has nothing for the device, or an operator has discarded it. The setting
  /// `deadLetters` can ask for letters of the first kind.
  func leavesLetter(_ rejection: Rejection) -> Bool {
    switch rejection.code {
    case .nothingForPlatform: deadLetters.contains(.nothingForPlatform)
    case .cancelled: false
    default: true
    }
  }

  // MARK: copies

  /// Milliseconds until the next attempt after a failed registry call.
  static let registryDelay: Int64 = 10_000

  /// Plans the next attempt at a recipient.
  /// - Parameter delay: milliseconds.
  /// - Returns: when it is due, in unix milliseconds; nil if the request's time or attempts are used up.
  func nextAttempt(of entry: InFlight, after delay: Int64) -> Int64? {
    let now = tools.time.wallClock
    let life = entry.identity.deadline - now
    let wait = min(delay, tools.publications.ladder.longest)
    guard entry.attempt.earlier + 1 < attemptLimit, wait <= life, !entry.attempt.isLast else { return nil }
    if entry.attempt.draw == nil { entry.attempt.draw = tools.time.random.next() }
    return now + wait + tools.publications.ladder.jitter(for: wait, within: life, by: entry.attempt.draw ?? 0)
  }

  /// The delay before a recipient's next attempt, in milliseconds.
  /// - Parameter wanted: the provider's `Retry-After` in seconds.
  func delay(of kind: RetryClass, retryAfter wanted: Int? = nil, _ entry: InFlight) -> Int64 {
    let delay = kind.delay(afterAttempt: entry.attempt.earlier + 1, retryAfter: wanted)
    // The request won't live until the next regular attempt: its one further attempt comes as late as possible.
    let life = entry.identity.deadline - tools.time.wallClock
    guard kind == .outage, wanted == nil, delay > life else { return delay }
    return tools.publications.ladder.longestWait(within: life) ?? delay
  }

  /// Withdraws unsent copies for the ladder and hold queues, because the broker redelivers the originals. A request that was
  /// only parked waits again. A page's ticket stays, and its copy is published again if the page comes back here. Such a
  /// request may still wait for the registry to store its note.
  /// - Parameter ofHolds: true for requests of the hold queues' channel, false for those of the lanes'.
  func withdrawCopies(_ ofHolds: Bool) {
    let table = dispatcher.table
    let isMeant = { (owner: Int) in
      let entry = table[owner]
      return !entry.ledger.isOrphan && (entry.source.hold != nil) == ofHolds
        && !entry.source.repeats.contains { ($0.hold != nil) != ofHolds }
    }
    let outbox = tools.outbox
    for publication in outbox.withdraw(.retry, where: isMeant) + outbox.withdraw(.hold, where: isMeant) {
      guard let entry = table.owner(of: publication) else { continue }
      left(publication, entry, isConfirmed: false)
      entry.ledger.withdrawn()
      entry.attempt.isPutOff = false
      entry.attempt.waitsUntil = nil
      guard entry.broadcast.work == nil, !entry.attempt.hasAsked, !entry.hasReachedDevice else { continue }
      for index in entry.recipients.indices {
        if case .postponed = entry.recipients[index].state { entry.recipients[index].state = .waiting }
      }
    }
  }

  /// - Parameter earliest: unix milliseconds before which nothing is attempted.
  func publishRetry(of entry: InFlight, at earliest: Int64) {
    let last = entry.attempt.lastFailure ?? (.unavailable, "waiting for the provider", nil)
    let now = tools.time.wallClock
    entry.boundWaits(at: now)
    let delay = min(max(earliest - now, 0), entry.attempt.longestWait)
    // An expired request waits for the registry, not for a provider.
    let step = tools.publications.ladder.step(
      for: delay, within: entry.identity.deadline > now ? entry.identity.deadline - now : .max)
    var (settled, lag) = (entry.attempt.settledBefore, entry.identity.clockLag)
    if !entry.isPage, entry.registry.unresolved == 0, entry.recipients.count > 1 || entry.attempt.hasAsked {
      // The time of a single device is noted only if the step ends before it.
      let isNoted = entry.recipients.count > 1 || tools.publications.ladder.isTooShort(step, for: delay)
      let names = entry.wantsResult(results) ? entry.namesToKeep : nil
      settled = isNoted ? SettledTargets.encode(entry.recipients, byToken: !entry.registry.members.isEmpty, names: names) : nil
      lag = 0
    }
    let record = RetryRecord(
      attempts: entry.attempt.earlier + (entry.attempt.isCounted ? 1 : 0), round: entry.attempt.round &+ 1,
      deadline: entry.identity.deadline,
      error: last.error, reason: last.reason, status: last.status, settled: settled, arrival: entry.collapse.arrival,
      putOffAt: entry.attempt.putOffAt ?? now)
    dispatcher.collapses.noteWaiting(entry)
    if entry.attempt.goesToHold, !entry.attempt.hasAsked, !entry.attempt.isStopped, let app = entry.identity.app,
      dispatcher.holds.isPresent(app)
    {
      return publish(tools.publications.hold(record, of: app, at: now + lag, for: entry), for: entry)
    }
    observers.note(.retried, entry)
    entry.attempt.waitsUntil = now + delay
    publish(tools.publications.retry(record, by: step, at: now + lag, for: entry), for: entry)
  }

  /// During an upgrade or rollback, a worker may receive notes in a newer form. It leaves such a message to a newer worker: the
  /// message goes unchanged to the ladder, and no attempt is counted.
  /// - Returns: nil after four weeks, the longest lifetime of a request.
  func copyForNewer(of entry: InFlight) -> Publication? {
    let now = tools.time.wallClock
    let since = min(entry.delivery.properties.headers.integer(OutcomePublications.asideSince) ?? now, now)
    guard now - max(since, 0) <= Intake.longestLife else { return nil }
    if tools.time.now >= nextNewerNotice {
      nextNewerNotice = tools.time.now.advanced(bySeconds: 60)
      tools.log.warning(
        "messages wait for a newer worker: this version can't read their headers",
        ["queue": entry.source.queue.origin])
    }
    let delay = min(max(now - since, Self.shortestWaitForNewer), Self.longestWaitForNewer)
    return tools.publications.aside(since: since, after: delay, for: entry)
  }

  /// Bounds of the wait in milliseconds: an upgrade takes minutes.
  private static let shortestWaitForNewer: Int64 = 60_000
  private static let longestWaitForNewer: Int64 = 900_000

  // MARK: results

  func publishResult(of entry: InFlight, targets: [SendResult.Target], report: DryRunReport? = nil) {
    guard entry.wantsResult(results) else { return }
    let app = entry.identity.app.map { tools.apps[$0].id } ?? entry.delivery.properties.appID ?? []
    let result = SendResult(messageID: entry.identity.messageID, app: app, targets: targets)
    publishResult(result.json(report: report), hasFailures: result.failure > 0, for: entry)
  }

  func publishResult(of entry: InFlight, _ result: FanOutResult) {
    guard entry.wantsResult(results) else { return }
    let body = SendResult.fanOut(
      messageID: entry.identity.messageID, success: Int(result.success), failure: Int(result.failure),
      unknown: Int(result.unknown), failed: result.failed.map { DeviceRows.registration(id: $0.id, salt: $0.salt) },
      failures: result.failures)
    publishResult(body, hasFailures: result.failure + result.unknown > 0, for: entry)
  }

  private func publishResult(_ body: [UInt8], hasFailures: Bool, for entry: InFlight) {
    if results == .all || (results == .failures && hasFailures) {
      observers.note(.result, entry)
      publish(tools.publications.result(body, for: entry), for: entry)
    }
    if let reply = tools.publications.reply(body, for: entry) {
      observers.note(.result, entry)
      publish(reply, for: entry)
    }
  }
}

struct FanOutResult {
  var success: Int64
  var failure: Int64
  /// Devices with an unknown outcome.
  var unknown: Int64 = 0
  var failed: [PageTicket.Device] = []
  var failures: [FailureCount]
}

extension InFlight {
  var resultTargets: [SendResult.Target] {
    var targets: [SendResult.Target] = []
    targets.reserveCapacity(self.recipients.count)
    for (index, recipient) in self.recipients.enumerated() {
      switch recipient.state {
      case .delivered(let name):
        let isOfAPNs = recipient.platform == .apns && self.attempt.dryRun == nil
        targets.append(
          .accepted(
            id: name.isEmpty || isOfAPNs ? apnsID(of: recipient) : name,
            registration: recipient.isOldRegistration ? self.registry.rows?.registration(recipient.row) : nil,
            uniqueID: isOfAPNs && !name.isEmpty ? name : nil))
      case .failed(let code): targets.append(.failed(code, reason: self.attempt.reasons[index]))
      case .sameAs(let earlier): targets.append(targets[earlier])
      case .waiting, .unresolved, .gone, .sent, .refused, .postponed: targets.append(.failed(.unavailable))
      }
    }
    // A list's user, group or topic was reached if one of its devices was.
    for member in self.registry.members {
      guard case .failed = targets[member.place] else { continue }
      for target in targets[member.others] {
        if case .accepted = target { targets[member.place] = target }
      }
    }
    if let first = self.registry.members.first { targets.removeLast(targets.count - first.others.lowerBound) }
    return targets
  }
}
