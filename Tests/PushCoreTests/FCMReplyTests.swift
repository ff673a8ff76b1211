import Testing

@testable import PushCore

@Suite struct FCMReplyTests {
  static func body(_ code: Int, _ status: String?, _ errorCode: String?, _ message: String = "", details: String = "") -> String
  {
    var parts: [String] = []
    if let errorCode {
      parts.append(#"{"@type":"type.googleapis.com/google.firebase.fcm.v1.FcmError","errorCode":"\#(errorCode)"}"#)
    }
    if !details.isEmpty { parts.append(details) }
    let word = status.map { #","status":"\#($0)""# } ?? ""
    return #"{"error":{"code":\#(code),"message":"\#(message)"\#(word),"details":[\#(parts.joined(separator: ","))]}}"#
  }

  static func answer(_ status: Int, _ body: String) -> ReplyMeaning {
    FCMReply.interpret(status: status, body: Array(body.utf8))
  }

  @Test(
    "every error of Firebase's table has its reaction",
    arguments: [
      (400, "INVALID_ARGUMENT", "INVALID_ARGUMENT", .drop(.invalidParameters), .keep),
      (401, "THIRD_PARTY_AUTH_ERROR", "UNAUTHENTICATED", .drop(.invalidAPNsCredential), .keep),
      (401, "APNS_AUTH_ERROR", "UNAUTHENTICATED", .drop(.invalidAPNsCredential), .keep),
      (401, nil, "UNAUTHENTICATED", .retry(.refreshedToken, .unavailable), .refreshToken),
      (403, "SENDER_ID_MISMATCH", "PERMISSION_DENIED", .suspect(.mismatchSenderID), .keep),
      (403, nil, "PERMISSION_DENIED", .credential(.internalServerError), .stopCredential),
      (404, "UNREGISTERED", "NOT_FOUND", .gone(.notRegistered), .keep),
      (404, nil, "NOT_FOUND", .credential(.internalServerError), .stopProject),
      (429, "QUOTA_EXCEEDED", "RESOURCE_EXHAUSTED", .retry(.quota, .unavailable), .keep),
      (429, nil, "RESOURCE_EXHAUSTED", .retry(.quota, .unavailable), .keep),
      (500, "INTERNAL", "INTERNAL", .retry(.fcm, .internalServerError), .keep),
      (503, "UNAVAILABLE", "UNAVAILABLE", .retry(.fcm, .unavailable), .keep),
      (404, "UNSPECIFIED_ERROR", "NOT_FOUND", .credential(.internalServerError), .stopProject),
      (500, "UNSPECIFIED_ERROR", nil, .retry(.fcm, .unavailable), .keep),
    ] as [(Int, String?, String?, Reaction, ConnectionReaction)])
  func errors(status: Int, errorCode: String?, word: String?, reaction: Reaction, connection: ConnectionReaction) {
    let meaning = Self.answer(status, Self.body(status, word, errorCode))
    #expect(meaning.reaction == reaction)
    #expect(meaning.connection == connection)
  }

  @Test("each row of both tables is reached, and a row without details never judges a token")
  func everyRow() {
    for row in FCMReply.errorCodeRows {
      #expect(Self.answer(row.status, Self.body(row.status, "ANYTHING", row.reason)).reaction == row.reaction)
    }
    for row in FCMReply.statusWordRows {
      let meaning = Self.answer(row.status, Self.body(row.status, row.reason, nil))
      #expect(meaning.reaction == row.reaction)
      #expect(!meaning.reaction.isFeedback)
    }
  }

  @Test(
    "INVALID_ARGUMENT makes the token suspect only when it names the token",
    arguments: [
      ("The registration token is not a valid FCM registration token", true, "", .suspect(.invalidRegistration)),
      ("The registration token is not a valid FCM registration token", false, "", .drop(.invalidParameters)),
      ("Invalid value at 'message.data[0].value'", true, "", .drop(.invalidParameters)),
      ("Invalid", false, "message.token", .suspect(.invalidRegistration)),
      ("Invalid", false, "message.fid", .suspect(.invalidRegistration)),
      ("Invalid", true, "fid", .suspect(.invalidRegistration)),
      ("Invalid", false, "message.data.fid", .drop(.invalidParameters)),
      ("Invalid", false, "message.topic", .drop(.invalidParameters)),
      ("Invalid", false, "message.android.ttl", .drop(.invalidParameters)),
      ("Invalid", false, "message.data.token", .drop(.invalidParameters)),
      ("Android message is too big", true, "", .drop(.messageTooBig)),
    ] as [(String, Bool, String, Reaction)])
  func invalidArgument(message: String, hasFcmError: Bool, field: String, reaction: Reaction) {
    let violation =
      field.isEmpty
      ? ""
      : #"{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"\#(field)","description":"x"}]}"#
    let body = Self.body(400, "INVALID_ARGUMENT", hasFcmError ? "INVALID_ARGUMENT" : nil, message, details: violation)
    #expect(Self.answer(400, body).reaction == reaction)
  }

  @Test("a quota failure of the device slows that device only")
  func deviceQuota() {
    let device = #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"subject":"device:abc"}]}"#
    let project = #"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"subject":"project:1"}]}"#
    #expect(
      Self.answer(429, Self.body(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", details: device)).reaction
        == .retry(.perDevice, .deviceMessageRateExceeded))
    #expect(
      Self.answer(429, Self.body(429, "RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED", details: project)).reaction
        == .retry(.quota, .unavailable))
  }

  @Test(
    "an unreadable answer is judged by its status, and never against the token",
    arguments: [
      (400, .drop(.invalidParameters)), (401, .retry(.refreshedToken, .unavailable)), (403, .drop(.internalServerError)),
      (404, .drop(.internalServerError)), (408, .retry(.connection, .unavailable)), (410, .drop(.invalidParameters)),
      (413, .drop(.messageTooBig)), (429, .retry(.quota, .unavailable)), (500, .retry(.fcm, .unavailable)),
      (502, .retry(.fcm, .unavailable)), (302, .drop(.internalServerError)), (Int.min, .drop(.internalServerError)),
    ] as [(Int, Reaction)])
  func byStatus(status: Int, reaction: Reaction) {
    for body in APNsReplyTests.unreadable + [
      #"{"error":7}"#, #"{"error":{"status":7,"details":{}}}"#, #"{"error":{"details":[1,null,{}]}}"#,
    ] {
      let meaning = Self.answer(status, body)
      #expect(meaning.reaction == reaction, "\(body.prefix(40))")
      #expect(!meaning.reaction.isFeedback)
    }
  }

  @Test("an errorCode is valid only with its own class of status")
  func foreignClass() {
    #expect(Self.answer(503, Self.body(503, "UNAVAILABLE", "UNREGISTERED")).reaction == .retry(.fcm, .unavailable))
  }

  @Test("a success names the message")
  func messageName() {
    let body = Array(#"{"name":"projects/p/messages/0:1%2"}"#.utf8)
    #expect(FCMReply.interpret(status: 200, body: body) == .delivered(200))
    #expect(FCMReply.messageName(body) == Array("projects/p/messages/0:1%2".utf8))
    #expect(FCMReply.messageName([]) == nil)
    for (text, name) in [
      ("{\n  \"name\": \"projects/p/messages/1\"\n}\n", "projects/p/messages/1"), (#"{"name":"a\"b"}"#, "a\"b"),
      (#"{"x":1,"name":"n"}"#, "n"), (#"{"name":"n","x":1}"#, "n"),
    ] {
      #expect(FCMReply.messageName(Array(text.utf8)) == Array(name.utf8))
    }
    #expect(FCMReply.messageName(Array(#"{"name":"n"} x"#.utf8)) == nil)
    #expect(FCMReply.messageName(Array(#"{"name":5}"#.utf8)) == nil)
  }
}
