import Broker
import DeviceRegistry
import PushCore

/// Something that happened to a request to an audience, or to a page.
enum AudienceEvent {
  case begun(Audience)
  case surveyed(AudienceEstimate)
  /// The campaign that another copy of the request has begun, if any.
  case found(Campaign?)
  case created(Campaign)
  case read(AudiencePage)
  /// The devices of a small audience that earlier attempts have left.
  case restRead(Resolution)
  case opened(OpenedPage)
  case pageConfirmed
  /// Every device of the page has ended or waits for its next attempt.
  case devicesEnded
  /// The deadline has passed for the remaining devices of a small audience.
  case expired(PageTicket, [PageTicket.Device])
  /// The page must begin again without the devices that have ended.
  case beginsAgain
  /// The record of such a page must be saved.
  case saveDue
  case saved
  case notSaved(RegistryError)
  case reportDue
  /// The campaign after the report; nil if the registry doesn't have it.
  case reported(Campaign?)
  case resultClaimed(ResultClaim)
  /// The registry can't accept the report, or the claim of the result, now.
  case notReported(RegistryError)
}

/// The next action for a request to an audience.
enum AudienceStep {
  case ask((InFlight, Pipeline) -> Void)
  case reject(Rejection)
  case expire
  /// Puts the request unchanged on the ladder, with a delay in milliseconds and a reason.
  case putOff(Int64, String)
  case send
  /// Takes these last steps, then acknowledges the request.
  case conclude([AudienceStep])
  case publish(Publication)
  case begins(Campaign)
  /// A dead letter for the whole audience, or for one device.
  case letter(DeadLetter)
  case expiredLetter(registration: [UInt8])
  case result(FanOutResult)
  case report
  /// Puts the page on the ladder once all consequences are confirmed; not before a time in unix milliseconds.
  case putOffWhenSafe(until: Int64?)
  /// Puts the page on the ladder at once; not before a time in unix milliseconds.
  case retry(at: Int64)
  /// One of the owed consequences is complete.
  case met
}

extension AudienceStep {
  func carryOut(_ entry: InFlight, in pipeline: Pipeline) {
    let publisher = pipeline.publisher
    switch self {
    case .ask(let question): question(entry, pipeline)
    case .reject(let rejection): pipeline.reject(entry, rejection)
    case .expire: pipeline.expire(entry)
    case .putOff(let delay, let reason): pipeline.putOff(entry, by: delay, reason)
    // The broker delivers an orphan again, and then it is sent.
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

extension AudienceStep {
  /// Asks the registry.
  /// - Parameter failure: the event when the registry can't answer. If nil, the request goes to the ladder then.
  static func ask<Answer>(
    _ call: RegistryCall<Answer>, orElse failure: ((RegistryError) -> AudienceEvent)? = nil,
    then event: @escaping (Answer) -> AudienceEvent
  ) -> AudienceStep {
    .ask { entry, pipeline in
      let reference = entry.reference
      pipeline.registry?.call(call) { [weak pipeline] result in
        guard let pipeline, let entry = pipeline.table[reference] else { return }
        switch result {
        case .success(let answer):
          if failure != nil || !entry.ledger.isConcluded { pipeline.handle(event(answer), entry) }
        case .failure(let error):
          if let failure { pipeline.handle(failure(error), entry) } else { pipeline.refuseOrPutOff(entry, error) }
        }
      }
    }
  }
}
