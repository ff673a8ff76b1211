import Testing

@testable import PushCore

@Suite("Answers of push services")
struct WebPushReplyTests {
  static func answer(
    _ status: Int, _ body: String = "", retryAfter: String? = nil, wnsError: String? = nil, wnsStatus: String? = nil
  ) -> ReplyMeaning {
    func bytes(_ text: String?) -> [UInt8]? { text.map { Array($0.utf8) } }
    return WebPushReply.interpret(
      status: status, body: Array(body.utf8),
      headers: .init(retryAfter: bytes(retryAfter), wnsError: bytes(wnsError), wnsStatus: bytes(wnsStatus)),
      now: 1_795_209_720_000)
  }

  static let gone =
    #"{"code":410,"errno":103,"error":"Gone","message":"Expired URL endpoint","more_info":"http://autopush.readthedocs.io"}"#

  @Test(
    "each vendor's answer has its reaction, and the vendor's word is the reason",
    arguments: [
      (400, #"{"reason":"BadTtl"}"#, .drop(.invalidParameters), "BadTtl"),
      (400, #"{"reason":"BadWebPushTopic"}"#, .drop(.invalidParameters), "BadWebPushTopic"),
      (400, #"{"reason":"VapidPkHashMismatch"}"#, .suspect(.mismatchSenderID), "VapidPkHashMismatch"),
      (403, #"{"reason":"VapidPkHashMismatch"}"#, .suspect(.mismatchSenderID), "VapidPkHashMismatch"),
      (403, #"{"reason":"BadJwtToken"}"#, .retry(.refreshedToken, .invalidAPNsCredential), "BadJwtToken"),
      (413, #"{"reason":"PayloadTooLarge"}"#, .drop(.messageTooBig), "PayloadTooLarge"),
      (410, #"{"reason":"Unregistered"}"#, .gone(.notRegistered), "Unregistered"),
      (
        400,
        "<HTML>\n<HEAD>\n<TITLE>UnauthorizedRegistration</TITLE>\n</HEAD>\n<BODY><H1>UnauthorizedRegistration</H1></BODY></HTML>",
        .suspect(.mismatchSenderID), "UnauthorizedRegistration"
      ),
      (
        403,
        "the VAPID credentials in the authorization header do not correspond to the credentials used to create the subscriptions.\n",
        .suspect(.mismatchSenderID), "do not correspond to the credentials used to create the subscription"
      ),
      (410, "<html><title>NotRegistered</title></html>", .gone(.notRegistered), "NotRegistered"),
      (
        410, "push subscription has unsubscribed or expired.\n", .gone(.notRegistered),
        "push subscription has unsubscribed or expired."
      ),
      (410, gone, .gone(.notRegistered), "errno 103"),
      (404, #"{"code":404,"errno":102,"error":"Not Found"}"#, .gone(.notRegistered), "errno 102"),
      (401, #"{"code":401,"errno":109,"error":"Unauthorized"}"#, .suspect(.mismatchSenderID), "errno 109"),
      (503, #"{"code":503,"errno":201,"error":"x"}"#, .retry(.fcm, .unavailable), "errno 201"),
      (503, #"{"code":503,"errno":202,"error":"x"}"#, .retry(.connection, .unavailable), "errno 202"),
      (429, #"{"code":429,"errno":201,"error":"x"}"#, .retry(.perDevice, .deviceMessageRateExceeded), "errno 201"),
      (502, #"{"code":502,"errno":903,"error":"x"}"#, .retry(.fcm, .unavailable), "errno 903"),
      (
        507, #"{"code":50701,"http":507,"error":"cannot publish to UnifiedPush topic without previously active subscriber"}"#,
        .retry(.perDevice, .unavailable), "cannot publish to UnifiedPush topic without previously active subscriber"
      ),
      (404, "", .gone(.notRegistered), "HTTP 404"), (406, "", .retry(.perDevice, .deviceMessageRateExceeded), "HTTP 406"),
    ] as [(Int, String, Reaction, String)])
  func vendors(status: Int, body: String, reaction: Reaction, reason: String) {
    let meaning = Self.answer(status, body)
    #expect(meaning.reaction == reaction && meaning.reason == reason && meaning.status == status)
    #expect(meaning.invalidSince == nil)
  }

  @Test("each row of the tables is reached by its word, and has an explanation")
  func everyRow() {
    let rows = WebPushReply.rows + WebPushReply.textRows
    #expect(Set(rows.map(\.reason)).count == rows.count)
    for row in rows {
      let isNumber = row.reason.hasPrefix("errno ")
      let body = isNumber ? #"{"errno":\#(row.reason.dropFirst(6))}"# : #"{"reason":"\#(row.reason)"}"#
      let meaning = Self.answer(row.status, body)
      #expect(meaning.reaction == row.reaction && meaning.connection == row.connection && meaning.alarm == row.alarm)
      #expect(meaning.reason == row.reason && !row.words.isEmpty && WebPushReply.words(for: meaning) == row.words)
      #expect(ProviderRemedy.isKnown(meaning, .webpush))
      // The pool raises the alarm for a token that is refused again.
      if row.connection == .refreshToken { #expect(!row.alarm) }
      if case .credential = row.reaction { Issue.record("one push's answer stops a credential") }
    }
  }

  @Test("a refused token is made anew once, before anyone is blamed")
  func refresh() {
    for meaning in [Self.answer(401), Self.answer(401, #"{"errno":109}"#), Self.answer(403, #"{"reason":"BadJwtToken"}"#)] {
      #expect(meaning.connection == .refreshToken)
      #expect(ProviderRemedy.words(for: meaning, .webpush).contains("clock"))
    }
    #expect(Self.answer(403, #"{"reason":"VapidPkHashMismatch"}"#).connection == .keep)
    let mismatch = Self.answer(400, #"{"reason":"VapidPkHashMismatch"}"#)
    #expect(ProviderRemedy.words(for: mismatch, .webpush).contains("`key`"))
    #expect(ProviderRemedy.of("BadJwtToken", isCredentialRefused: true).words.contains("`subject`"))
  }

  @Test("any 2xx is a success, unless WNS says that it throttles the channel")
  func success() {
    for status in [200, 201, 202, 204] {
      #expect(
        Self.answer(status, #"{"reason":"BadJwtToken"}"#) == ReplyMeaning(reaction: .delivered, reason: "", status: status))
      #expect(Self.answer(status, wnsStatus: "received").reaction == .delivered)
      #expect(Self.answer(status, wnsStatus: "dropped").reaction == .delivered)
      let throttled = Self.answer(status, retryAfter: "7", wnsStatus: "ChannelThrottled")
      #expect(throttled.reaction == .retry(.perDevice, .deviceMessageRateExceeded) && throttled.retryAfter == 7)
    }
  }

  @Test("the reason of WNS is in its headers")
  func headers() {
    let throttled = Self.answer(406, retryAfter: "120", wnsStatus: "channelthrottled")
    #expect(throttled.reason == "channelthrottled" && throttled.retryAfter == 120)
    #expect(throttled.reaction == .retry(.perDevice, .deviceMessageRateExceeded))
    let broken = Self.answer(
      400, wnsError: "The cloud service header is invalid\r\nX: https://wns2-par02p.notify.windows.com/w/?token=s")
    #expect(broken.reason == "The cloud service header is invalid X:" && broken.reaction == .drop(.invalidParameters))
    #expect(Self.answer(410, wnsStatus: "dropped").reason == "dropped")
  }

  @Test(
    "an unreadable answer is judged by its status",
    arguments: [
      (400, .drop(.invalidParameters)), (401, .suspect(.mismatchSenderID)), (403, .suspect(.mismatchSenderID)),
      (404, .gone(.notRegistered)), (405, .drop(.internalServerError)),
      (406, .retry(.perDevice, .deviceMessageRateExceeded)), (408, .retry(.connection, .unavailable)),
      (410, .gone(.notRegistered)), (413, .drop(.messageTooBig)), (418, .drop(.invalidParameters)),
      (429, .retry(.perDevice, .deviceMessageRateExceeded)), (500, .retry(.fcm, .unavailable)),
      (502, .retry(.fcm, .unavailable)), (503, .retry(.fcm, .unavailable)), (507, .retry(.perDevice, .unavailable)),
      (301, .drop(.internalServerError)), (307, .drop(.internalServerError)), (100, .drop(.internalServerError)),
      (-1, .drop(.internalServerError)), (Int.max, .drop(.internalServerError)), (Int.min, .drop(.internalServerError)),
    ] as [(Int, Reaction)])
  func byStatus(status: Int, reaction: Reaction) {
    for body in APNsReplyTests.unreadable + [
      "<title>", "<", "<TITLE></TITLE>", #"{"errno":"103"}"#, #"{"errno":1e99}"#, #"{"error":{}}"#, "\u{0}\u{1}", "  \n ",
    ] {
      let meaning = Self.answer(status, body)
      #expect(meaning.reaction == reaction, "\(body.prefix(40))")
      #expect(!meaning.reason.isEmpty)
      if 300...399 ~= status { #expect(meaning.alarm) }
    }
  }

  @Test("a word is valid only with its own class of status")
  func foreignClass() {
    #expect(Self.answer(500, #"{"reason":"VapidPkHashMismatch"}"#).reaction == .retry(.fcm, .unavailable))
    #expect(Self.answer(503, #"{"errno":103}"#).reaction == .retry(.fcm, .unavailable))
    #expect(
      Self.answer(502, "credentials do not correspond to the credentials used to create the subscription").reaction
        == .retry(.fcm, .unavailable))
  }

  @Test(
    "an endpoint never gets into a reason",
    arguments: [
      "unknown subscription https://push.example.net/SECRET", "https://push.example.net/SECRET", "url=HTTPS://h/SECRET",
      #"{"error":"no such topic https:\/\/h\/SECRET"}"#, #"{"reason":"https://h/SECRET"}"#,
      #"{"message":"POST /wpush/v2/SECRET"}"#,
      "<title>404 for //h/SECRET</title>", "no https%3A%2F%2Fh%2FSECRET here", #"a\\h\SECRET"#,
      "gone: SECRET" + String(repeating: "x", count: 60),
    ])
  func secret(body: String) {
    for status in [400, 404, 410, 500] {
      for meaning in [Self.answer(status, body), Self.answer(status, wnsError: body)] {
        #expect(!meaning.reason.contains("SECRET") && !meaning.reason.contains("://"), "\(meaning.reason)")
        #expect(!meaning.reason.isEmpty)
      }
    }
  }

  @Test("no part of the endpoint's path is in the reason")
  func path() {
    let path = Array("/upAbC123?up=1&token=SeCretToken%3AAbC123def".utf8)
    let bodies = [
      #"{"error":"topic upAbC123 unknown"}"#, "no topic 'upAbC123', token=SeCretToken!", "<title>upAbC123</title>",
      "unknown SeCretToken:AbC123def", "unknown AbC123def",
    ]
    for body in bodies {
      for headers in [WebPushReply.Headers(), .init(wnsError: Array(body.utf8))] {
        let reason = WebPushReply.interpret(status: 400, body: Array(body.utf8), path: path, headers: headers).reason
        #expect(!reason.contains("AbC123") && !reason.contains("SeCret"), "\(reason)")
      }
    }
    #expect(
      WebPushReply.interpret(status: 400, body: Array("topic upAbC123 unknown".utf8), path: path).reason == "topic unknown")
  }

  @Test(
    "only the first 1,024 characters of a text are read, and a word that ends beyond them is left out", .timeLimit(.minutes(1)))
  func longText() {
    let parts = (0..<291).map { String(100_000 + $0) }
    let path = Array(("/" + parts.joined(separator: "/")).utf8)
    func reason(_ body: String) -> String { WebPushReply.interpret(status: 400, body: Array(body.utf8), path: path).reason }
    #expect(reason(String(repeating: "a ", count: 8192)) == String(repeating: "a ", count: 100))
    let omitted = String(repeating: parts[0] + " ", count: 145)
    #expect(reason("word " + omitted + "abcd") == "word abcd" && reason("word " + omitted + "abcde") == "word")
    #expect(reason("word " + omitted + "ab 100001") == "word ab")
    #expect(reason("word " + omitted + "       ab") == "word")
    #expect(reason(omitted + omitted + "word") == "HTTP 400")
  }

  @Test("a long or hostile word is cut and cleaned")
  func cleaned() {
    #expect(Self.answer(400, #"{"reason":"a\u001b[31m\r\nb"}"#).reason == "a [31m b")
    #expect(Self.answer(400, "é").reason == "??")
    #expect(Self.answer(400, String(repeating: "word ", count: 400)).reason.utf8.count == 200)
    #expect(Self.answer(400, "first line\nsecond").reason == "first line")
  }

  @Test("no answer can trap or exceed the limits", arguments: 0..<200)
  func noise(seed: UInt64) {
    var random = SplitMix(state: seed)
    for template in [Self.gone, "<HTML><TITLE>UnauthorizedRegistration</TITLE></HTML>", "do not correspond to the credentials"]
    {
      var body = Array(template.utf8)
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        body[Int.random(in: body.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      let field = (0..<Int.random(in: 0...30, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      let meaning = WebPushReply.interpret(
        status: 410, body: body, headers: .init(retryAfter: field, wnsError: field), now: .max)
      #expect(meaning.reaction == .gone(.notRegistered), "\(body)")
      #expect(meaning.reason.utf8.count <= 200 && meaning.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 }, "\(body)")
      #expect(meaning.retryAfter.map(RetryAfter.range.contains) ?? true, "\(field)")
    }
  }
}
