import PushCore
import StatusHTTP

extension HTTPCall {
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
