import PushCore
import StatusHTTP
import Testing

@testable import Gateway

private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }
private func text(_ answer: HTTPAnswer) -> String { String(decoding: answer.body, as: UTF8.self) }

@Suite("GCM's form of requests and answers")
struct GCMTests {
  private func line(_ body: String, isGCM: Bool = false) -> String? {
    do { return GCMCheck(document: try JSONDocument(bytes(body)), isGCM: isGCM).line } catch {
      return GCMCheck.line(error, bytes(body))
    }
  }

  @Test(
    "refuses unusable requests in Google's words",
    arguments: [
      ("not json", "JSON_PARSING_ERROR: Unexpected character (n) at position 0."),
      (#"{"to":"a","data":{"x":"y"}"#, "JSON_PARSING_ERROR: Unexpected token END OF FILE at position 26."),
      ("", "JSON_PARSING_ERROR: Unexpected token END OF FILE at position 0."),
      ("[1]", "JSON_PARSING_ERROR: Unexpected character ([) at position 0."),
      (#"{"to":"a","data":"x"}"#, #"Field "data" must be a JSON array: x"#),
      (#"{"to":5}"#, #"Field "to" must be a JSON string: 5"#),
      (#"{"registration_ids":"x"}"#, #""registration_ids" field is not a JSON array"#),
      ("{}", "to"), (#"{"to":null}"#, "to"), (#"{"registration_ids":[]}"#, #""registration_ids" field cannot be empty"#),
      (#"{"registration_ids":["a"],"to":"b"}"#, #"Must use either "registration_ids" field or "to", not both"#),
      (#"{"to":"a","data":{"from":"x"}}"#, #""data" key "from" is a reserved keyword"#),
      (#"{"to":"a","data":{"gcm.x":"x"}}"#, #""data" key "gcm.x" is a reserved keyword"#),
      (#"{"to":"a","time_to_live":2419201}"#, #"Invalid value (2419201) for "time_to_live": must be between 0 and 2419200"#),
      (#"{"to":"a","time_to_live":"soon"}"#, #"Invalid value (soon) for "time_to_live": must be between 0 and 2419200"#),
      (#"{"to":"a","dry_run":{}}"#, #"Field "dry_run" must be a JSON boolean: {}"#),
    ])
  func refusals(body: String, expected: String) { #expect(line(body) == expected) }

  @Test("requires registration_ids at GCM's path and to at FCM's; a thousand targets are accepted, one more is not")
  func targets() {
    #expect(line("{}", isGCM: true) == #"Missing "registration_ids" field"#)
    let list = { (count: Int) in
      #"{"registration_ids":["# + Array(repeating: #""a""#, count: count).joined(separator: ",") + "]}"
    }
    #expect(line(list(1_000)) == nil)
    #expect(line(list(1_001)) == "Number of messages on bulk (1001) exceeds maximum allowed (1000)")
  }

  @Test(
    "accepts valid requests",
    arguments: [
      #"{"to":"a"}"#, #"{"condition":"'a' in topics"}"#, #"{"notification_key":"k","data":{}}"#,
      #"{"to":"a","time_to_live":"600","dry_run":"true","data":null}"#,
    ])
  func passes(body: String) { #expect(line(body) == nil) }

  @Test("makes JSON of a form; its first registration_id counts, and other names are left out")
  func form() throws {
    let form = try #require(
      try GCMForm(
        bytes(
          "registration_id=a%3Ab&data.x=1+2&data.y=%E9%9B%91&collapse_key=k&delay_while_idle=1&dry_run=False&time_to_live=600&z=1"
        )))
    #expect(
      String(decoding: form.json, as: UTF8.self)
        == #"{"to":"a:b","collapse_key":"k","delay_while_idle":true,"dry_run":false,"time_to_live":"600","data":{"x":"1 2","y":"雑"}}"#
    )
    for body in ["", "registration_id=", "data.x=1"] { #expect(try GCMForm(bytes(body)) == nil) }
    for body in ["registration_id=%", "registration_id=%4", "registration_id=%zz"] {
      #expect(throws: Fault.badRequest("the form can't be read")) { try GCMForm(bytes(body)) }
    }
  }

  private func answer(_ shape: GCMAnswer.Shape, _ outcome: SendService.Outcome) -> HTTPAnswer {
    GCMAnswer(shape: shape, messageID: bytes("m")).answer(outcome)
  }

  private static let one =
    #"{"message_id":"m","app":"a","success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"p"}]}"#

  @Test("answers for tokens with integer counts and text ids, in the order of the request")
  func multicast() throws {
    let result = #"{"success":1,"failure":1,"results":[{"message_id":"p","registration_id":"n"},{"error":"NotRegistered"}]}"#
    let document = try JSONDocument(answer(.multicast(2), .result(bytes(result))).body)
    let node = try #require(document.value("multicast_id", of: document.root))
    let id = try #require(document.integer(node))
    #expect(id > 0)
    #expect(
      String(decoding: document.bytes, as: UTF8.self)
        == #"{"multicast_id":\#(id),"success":1,"failure":1,"canonical_ids":1,"results":[{"message_id":"p","registration_id":"n"},{"error":"NotRegistered"}]}"#
    )
    let accepted = text(answer(.multicast(2), .accepted))
    #expect(
      accepted.hasSuffix(#""success":2,"failure":0,"canonical_ids":0,"results":[{"message_id":"m"},{"message_id":"m"}]}"#))
    let refused = text(
      answer(.multicast(2), .result(bytes(#"{"success":0,"failure":1,"results":[{"error":"MessageTooBig"}]}"#))))
    #expect(
      refused.hasSuffix(
        #""success":0,"failure":2,"canonical_ids":0,"results":[{"error":"MessageTooBig"},{"error":"MessageTooBig"}]}"#))
  }

  @Test("answers for a topic with a numeric id, for a group with counts, and with 503 without JSON if nobody was reached")
  func audiences() throws {
    let topic = try JSONDocument(answer(.topic, .result(bytes(#"{"message_id":"m","success":3,"failure":1}"#))).body)
    let node = try #require(topic.value("message_id", of: topic.root))
    #expect(try #require(topic.integer(node)) > 0)
    #expect(
      text(answer(.topic, .result(bytes(#"{"success":0,"failure":1,"results":[{"error":"MessageTooBig"}]}"#))))
        == #"{"error":"MessageTooBig"}"#)
    // For a topic without members there is no reason; for an unknown APNs channel there is one.
    let nobody = SendService.Outcome.result(bytes(#"{"success":0,"failure":1,"results":[{"error":"InvalidRegistration"}]}"#))
    #expect(text(answer(.audience, nobody)) == text(answer(.audience, .accepted)))
    #expect(text(answer(.topic, nobody)) == #"{"error":"InvalidRegistration"}"#)
    for (text, shape) in [("/topics/t", GCMAnswer.Shape.audience), ("/all", .audience), ("fcm:/topics/t", .topic)] {
      #expect(GCMAnswer.Shape(.one(try Target.classify(bytes(text)).get())) == shape)
    }
    #expect(answer(.topic, .accepted).headers["X-Push-Message-Id"] == "m")
    let part = #"{"message_id":"m","success":1,"failure":1,"failed_registration_ids":["r"]}"#
    #expect(text(answer(.group, .result(bytes(part)))) == #"{"success":1,"failure":1,"failed_registration_ids":["r"]}"#)
    let none = answer(.group, .result(bytes(#"{"message_id":"m","success":0,"failure":2}"#)))
    #expect(none.status == 503 && none.headers["Retry-After"] == "5" && none.body.first != UInt8(ascii: "{"))
  }

  @Test(
    "answers a request that is refused before its targets are read like one with targets",
    arguments: [
      (#"{"to":"/topics/x"}"#, GCMAnswer.Shape.topic), (#"{"to":"/all"}"#, .topic), (#"{"condition":"'a' in topics"}"#, .topic),
      (#"{"to":"/all/x"}"#, .multicast(1)), (#"{"to":""}"#, .multicast(1)), (#"{"registration_ids":["a","b"]}"#, .multicast(2)),
    ])
  func unread(body: String, shape: GCMAnswer.Shape) throws {
    #expect(GCMAnswer.Shape(unread: try JSONDocument(bytes(body))) == shape)
  }

  @Test("answers a form in lines with one equals sign each, never with Unavailable")
  func lines() {
    #expect(text(answer(.form, .result(bytes(Self.one)))) == "id=p\n")
    let canonical = #"{"success":1,"failure":0,"results":[{"message_id":"cA==","registration_id":"n"}]}"#
    #expect(text(answer(.form, .result(bytes(canonical)))) == "id=cA\nregistration_id=n\n")
    #expect(
      text(answer(.form, .result(bytes(#"{"success":0,"failure":1,"results":[{"error":"NotRegistered"}]}"#))))
        == "Error=NotRegistered\n")
    #expect(answer(.form, .result(bytes(#"{"success":0,"failure":1,"results":[{"error":"Unavailable"}]}"#))).status == 503)
  }

  @Test("answers 503 with whole seconds if the broker didn't accept the request; nothing else asks for a repetition")
  func unavailable() {
    for outcome in [SendService.Outcome.refused("full"), .unknown("gone")] {
      let refused = answer(.multicast(1), outcome)
      #expect(refused.status == 503 && refused.headers["Retry-After"].flatMap(Int.init) != nil)
    }
    #expect(answer(.multicast(1), .accepted).headers["Retry-After"] == nil)
    for fault in [Fault.noKey, .wrongKey, .foreignApp, .badTarget, .wrongMethod("GET", allowed: "POST"), .noSuchPlace] {
      for errorFormat in [ErrorFormat.legacy, .instance, .google, .own] {
        #expect(errorFormat.answer(fault).headers["Retry-After"] == nil)
      }
    }
  }

  @Test("refuses keys and methods as Google's servlets did")
  func pages() {
    #expect(
      text(ErrorFormat.legacy.answer(.wrongKey))
        == "<HTML>\n<HEAD>\n<TITLE>INVALID_KEY</TITLE>\n</HEAD>\n<BODY BGCOLOR=\"#FFFFFF\" TEXT=\"#000000\">\n<H1>INVALID_KEY</H1>\n<H2>Error 401</H2>\n</BODY>\n</HTML>\n"
    )
    let method = ErrorFormat.legacy.answer(.wrongMethod("GET", allowed: "POST"))
    #expect(method.status == 405 && text(method).contains("HTTP method GET is not supported by this URL"))
    #expect(method.headers["Allow"] == "POST")
  }
}
