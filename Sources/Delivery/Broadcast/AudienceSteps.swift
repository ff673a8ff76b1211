import Broker
import DeviceRegistry
import PushCore

/// What has happened to a request to an audience, or to a page of one.
enum AudienceEvent {
  /// It is admitted.
  case begun(Audience)
  /// How large the audience is.
  case surveyed(AudienceSurvey)
  /// Whether another copy of the request has begun the campaign.
  case found(Campaign?)
  case created(Campaign)
  /// The devices of an audience that is small by nature.
  case read(AudiencePage)
  /// The devices that earlier rounds have left of a small audience.
  case restRead(Resolution)
  case opened(OpenedPage)
  /// The message of a page is confirmed.
  case pageConfirmed
  /// Every device of the page has ended or waits for its next attempt.
  case devicesEnded
  /// It is too late for what earlier rounds have left of a small audience.
  case expired(PageTicket, [PageTicket.Device])
  /// The page is to begin again, less what the registry is to know of it.
  case beginsAgain
  /// The record of a page that is to begin again is to be saved.
  case saveDue
  case saved
  case notSaved(RegistryError)
  /// Everything that follows from the page's devices is safe.
  case reportDue
  /// The campaign after the report; nil if the registry has none.
  case reported(Campaign?)
  case resultClaimed(ResultClaim)
  /// The report, or the result, has to wait.
  case notReported(RegistryError)
}

/// What is to be done next for a request to an audience.
enum AudienceStep {
  case ask(AudienceQuestion)
  case reject(Rejection)
  /// It has come too late.
  case expire
  /// To the ladder as it came: for how many milliseconds, and why.
  case putOff(Int64, String)
  /// The devices are known, and are sent to.
  case send
  /// What follows from the request is these steps; then it is acknowledged.
  case conclude([AudienceStep])
  case publish(Publication)
  /// The campaign begins: older broadcasts with its collapse key are not sent any more.
  case begins(Campaign)
  /// A dead letter; for all devices, or for one.
  case letter(DeadLetter)
  case expiredLetter(registration: [UInt8])
  case result(FanOutResult)
  /// The page is to be reported as soon as nothing else is owed.
  case report
  /// To the ladder as soon as what has ended is safe; not before a time in unix milliseconds.
  case putOffWhenSafe(until: Int64?)
  /// To the ladder now; not before a time in unix milliseconds.
  case retry(at: Int64)
  /// The registry has what the request owed it.
  case met
}

extension AudienceStep {
  func carryOut(_ entry: InFlight, in pipeline: Pipeline) {
    let publisher = pipeline.publisher
    switch self {
    case .ask(let question): question.put(entry, in: pipeline)
    case .reject(let rejection): pipeline.reject(entry, rejection)
    case .expire: pipeline.expire(entry)
    case .putOff(let delay, let reason): pipeline.putOff(entry, by: delay, reason)
    // An orphan is sent when the broker has delivered it here again.
    case .send: if !entry.ledger.isOrphan { pipeline.passGates(entry) }
    case .conclude(let steps): pipeline.conclude(entry) { pipeline.carryOut(steps, entry) }
    case .publish(let publication): publisher.publish(publication, for: entry)
    case .begins(let campaign): pipeline.collapses.noteBegun(entry, campaign)
    case .letter(let letter): publisher.publish(letter, for: entry)
    case .expiredLetter(let id): publisher.publishOptionalLetter(.expired, registration: id, for: entry)
    case .result(let result): publisher.publishResult(of: entry, result)
    case .report: pipeline.perform(entry.ledger.owesReport(), entry)
    case .putOffWhenSafe(let due): pipeline.putOffWhenSafe(entry, until: due)
    case .retry(let due): publisher.publishRetry(of: entry, at: due)
    case .met: pipeline.consequenceEnded(of: entry)
    }
  }
}

/// A question to the registry, whose answer is an event.
struct AudienceQuestion {
  private let ask: (RegistryClient, @escaping (Result<AudienceEvent, RegistryError>) -> Void) -> Void
  /// What it means that the registry can't answer. Nil where the request can't go on without an answer: then it goes to the ladder.
  private let failure: ((RegistryError) -> AudienceEvent)?

  init<Answer>(
    _ call: RegistryCall<Answer>, orElse failure: ((RegistryError) -> AudienceEvent)? = nil,
    then event: @escaping (Answer) -> AudienceEvent
  ) {
    ask = { registry, answered in registry.call(call) { answered($0.map(event)) } }
    self.failure = failure
  }

  func put(_ entry: InFlight, in pipeline: Pipeline) {
    guard let registry = pipeline.registry else { return }
    let reference = entry.reference
    ask(registry) { [weak pipeline, failure] result in
      guard let pipeline, let entry = pipeline.table[reference] else { return }
      switch result {
      case .success(let event): if failure != nil || !entry.ledger.isConcluded { pipeline.handle(event, entry) }
      case .failure(let error):
        if let event = failure?(error) { pipeline.handle(event, entry) } else { pipeline.refuseOrPutOff(entry, error) }
      }
    }
  }
}
