import PushCore
import StatusHTTP
import Testing

@testable import Gateway

@Suite("FCM v1's answers")
struct V1Tests {
  private func answer(_ outcome: SendService.Outcome, isDryRun: Bool = false) -> HTTPAnswer {
    V1Answer(project: Array("p".utf8), messageID: Array("m".utf8), isDryRun: isDryRun).answer(outcome)
  }

  private func result(_ target: String) -> SendService.Outcome {
    .result(Array(#"{"success":0,"failure":1,"results":[\#(target)]}"#.utf8))
  }

  private func text(_ answer: HTTPAnswer) -> String { String(decoding: answer.body, as: UTF8.self) }

  @Test("success names the message in the sender's project")
  func names() {
    #expect(text(answer(result(#"{"message_id":"u"}"#))) == #"{"name":"projects/p/messages/u"}"#)
    #expect(text(answer(result(#"{"message_id":"projects/x/messages/0:1%2"}"#))) == #"{"name":"projects/p/messages/0:1%2"}"#)
    #expect(text(answer(.accepted)) == #"{"name":"projects/p/messages/m"}"#)
    #expect(text(answer(result(#"{"message_id":"u"}"#), isDryRun: true)) == #"{"name":"projects/p/messages/fake_message_id"}"#)
  }

  @Test(
    "each of the fleet's codes has its status and its name",
    arguments: [
      ("NotRegistered", 404, "NOT_FOUND", "UNREGISTERED"), ("MismatchSenderId", 403, "PERMISSION_DENIED", "SENDER_ID_MISMATCH"),
      ("InvalidRegistration", 400, "INVALID_ARGUMENT", "INVALID_ARGUMENT"),
      ("InvalidApnsCredential", 401, "UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR"),
      ("DeviceMessageRateExceeded", 429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED"),
      ("Unavailable", 503, "UNAVAILABLE", "UNAVAILABLE"), ("InternalServerError", 500, "INTERNAL", "INTERNAL"),
    ])
  func errors(code: String, status: Int, word: String, fcm: String) throws {
    let answer = answer(result(#"{"error":"\#(code)"}"#))
    #expect(answer.status == status && (answer.headers["Retry-After"] != nil) == [429, 500, 503].contains(status))
    let body = text(answer)
    #expect(body.hasPrefix(#"{"error":{"code":\#(status),"message":""#) && body.contains(#""status":"\#(word)","details":[{"#))
    #expect(body.contains(#""@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(fcm)""#))
  }

  @Test("a group without a reached device is to be sent again; a group with one, and a topic, are not")
  func groups() {
    let none = answer(.result(Array(#"{"success":0,"failure":2,"failed_registration_ids":["a","b"]}"#.utf8)))
    #expect(none.status == 503 && none.headers["Retry-After"] != nil && text(none).contains(#""status":"UNAVAILABLE""#))
    for result in [#"{"success":1,"failure":1,"failed_registration_ids":["a"]}"#, #"{"success":0,"failure":2}"#] {
      #expect(text(answer(.result(Array(result.utf8)))) == #"{"name":"projects/p/messages/m"}"#)
    }
  }

  @Test("a topic without members is accepted, and an invalid token is not")
  func nobody() {
    let nobody = result(#"{"error":"InvalidRegistration"}"#)
    let topic = V1Answer(project: Array("p".utf8), messageID: Array("m".utf8), isDryRun: false, isAudience: true)
    #expect(text(topic.answer(nobody)) == #"{"name":"projects/p/messages/m"}"#)
    #expect(topic.answer(result(#"{"error":"MessageTooBig"}"#)).status == 400)
    #expect(answer(nobody).status == 400)
  }

  @Test("a topic of a bad form isn't called a token")
  func badTopic() throws {
    let body = Array(#"{"message":{"topic":"a b"}}"#.utf8)
    guard case .failure(let rejection) = SendRequest.parse(body) else { return #expect(Bool(false)) }
    let answer = text(V1Send.error(rejection))
    #expect(answer.contains("message.topic") && !answer.contains("token"), "\(answer)")
  }

  @Test("a bad field is named")
  func fields() {
    let missing = text(V1Send.error(Rejection(.missingRegistration, "no target")))
    #expect(missing.contains(#""fieldViolations":[{"field":"message","description":"Recipient of the message is not set."}]"#))
    let data = text(V1Send.error(Rejection(.invalidParameters, "message.data.x: expected a string")))
    #expect(data.contains(#""field":"message.data.x""#))
    #expect(!text(V1Send.error(Rejection(.messageTooBig, "5000 bytes"))).contains("details"))
  }
}
