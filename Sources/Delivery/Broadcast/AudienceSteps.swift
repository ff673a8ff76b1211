import Broker
import DeviceRegistry
import PushCore

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
    case .report: pipeline.perform(entry.ledger.owes(.report), entry)
    case .putOffWhenSafe(let due): pipeline.putOffWhenSafe(entry, until: due)
    case .retry(let due): publisher.publishRetry(of: entry, at: due)
    case .met: pipeline.consequenceEnded(of: entry)
    }
  }
}

extension AudienceStep {
  /// Asks the registry.
  /// - Parameters:
  ///   - begins: the answer begins pushes, so a stopping worker ignores it: the broker delivers the message to another worker.
  ///   - failure: follows if the registry can't answer. If nil, the request goes to the ladder then.
  static func ask<Answer>(
    _ call: RegistryCall<Answer>, begins: Bool = false,
    orElse failure: ((Broadcasts, InFlight, RegistryError) -> [AudienceStep])? = nil,
    then next: @escaping (Broadcasts, InFlight, Answer) -> [AudienceStep]
  ) -> AudienceStep {
    .ask { entry, pipeline in
      let reference = entry.reference
      pipeline.registry?.call(call) { [weak pipeline] result in
        guard let pipeline, let entry = pipeline.table[reference] else { return }
        switch result {
        case .success(let answer):
          guard failure != nil || !entry.ledger.isConcluded, !begins || !pipeline.dispatcher.isDraining else { return }
          pipeline.carryOut(next(pipeline.broadcasts, entry, answer), entry)
        case .failure(let error):
          guard let failure else { return pipeline.refuseOrPutOff(entry, error) }
          pipeline.carryOut(failure(pipeline.broadcasts, entry, error), entry)
        }
      }
    }
  }
}
