import AMQP
import Broker
import DeviceRegistry
import Logging
import PushCore
import Settings
import Wire

/// Publishes what follows from requests: dead letters, results, feedback, and copies for the ladder or a hold queue.
///
/// A request owes each of its publications until the broker has confirmed it. Confined to the shard's thread.
final class OutcomePublisher {
  let messages: OutcomePublications
  /// Which results are wanted by the configuration.
  let results: ResultsSetting
  /// Attempts at a push until it is a dead letter.
  let attemptLimit: Int
  private let apps: Applications
  private let dispatcher: Dispatcher
  private let backpressure: Backpressure
  private let observers: Observers
  private let time: Turn
  private let log: Log
  /// As ``Configuration/deadLetters``.
  private let deadLetters: Set<PushError>
  /// When it may be said again that messages wait for a newer worker.
  private var nextNewerNotice = MonotonicTime(nanoseconds: 0)

  init(
    _ messages: OutcomePublications, _ configuration: Configuration, backpressure: Backpressure, dispatcher: Dispatcher,
    observers: Observers, log: Log
  ) {
    self.messages = messages
    results = configuration.results
    deadLetters = configuration.deadLetters
    attemptLimit = configuration.retry.attempts
    self.backpressure = backpressure
    self.dispatcher = dispatcher
    self.observers = observers
    self.log = log
    apps = dispatcher.apps
    time = dispatcher.time
  }

  func publish(_ publication: Publication, for entry: InFlight) {
    var publication = publication
    publication.weight = publication.size
    if publication.kind == .retry || publication.kind == .hold { entry.attempt.isPutOff = true }
    entry.ledger.owes()
    observers.note(.published(publication.kind, routingKey: publication.routingKey), entry)
    backpressure.leaving(publication, entry.identity.app)
    dispatcher.outbox.publish(publication)
  }

  /// The broker has it, or it was taken back before it left.
  func left(_ publication: Publication, _ entry: InFlight, isConfirmed: Bool) {
    backpressure.left(publication, entry.identity.app)
    if isConfirmed, publication.kind == .hold { observers.note(.putToHold, entry) }
  }

  func publish(_ event: FeedbackEvent, for entry: InFlight) {
    observers.note(.feedback, entry)
    publish(messages.feedback(event, for: entry), for: entry)
  }

  // MARK: dead letters

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

  /// - Parameters:
  ///   - recipient: which of the request's devices, where only that one has failed.
  ///   - registration: of the one device that it is to name, where that is no recipient.
  ///   - keepsNotes: what earlier rounds have noted is the fleet's own, and stays.
  func publish(
    _ letter: DeadLetter, naming recipient: Int? = nil, registration: [UInt8]? = nil, isWholePage: Bool = false,
    keepsNotes: Bool = false, for entry: InFlight
  ) {
    observers.note(.deadLetter(letter, recipient), entry)
    var publication = messages.deadLetter(
      letter, naming: recipient, isWholePage: isWholePage, keepsNotes: keepsNotes, for: entry)
    if let registration, let request = entry.request {
      publication.body = DeadLetter.body(request.document, naming: registration)
    }
    publish(publication, for: entry)
  }

  /// A dead letter that the setting `deadLetters` asks for.
  /// - Parameters:
  ///   - recipient: which of the request's devices; nil for the request as it came.
  ///   - registration: of the one device that it is to name, where the request has no recipients.
  func publishOptionalLetter(
    _ code: PushError, naming recipient: Int? = nil, registration: [UInt8]? = nil, for entry: InFlight
  ) {
    guard deadLetters.contains(code), entry.parsed?.isDryRun != true else { return }
    let reason =
      code == .collapsed ? "a newer request with its collapse key has taken its place" : "its time to live has passed"
    let letter = DeadLetter(error: code, reason: reason, attempts: entry.attempt.earlier, failedAt: time.wallClock)
    publish(letter, naming: recipient, registration: registration, for: entry)
  }

  /// Of a request that was never admitted: a dead letter as it came, and the result.
  func publish(_ rejection: Rejection, for entry: InFlight) {
    let letter = DeadLetter(rejection, attempts: entry.attempt.earlier, failedAt: time.wallClock)
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

  /// Publishes a dead letter of a request that has killed workers. The letter keeps the notes of earlier rounds, so that replaying it sends to nobody
  /// twice. The sender gets a result only if there was no earlier round: the outcome of an earlier round isn't known here.
  func publishAsGivenUp(_ rejection: Rejection, for entry: InFlight) {
    let headers = entry.delivery.properties.headers
    var isFirstRound = !entry.source.areNotesOurs
    if case .absent = RetryRecord.read(headers), headers[PageTicket.header] == nil { isFirstRound = true }
    publish(DeadLetter(rejection, failedAt: time.wallClock), keepsNotes: entry.source.areNotesOurs, for: entry)
    if isFirstRound, !entry.source.queue.isFanOut {
      publishResult(of: entry, targets: [.failed(rejection.code, reason: rejection.reason)])
    }
  }

  /// It is too late for all recipients that the request has not reached. If no recipient has the push or a dead letter of its own, one letter names
  /// them all, as the request came.
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

  /// It is too late for one recipient: after attempts it is a dead letter with the last reason, before any just a result. What was parked
  /// or put off has had no attempt.
  func expire(_ entry: InFlight, _ index: Int, hasLetter: Bool = false) {
    observers.note(.expired, entry, index)
    if entry.attempt.earlier > 0, let last = entry.attempt.lastFailure {
      let letter = DeadLetter(
        error: last.error, reason: last.reason, status: last.status, attempts: entry.attempt.earlier, failedAt: time.wallClock)
      publish(letter, naming: index, for: entry)
    } else if !hasLetter {
      publishOptionalLetter(.expired, naming: index, for: entry)
    }
    entry.recipients[index].state = .failed(.expired)
  }

  /// Where a request has nothing for a device, there is nothing to replay either: the result says so, and a dead letter where it is asked for.
  func leavesLetter(_ rejection: Rejection) -> Bool {
    rejection.code != .nothingForPlatform || deadLetters.contains(.nothingForPlatform)
  }

  // MARK: copies

  /// Milliseconds until what waits for the registry is tried again.
  static let registryDelay: Int64 = 10_000

  /// Notes the next attempt at a recipient.
  /// - Parameter delay: milliseconds.
  /// - Returns: when it is due, in unix milliseconds; nil where the request's time or its attempts are used up.
  func nextAttempt(of entry: InFlight, after delay: Int64) -> Int64? {
    let now = time.wallClock
    let isLast =
      entry.attempt.earlier + 1 >= attemptLimit || now + delay > entry.identity.deadline || entry.attempt.isLast
    guard !isLast else { return nil }
    if entry.attempt.draw == nil { entry.attempt.draw = time.random.next() }
    let life = entry.identity.deadline - now
    return now + delay + messages.ladder.jitter(for: delay, within: life, by: entry.attempt.draw ?? 0)
  }

  /// How long a recipient waits for its next attempt, in milliseconds.
  /// - Parameter wanted: what the provider asks for, in seconds.
  func delay(of kind: RetryClass, retryAfter wanted: Int? = nil, _ entry: InFlight) -> Int64 {
    let delay = kind.delay(afterAttempt: entry.attempt.earlier + 1, retryAfter: wanted)
    // Of no use any more after a quarter of an hour: it has its one further attempt as late as it can.
    let life = entry.identity.deadline - time.wallClock
    guard kind == .outage, wanted == nil, delay > life else { return delay }
    return messages.ladder.longestWait(within: life) ?? delay
  }

  /// Takes back the copies for the ladder that have not left, as the broker delivers the originals again, here or elsewhere. A request that was
  /// only parked goes on as if it had never come. A page's ticket stays as it is, and its copy is published again if the page comes back here. Such
  /// a request may still owe the registry's word that it waits.
  /// - Parameter ofHolds: of requests that the channel of the hold queues has brought, not that of the lanes.
  func withdrawCopies(_ ofHolds: Bool) {
    let table = dispatcher.table
    let isMeant = { (owner: Int) in
      let entry = table[owner]
      return !entry.ledger.isOrphan && (entry.source.hold != nil) == ofHolds
        && !entry.source.repeats.contains { ($0.hold != nil) != ofHolds }
    }
    let outbox = dispatcher.outbox
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

  /// - Parameter earliest: unix milliseconds before which nothing is to be tried.
  func publishRetry(of entry: InFlight, at earliest: Int64) {
    let last = entry.attempt.lastFailure ?? (.unavailable, "waiting for the provider", nil)
    let now = time.wallClock
    entry.boundWaits(at: now)
    let delay = min(max(earliest - now, 0), entry.attempt.longestWait)
    // What is too late already waits for something else than a provider.
    let step = messages.ladder.step(
      for: delay, within: entry.identity.deadline > now ? entry.identity.deadline - now : .max)
    var (settled, lag) = (entry.attempt.settledBefore, entry.identity.clockLag)
    if !entry.isPage, entry.registry.unresolved == 0, entry.recipients.count > 1 || entry.attempt.hasAsked {
      // One device has its time noted where it comes back before that.
      let isNoted = entry.recipients.count > 1 || messages.ladder.isTooShort(step, for: delay)
      let names = entry.wantsResult(results) ? entry.namesToKeep : nil
      settled = isNoted ? SettledTargets.encode(entry.recipients, byToken: !entry.registry.members.isEmpty, names: names) : nil
      lag = 0
    }
    let record = RetryRecord(
      attempts: entry.attempt.earlier + (entry.attempt.hasAsked ? 1 : 0), round: entry.attempt.round &+ 1,
      deadline: entry.identity.deadline,
      error: last.error, reason: last.reason, status: last.status, settled: settled, arrival: entry.collapse.arrival)
    dispatcher.collapses.noteWaiting(entry)
    if entry.attempt.goesToHold, !entry.attempt.hasAsked, let app = entry.identity.app, dispatcher.holds.isPresent(app) {
      return publish(messages.hold(record, of: app, at: now + lag, for: entry), for: entry)
    }
    observers.note(.retried, entry)
    entry.attempt.waitsUntil = now + delay
    publish(messages.retry(record, by: step, at: now + lag, for: entry), for: entry)
  }

  /// While a fleet is brought up to date, or back, a worker may meet what a newer one has noted on a message. It can't tell what is left to
  /// do, and so leaves the message to one that can: on the ladder as it came, at no attempt's cost.
  /// - Returns: nil after four weeks, beyond which no request lives.
  func copyForNewer(of entry: InFlight) -> Publication? {
    let now = time.wallClock
    var since = now
    if case .integer(let earlier)? = entry.delivery.properties.headers[OutcomePublications.asideSince] {
      since = min(earlier, now)
    }
    guard now - max(since, 0) <= Intake.longestLife else { return nil }
    if time.now >= nextNewerNotice {
      nextNewerNotice = time.now.advanced(bySeconds: 60)
      log.warning(
        "messages of a newer worker wait for one: this version can't read their headers",
        ["queue": entry.source.queue.origin])
    }
    let delay = min(max(now - since, Self.shortestWaitForNewer), Self.longestWaitForNewer)
    return messages.aside(since: since, after: delay, for: entry)
  }

  /// A fleet is brought up to date within minutes: no need to look every second.
  private static let shortestWaitForNewer: Int64 = 60_000
  private static let longestWaitForNewer: Int64 = 900_000

  // MARK: results

  func publishResult(of entry: InFlight, targets: [SendResult.Target], report: DryRunReport? = nil) {
    guard entry.wantsResult(results) else { return }
    let app = entry.identity.app.map { apps[$0].id } ?? entry.delivery.properties.appID ?? []
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
      publish(messages.result(body, for: entry), for: entry)
    }
    if let reply = messages.reply(body, for: entry) {
      observers.note(.result, entry)
      publish(reply, for: entry)
    }
  }
}

/// How many of an audience's devices were reached.
struct FanOutResult {
  var success: Int64
  var failure: Int64
  /// Those of which nobody knows whether they were reached.
  var unknown: Int64 = 0
  /// Of a small audience, those that have failed.
  var failed: [PageTicket.Device] = []
  var failures: [FailureCount]
}

extension InFlight {
  /// What became of each of the request's targets.
  var resultTargets: [SendResult.Target] {
    let identity = DeviceIdentity(messageID: self.identity.messageID)
    let fixedID = request.flatMap(\.apnsID)
    var targets: [SendResult.Target] = []
    targets.reserveCapacity(self.recipients.count)
    for (index, recipient) in self.recipients.enumerated() {
      switch recipient.state {
      case .delivered(let name):
        let isOfAPNs = recipient.platform == .apns && self.attempt.dryRun == nil
        targets.append(
          .accepted(
            id: name.isEmpty || isOfAPNs ? fixedID ?? identity.apnsID(token: recipient.token.span) : name,
            registration: recipient.isOldRegistration ? self.registry.rows?.registration(recipient.row) : nil,
            uniqueID: isOfAPNs && !name.isEmpty ? name : nil))
      case .failed(let code): targets.append(.failed(code, reason: self.attempt.reasons[index]))
      case .sameAs(let earlier): targets.append(targets[earlier])
      case .waiting, .unresolved, .gone, .sent, .refused, .postponed: targets.append(.failed(.unavailable))
      }
    }
    // A user, group or topic in a list has been reached when one of its devices has.
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
