import AMQP
import Broker
import PushCore
import Wire

package struct Figures {
  let apps: Applications
  let time: Turn
  package var counters = Counters()
  package var times = PushTimes()
  package private(set) var letterReasons = DeadLetterReasons()

  mutating func note(_ event: PushEvent, _ entry: InFlight, _ recipient: Int) {
    switch event {
    case .sent, .notSent, .refused: return
    case .answered(let meaning, _): noteAnswer(meaning, entry, recipient)
    case .unknown: counters.unknownOutcomes += 1
    case .postponed(let code, _):
      counters.postponed += 1
      count(.retried(code), entry, recipient)
    case .parked:
      counters.parked += 1
      count(.parked, entry, recipient)
    case .collapsed: counters.collapsed += 1
    case .failed(let code): count(.failed(code), entry, recipient)
    case .expired:
      counters.expired += 1
      count(.failed(.expired), entry, recipient)
    }
  }

  mutating func note(_ event: RequestEvent, _ entry: InFlight) {
    switch event {
    case .taken, .resolved, .translated, .late, .published: return
    case .duplicate, .duplicatePage: counters.duplicatesSuppressed += 1
    case .pageBegun: counters.pages += 1
    case .unregistered(let devices): count(.failed(.notRegistered), entry, times: devices)
    case .refused(let rejection): count(.failed(rejection.code), entry)
    case .expired(let devices):
      counters.expired += devices
      count(.failed(.expired), entry, times: devices)
    case .parked:
      counters.parked += 1
      count(.parked, entry)
    case .quarantined: counters.quarantined += 1
    case .putToHold: counters.putToHold += 1
    case .retried: counters.retries += 1
    case .deadLetter(let letter, let recipient):
      counters.deadLetters += 1
      count(.deadLetter(letter.error), entry, recipient)
      letterReasons.note(app: entry.identity.app, error: letter.error, reason: letter.reason)
    case .feedback: counters.feedback += 1
    case .result: counters.results += 1
    case .acknowledged: if !entry.ledger.isOrphan { counters.acknowledged += 1 + entry.source.repeats.count }
    }
  }

  private mutating func noteAnswer(_ meaning: ReplyMeaning, _ entry: InFlight, _ recipient: Int) {
    switch meaning.reaction {
    case .retry: return
    case .delivered:
      noteTime(entry, recipient)
      // FCM only validates a dry run: no device gets it.
      guard entry.request?.isDryRun != true else { return }
      counters.delivered += 1
      count(.delivered, entry, recipient)
    case .gone, .drop, .suspect, .credential: noteTime(entry, recipient)
    }
  }

  /// Measures the time to the provider's final answer. Broadcasts don't count, because their pushes wait for their turn.
  private mutating func noteTime(_ entry: InFlight, _ recipient: Int) {
    guard entry.identity.isDated, !entry.isOfCampaign else { return }
    let hasHeaders = !entry.delivery.properties.headers.isEmpty
    let exact =
      hasHeaders ? Intake.milliseconds(entry.delivery.properties.headers, within: entry.identity.published) : nil
    let seconds = Double(time.wallClock - (exact ?? entry.identity.published)) / 1000
    times.answered(
      entry.recipients[recipient].platform, .init(entry.source.queue), after: max(seconds, 0), isExact: exact != nil)
  }

  private mutating func count(_ field: PushCounts.Field, _ entry: InFlight, _ recipient: Int? = nil, times: Int = 1) {
    let provider = recipient.map { entry.recipients[$0].platform }
    counters.pushes.add(field, apps.series.number(of: entry.identity.app), provider, .init(entry.source.queue), times: times)
  }

  // MARK: the ledger

  /// Counts a request that this worker did not have already.
  mutating func enterAccount(_ entry: InFlight) {
    guard entry.source.account == nil, !entry.source.queue.isFanOut else { return }
    let series = apps.series.number(of: entry.identity.app)
    entry.source.account = series
    counters.ledger.add(wasPutOff(entry) ? .resumed : .accepted, series)
    counters.ledger.add(.inHand, series)
  }

  mutating func closeAccount(_ entry: InFlight, _ end: RequestLedger.Entry) {
    guard let series = entry.source.account else { return }
    entry.source.account = nil
    counters.ledger.add(.inHand, series, -1)
    counters.ledger.add(end, series)
  }

  /// True if a worker had put the request off. A replayed dead letter doesn't count: that request was settled.
  private func wasPutOff(_ entry: InFlight) -> Bool {
    entry.source.areNotesOurs && entry.delivery.properties.headers[DeadLetter.errorHeader] == nil
  }
}
