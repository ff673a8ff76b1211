import DeviceRegistry
import PushCore
import StatusHTTP

extension HTTPCall {
  func refuse(_ fault: Fault) { answer(errorFormat.answer(fault)) }

  /// Asks the registry. If it doesn't answer, answers the call with an error instead.
  func ask<Answer>(
    _ question: RegistryCall<Answer>, orElse words: String = "the registry can't be read for now",
    then: @escaping (Answer) -> Void
  ) {
    guard let registry = context.registry else { return refuse(.unavailable(words)) }
    registry.call(question) { [self] result in
      switch result {
      case .success(let answer): then(answer)
      case .failure: refuse(.unavailable(words))
      }
    }
  }

  /// Answers in our own form: an error code for programs and a reason for people.
  func refuse(_ error: String, _ reason: String, status: Int = 400) { answer(.own(status, error, reason)) }

  /// The body if it is a JSON object. Otherwise answers the call with an error and returns nil.
  func object(_ limits: JSONLimits) -> JSONDocument? {
    do throws(JSONError) {
      let document = try JSONDocument(request.body, limits: limits)
      if document.kind(document.root) == .object { return document }
      refuse("InvalidParameters", "expected an object")
    } catch {
      refuse("InvalidJSON", error.description)
    }
    return nil
  }
}
