import PushCore
import StatusHTTP

extension HTTPCall {
  /// In the manner of our own interface: a word for programs and a reason for people.
  func refuse(_ error: String, _ reason: String, status: Int = 400) {
    answer(
      .json(status) {
        $0.set("error", error)
        $0.set("reason", reason)
      })
  }

  /// The body where it is an object; nil where it isn't, and the call is answered.
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
