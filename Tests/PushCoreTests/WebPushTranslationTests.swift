import Foundation
import Testing

@testable import PushCore

@Suite("Requests translated for browsers")
struct WebPushTranslationTests {
  private static func payload(_ request: SendRequest, badge: Int64? = 1) throws(Rejection) -> String {
    utf8(try webpush(request).payload(badge: badge, token: []))
  }

  private static func v1(_ members: String) throws -> SendRequest { try parsed(#"{"message":{"token":"T:1",\#(members)}}"#) }

  private func refused(_ request: SendRequest) -> Rejection? {
    do throws(Rejection) { _ = try webpush(request) } catch { return error }
    return nil
  }

  static let payloads: [(String, String, String)] = [
    (
      "a notification with a link is declarative",
      #""notification":{"title":"Portugal vs. Denmark","body":"great match!","click_action":"https://example.com/m/1","tag":"match"}"#,
      #"{"web_push":8030,"notification":{"title":"Portugal vs. Denmark","body":"great match!","tag":"match","navigate":"https://example.com/m/1"},"fcmMessageId":"m-1"}"#
    ),
    (
      "data is in the notification and beside it; badge and mutable are in both places",
      #""notification":{"title":"t","badge":"3","icon":"https://i/i.png","image":"https://i/p.png"},"data":{"a":"b","n":5,"o":{"x":[1]},"z":null},"mutable_content":true,"webpush":{"fcm_options":{"link":"https://x/y"}}"#,
      #"{"web_push":8030,"notification":{"title":"t","icon":"https://i/i.png","image":"https://i/p.png","navigate":"https://x/y","data":{"a":"b","n":"5","o":"{\"x\":[1]}"},"app_badge":3,"mutable":true},"data":{"a":"b","n":"5","o":"{\"x\":[1]}"},"app_badge":3,"mutable":true,"fcmMessageId":"m-1"}"#
    ),
    (
      "without a link the notification is for the service worker",
      #""notification":{"title":"t","body":"b","click_action":"OPEN"},"data":{"a":"b"}"#,
      #"{"notification":{"title":"t","body":"b","data":{"a":"b"}},"data":{"a":"b"},"fcmMessageId":"m-1"}"#
    ),
    (
      "without a title it is, too",
      #""notification":{"body":"b","click_action":"https://x"}"#,
      #"{"notification":{"body":"b","navigate":"https://x"},"fcmMessageId":"m-1"}"#
    ),
    ("data alone is a plain push", #""data":{"a":"b"}"#, #"{"data":{"a":"b"},"fcmMessageId":"m-1"}"#),
    (
      "so is data beside what only phones have",
      #""data":{"a":"b"},"notification":{"badge":3,"sound":"s","title_loc_key":"k","icon":"https://i","click_action":"https://x"},"mutable_content":true"#,
      #"{"data":{"a":"b"},"fcmMessageId":"m-1"}"#
    ),
    (
      "only https addresses are sent",
      #""notification":{"title":"t","icon":"http://i","image":"i.png","click_action":"http://x"}"#,
      #"{"notification":{"title":"t"},"fcmMessageId":"m-1"}"#
    ),
    (
      "the block's notification wins key by key, and a null removes a key",
      #""notification":{"title":"t","body":"b","tag":"g","icon":"https://i","click_action":"https://x","badge":3},"mutable_content":true,"webpush":{"notification":{"title":"T","tag":null,"icon":"https://I","lang":"en","dir":"ltr","badge":"https://mono","silent":true,"requireInteraction":true,"actions":[{"action":"a","title":"A","navigate":"https://a"}],"app_badge":9,"mutable":false}}"#,
      #"{"web_push":8030,"notification":{"body":"b","navigate":"https://x","title":"T","icon":"https://I","lang":"en","dir":"ltr","badge":"https://mono","silent":true,"requireInteraction":true,"actions":[{"action":"a","title":"A","navigate":"https://a"}],"app_badge":9,"mutable":false},"app_badge":9,"mutable":false,"fcmMessageId":"m-1"}"#
    ),
    (
      "the block's navigate wins over its link, and that over click_action",
      #""notification":{"title":"t","click_action":"https://c"},"webpush":{"notification":{"navigate":"https://n"},"fcm_options":{"link":"https://l"}}"#,
      #"{"web_push":8030,"notification":{"title":"t","navigate":"https://n"},"fcmMessageId":"m-1"}"#
    ),
    (
      "the block's link wins over click_action",
      #""notification":{"title":"t","click_action":"https://c"},"webpush":{"fcm_options":{"link":"https://l"}}"#,
      #"{"web_push":8030,"notification":{"title":"t","navigate":"https://l"},"fcmMessageId":"m-1"}"#
    ),
    (
      "a null for navigate asks for the service worker, a null link for nothing",
      #""notification":{"title":"t","click_action":"https://c"},"webpush":{"notification":{"navigate":null},"fcm_options":{"link":null}}"#,
      #"{"notification":{"title":"t"},"fcmMessageId":"m-1"}"#
    ),
    (
      "a navigate of the block that isn't https leaves a plain push",
      #""notification":{"title":"t"},"webpush":{"notification":{"navigate":"/m/1"}}"#,
      #"{"notification":{"title":"t","navigate":"/m/1"},"fcmMessageId":"m-1"}"#
    ),
    (
      "so does a title that isn't text",
      #""notification":{"title":"t","click_action":"https://c"},"webpush":{"notification":{"title":7}}"#,
      #"{"notification":{"navigate":"https://c","title":7},"fcmMessageId":"m-1"}"#
    ),
    (
      "the block's data wins key by key, and its notification's data stands alone",
      #""notification":{"title":"t"},"data":{"a":"1","b":"2"},"webpush":{"data":{"b":"3","c":"4"},"notification":{"data":{"own":[1]}}}"#,
      #"{"notification":{"title":"t","data":{"own":[1]}},"data":{"a":"1","b":"3","c":"4"},"fcmMessageId":"m-1"}"#
    ),
    (
      "the block alone is enough",
      #""webpush":{"notification":{"title":"t"},"fcm_options":{"link":"https://l"}}"#,
      #"{"web_push":8030,"notification":{"navigate":"https://l","title":"t"},"fcmMessageId":"m-1"}"#
    ),
    ("its data alone, too", #""webpush":{"data":{"a":"b"}}"#, #"{"data":{"a":"b"},"fcmMessageId":"m-1"}"#),
    (
      "blocks for other platforms change nothing",
      #""notification":{"title":"t"},"apns":{"payload":{"aps":{"alert":null,"badge":7}}},"android":{"notification":{"title":"A"},"data":{"x":"y"}}"#,
      #"{"notification":{"title":"t"},"fcmMessageId":"m-1"}"#
    ),
  ]

  @Test("the payload is as documented", arguments: payloads)
  func payload(name: String, members: String, expected: String) throws {
    let payload = try Self.payload(accepted(members))
    #expect(payload == expected, "\(name)")
    _ = try JSONDocument(Array(payload.utf8))
  }

  @Test("FCM v1's shape gives the same payload")
  func v1() throws {
    #expect(
      try Self.payload(
        Self.v1(
          #""notification":{"title":"t","body":"b","image":"https://i"},"data":{"a":"b"},"webpush":{"fcmOptions":{"link":"https://l"}}"#
        ))
        == #"{"web_push":8030,"notification":{"title":"t","body":"b","image":"https://i","navigate":"https://l","data":{"a":"b"}},"data":{"a":"b"},"fcmMessageId":"m-1"}"#
    )
  }

  @Test("auto is the badge of each device's counter in both places, and is left out without a counter")
  func badge() throws {
    let request = try accepted(#""notification":{"title":"t","badge":"auto"}"#)
    let shown = #"{"notification":{"title":"t","app_badge":42},"app_badge":42,"fcmMessageId":"m-1"}"#
    #expect(try Self.payload(request, badge: 42) == shown)
    #expect(try Self.payload(request, badge: nil) == #"{"notification":{"title":"t"},"fcmMessageId":"m-1"}"#)
    let own = #""notification":{"title":"t","badge":"auto"},"apns":{"payload":{"aps":{"badge":9}}}"#
    #expect(try Self.payload(accepted(own)).contains(#""app_badge":9}"#))
    #expect(try !Self.payload(accepted(own.replacing("9", with: "null"))).contains("badge"))
    var limits = RequestLimits()
    limits.countsBadges = true
    let counted = try parsed(#"{"to":"\#(apnsToken)","notification":{"title":"t"}}"#, limits: limits)
    #expect(try Self.payload(counted, badge: 42) == shown)
    let removed = #""notification":{"title":"t","badge":3},"webpush":{"notification":{"app_badge":null}}"#
    #expect(try !Self.payload(accepted(removed)).contains("app_badge"))
  }

  @Test(
    "a request with nothing for a browser is no push",
    arguments: [
      "", #""apns":{"payload":{"aps":{"alert":"a"}}}"#, #""notification":{"badge":3}"#, #""notification":{"sound":"s"}"#,
      #""notification":{"title_loc_key":"k"}"#, #""notification":{"icon":"https://i","tag":"t"}"#, #""content_available":true"#,
      #""data":{"a":null}"#, #""webpush":{}"#, #""webpush":{"notification":{"title":null},"data":{}}"#,
      #""webpush":{"headers":{"TTL":"5"},"fcm_options":{"link":"https://x"}}"#, #""android":{"data":{"a":"b"}}"#,
      #""notification":{"title":"t"},"webpush":{"notification":{"title":null}}"#,
    ])
  func nothing(members: String) throws {
    let rejection = try #require(refused(accepted(members)))
    #expect(rejection.code == .nothingForPlatform && rejection.reason.contains("for a browser"))
  }

  // MARK: Headers

  @Test(
    "urgency follows from priority and delay_while_idle; the header wins",
    arguments: [
      ("", "normal"), (#""priority":"high""#, "high"), (#""priority":"normal""#, "normal"),
      (#""delay_while_idle":true"#, "low"),
      (#""delay_while_idle":true,"priority":"high""#, "high"), (#""delay_while_idle":true,"priority":"normal""#, "low"),
      (#""priority":"high","webpush":{"headers":{"Urgency":"very-low"}}"#, "very-low"),
      (#""webpush":{"headers":{"urgency":"HIGH"}}"#, "high"),
      (#""priority":"high","android":{"priority":"normal"},"apns":{"headers":{"apns-priority":"5"}}"#, "high"),
    ])
  func urgency(members: String, expected: String) throws {
    let request = try accepted(#""data":{"a":"b"}"# + (members.isEmpty ? "" : "," + members))
    #expect(try utf8(webpush(request).urgency) == expected)
  }

  @Test("an app's default priority counts in GCM's shape only")
  func defaultPriority() throws {
    #expect(try utf8(webpush(accepted(#""data":{"a":"b"}"#), standard: .high).urgency) == "high")
    #expect(try utf8(webpush(accepted(#""data":{"a":"b"},"delay_while_idle":true"#), standard: .high).urgency) == "low")
    #expect(
      try utf8(webpush(Self.v1(#""data":{"a":"b"},"android":{"priority":"high"}"#), standard: .high).urgency) == "normal")
  }

  @Test(
    "only the collapse key or the header gives a topic, always by hash",
    arguments: [
      (#""collapse_key":"match""#, "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y"),
      (#""collapse_key":"neue-angebote""#, "P_B5a5Lp3RgyMijn0K-n2kjZvC3vHZi6"),
      (#""collapse_key":"x","webpush":{"headers":{"Topic":"match"}}"#, "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y"),
      (#""webpush":{"headers":{"TOPIC":"match"}}"#, "SUWnD6f5wT_hkxozcqxXmBQNQuunTQ3Y"), (#""collapse_key":"""#, nil),
      ("", nil),
      (#""notification":{"title":"t","tag":"match"}"#, nil),
      (#""android":{"collapse_key":"match"},"apns":{"headers":{"apns-collapse-id":"match"}}"#, nil),
    ] as [(String, String?)])
  func topic(members: String, expected: String?) throws {
    let request = try accepted(#""data":{"a":"b"}"# + (members.isEmpty ? "" : "," + members))
    #expect(try webpush(request).topic.map(utf8) == expected)
  }

  /// The request was published a minute before `testNow`.
  @Test(
    "the TTL is the rest of the lifetime; the header counts from publishing and wins",
    arguments: [
      ("", 2_419_140), (#""time_to_live":600"#, 540), (#""time_to_live":60"#, 0), (#""time_to_live":0"#, 0),
      (#""android":{"ttl":"600s"}"#, 540), (#""android":{"ttl":"0s"}"#, 0),
      (#""webpush":{"headers":{"TTL":"600"}}"#, 540), (#""webpush":{"headers":{"ttl":"0"}}"#, 0),
      (#""webpush":{"headers":{"TTL":"2419200"}}"#, 2_419_140), (#""webpush":{"headers":{"TTL":"5"}}"#, 0),
      (#""time_to_live":600,"webpush":{"headers":{"TTL":"3600"}}"#, 3540),
      (#""time_to_live":600,"webpush":{"headers":{"TTL":"120"}}"#, 60),
      (#""time_to_live":600,"webpush":{"headers":{"TTL":"0"}}"#, 0),
      (#""time_to_live":0,"webpush":{"headers":{"TTL":"600"}}"#, 540),
    ] as [(String, Int64)])
  func timeToLive(members: String, expected: Int64) throws {
    let request = try accepted(#""data":{"a":"b"}"# + (members.isEmpty ? "" : "," + members))
    let template = try webpush(request)
    #expect(template.timeToLive(at: testNow) == expected)
    #expect(template.timeToLive(at: testNow + 999) == max(expected - 1, 0))
    #expect(template.timeToLive(at: testNow + 1000) == max(expected - 1, 0))
    #expect(template.timeToLive(at: .max) == 0)
    #expect(template.timeToLive(at: testNow - 3_000_000_000) <= 2_419_200)
  }

  @Test("the header doesn't extend an expiration that the message has")
  func bounded() throws {
    let request = try accepted(#""data":{"a":"b"},"time_to_live":600,"webpush":{"headers":{"TTL":"3600"}}"#)
    var context = context(request)
    context.deadline = testNow + 10_000
    var report: LossReport?
    let template = try WebPushTemplate(request, context: context, report: &report)
    #expect(template.timeToLive(at: testNow) == 10)
  }

  @Test(
    "other headers and wrong values are refused, by their names; FCM gets them as they are",
    arguments: [
      (#"{"X-Foo":"1"}"#, .invalidParameters, "webpush.headers.X-Foo: "),
      (#"{"Authorization":"x"}"#, .invalidParameters, "webpush.headers.Authorization: "),
      (#"{"TTL":"5","":"1"}"#, .invalidParameters, #"webpush.headers."": "#),
      (#"{"a\r\nb":"1"}"#, .invalidParameters, #"webpush.headers."a\x0d\x0ab": "#),
      (#"{"TTL":"-1"}"#, .invalidTTL, "webpush.headers.TTL: "), (#"{"TTL":""}"#, .invalidTTL, "webpush.headers.TTL: "),
      (#"{"TTL":"5s"}"#, .invalidTTL, "webpush.headers.TTL: "), (#"{"ttl":"2419201"}"#, .invalidTTL, "webpush.headers.ttl: "),
      (#"{"TTL":"99999999999999999999999"}"#, .invalidTTL, "webpush.headers.TTL: "),
      (#"{"TTL":"1","ttl":"1"}"#, .invalidParameters, "webpush.headers.ttl: given twice"),
      (#"{"Urgency":"urgent"}"#, .invalidParameters, "webpush.headers.Urgency: expected one of"),
      (#"{"Urgency":"high, low"}"#, .invalidParameters, "webpush.headers.Urgency: expected one of"),
      (#"{"Topic":""}"#, .invalidParameters, "webpush.headers.Topic: must not be empty"),
    ] as [(String, PushError, String)])
  func headers(headers: String, code: PushError, reason: String) throws {
    let request = try accepted(#""data":{"a":"b"},"webpush":{"headers":\#(headers)}"#)
    let rejection = try #require(refused(request))
    #expect(rejection.code == code && rejection.reason.hasPrefix(reason), "\(rejection.reason)")
    #expect(rejection.reason.utf8.allSatisfy { 0x20...0x7E ~= $0 })
    #expect(throws: Never.self) { try fcm(request) }
  }

  // MARK: Sizes

  private func sized(_ bytes: Int, _ rest: String = "") throws -> SendRequest {
    var limits = RequestLimits()
    limits.notificationBytes = 65_536
    limits.dataBytes = 65_536
    let body = String(repeating: "b", count: bytes)
    return try parsed(#"{"to":"\#(apnsToken)","notification":{"body":"\#(body)"\#(rest)}}"#, limits: limits)
  }

  @Test("3,993 bytes fit, and one more is too big, with both sizes in the reason")
  func limit() throws {
    let frame = #"{"notification":{"body":""},"fcmMessageId":"m-1"}"#.utf8.count
    #expect(try Self.payload(sized(3993 - frame)).utf8.count == WebPushTemplate.payloadLimit)
    #expect(
      try refused(sized(3994 - frame))
        == Rejection(.messageTooBig, "a web push of 3994 bytes, at most 3993 allowed"))
    let counted = #"{"notification":{"body":"","app_badge":2147483647},"app_badge":2147483647,"fcmMessageId":"m-1"}"#.utf8.count
    let request = try sized(3993 - counted, #","badge":"auto""#)
    #expect(try Self.payload(request, badge: Int64(Int32.max)).utf8.count == 3993)
    #expect(
      try refused(sized(3994 - counted, #","badge":"auto""#))?.reason
        == "a web push of up to 3994 bytes, at most 3993 allowed")
  }

  @Test("data that fits only once is in the notification of a declarative push, and beside that of any other")
  func dataOnce() throws {
    var limits = RequestLimits()
    limits.dataBytes = 65_536
    func payload(_ notification: String, _ bytes: Int) throws -> JSONDocument {
      let data = #""data":{"k":"\#(String(repeating: "x", count: bytes))"}"#
      let request = try parsed(#"{"to":"\#(apnsToken)",\#(notification)\#(data)}"#, limits: limits)
      return try JSONDocument(Array(Self.payload(request).utf8))
    }
    func places(_ document: JSONDocument) -> [Bool] {
      let inside = document.value("notification", of: document.root).flatMap { document.value("data", of: $0) }
      return [inside != nil, document.value("data", of: document.root) != nil]
    }
    let plain = #""notification":{"title":"t"},"#
    let declarative = #""notification":{"title":"t","click_action":"https://x"},"#
    #expect(try places(payload(plain, 1800)) == [true, true] && places(payload(declarative, 1800)) == [true, true])
    #expect(try places(payload(plain, 3000)) == [false, true] && places(payload(declarative, 3000)) == [true, false])
    #expect(try places(payload("", 3000)) == [false, true])
    #expect(throws: Rejection.self) { try payload(plain, 3993) }
  }

  @Test("a page's address replaces data.ext that is too large (UP-21)")
  func page() throws {
    var limits = RequestLimits()
    limits.extensionBytes = 65_536
    func template(_ bytes: Int, page: Bool) throws(Rejection) -> WebPushTemplate {
      let data = #""data":{"k":"v","ext":"\#(String(repeating: "x", count: bytes))"}"#
      let request = try SendRequest.parse(
        Array(#"{"to":"\#(apnsToken)","notification":{"title":"t"},\#(data)}"#.utf8), limits: limits
      )
      .get()
      var context = context(request)
      if page { context.page = Array("https://pages/1".utf8) }
      var report: LossReport? = LossReport()
      let template = try WebPushTemplate(request, context: context, report: &report)
      #expect(report?.entries.contains { $0.field == "data.ext" } == template.usesPage)
      return template
    }
    let short = try template(100, page: true)
    #expect(!short.usesPage && !utf8(short.payload(token: [])).contains("pages"))
    let long = try template(5000, page: true)
    #expect(long.usesPage)
    #expect(
      utf8(long.payload(token: []))
        == #"{"notification":{"title":"t","data":{"k":"v","ext":"https://pages/1"}},"data":{"k":"v","ext":"https://pages/1"},"fcmMessageId":"m-1"}"#
    )
    #expect(throws: Rejection.self) { try template(5000, page: false) }
  }

  // MARK: Report

  private static let losses: [(String, [String])] = [
    (#""notification":{"title":"t","body":"b","tag":"g","icon":"https://i","image":"https://i"},"data":{"a":"b"}"#, []),
    (
      ##""notification":{"title":"t","subtitle":"s","sound":"s","color":"#ffffff","android_channel_id":"c","ticker":"t","title_loc_key":"k"}"##,
      [
        "F-REF notification notification.subtitle dropped: no counterpart",
        "GS-097 notification.sound dropped: no counterpart: the browser or its system plays its own",
        "GS-091 – GS-095 notification.title_loc_key dropped: no counterpart: a browser has no strings of an app",
        "GS-099 notification.color dropped: no counterpart",
        "F-REF notification notification.android_channel_id dropped: no counterpart",
        "FCM v1 AndroidNotification notification.ticker dropped: no counterpart",
      ]
    ),
    (
      #""notification":{"title":"t","badge":3,"click_action":"https://x","icon":"i","image":"http://i"}"#,
      [
        "GS-096 notification.badge converted: app_badge, a number, in notification and beside it",
        "GS-100, GS-101 notification.click_action converted: an https URL: notification.navigate",
        "GS-098 notification.icon dropped: not an https URL",
        "FCM v1 Notification notification.image dropped: not an https URL",
      ]
    ),
    (
      #""notification":{"title":"t","body":"b","badge":3,"click_action":"https://x"},"mutable_content":true,"webpush":{"notification":{"body":"B","app_badge":1,"mutable":false},"fcm_options":{"link":"https://l","analytics_label":"l"}}"#,
      [
        "FCM v1 WebpushConfig notification.body dropped: webpush.notification.body wins",
        "FCM v1 WebpushConfig notification.badge dropped: webpush.notification.app_badge wins",
        "FCM v1 WebpushConfig notification.click_action dropped: webpush.fcm_options.link wins",
        "FCM v1 WebpushConfig mutable_content dropped: webpush.notification.mutable wins",
        "FCM v1 FcmOptions webpush.fcm_options.analytics_label dropped: for FCM only: its statistics",
      ]
    ),
    (
      #""data":{"a":"1","b":2,"c":null},"webpush":{"data":{"a":"3"}},"content_available":true,"mutable_content":true"#,
      [
        "GS-010 data (nothing to show) emulated: for the page's service worker, which must show something",
        "FCM v1 WebpushConfig data.a dropped: webpush.data has a key of the same name",
        "F-REF data data.b converted: written as a string", "F-REF data data.c dropped: a null is no value",
        "GS-009 content_available dropped: no counterpart: a browser must show something for every push",
        "Apple: service extensions mutable_content dropped: nothing is shown that a service worker could change",
      ]
    ),
    (
      #""data":{"a":"1"},"notification":{"icon":"https://i","click_action":"https://x","badge":"auto"}"#,
      [
        "GS-096 notification.badge dropped: nothing is shown without a title or a body",
        "Apple: background updates notification.click_action dropped: nothing is shown to click on",
        "GS-098 notification.icon dropped: nothing is shown without a title or a body",
        "GS-010 data (nothing to show) emulated: for the page's service worker, which must show something",
      ]
    ),
    (
      #""notification":{"title":"t","badge":"auto"},"priority":"high","time_to_live":600,"collapse_key":"k","restricted_package_name":"a.b","dry_run":true,"android_v2":{"remote_notification":{}}"#,
      [
        "GS-096 notification.badge converted: app_badge, the device's counter plus one, in notification and beside it",
        "GS-051, GS-054 priority converted: Urgency: normal, high; absent: normal",
        "GS-062, GS-063 time_to_live converted: TTL less the time spent queued",
        "GS-033 collapse_key converted: Topic, a hash of it",
        "F-REF restricted_package_name restricted_package_name dropped: compared with the app, not sent",
        "F-REF dry_run dry_run emulated: validated and translated, never sent",
        "FCM v1 AndroidConfigV2 android_v2 dropped: for Android only: browsers get the fields outside it",
      ]
    ),
    (
      #""notification":{"title":"t"},"priority":"high","delay_while_idle":true,"time_to_live":600,"collapse_key":"k","webpush":{"headers":{"TTL":"5","Urgency":"low","Topic":"t"}}"#,
      [
        "FCM v1 WebpushConfig priority dropped: webpush.headers.Urgency wins",
        "FCM v1 WebpushConfig delay_while_idle dropped: webpush.headers.Urgency wins",
        "FCM v1 WebpushConfig time_to_live dropped: webpush.headers.TTL wins there; time_to_live still ends the request in the fleet",
        "GS-033 webpush.headers.Topic converted: a hash of it",
        "FCM v1 WebpushConfig collapse_key dropped: webpush.headers.Topic wins",
      ]
    ),
    (
      #""notification":{"title":"t"},"priority":"normal","delay_while_idle":true,"android":{"ttl":"60s"}"#,
      [
        "GS-051, GS-054 priority dropped: delay_while_idle makes it lower",
        "GS-072 delay_while_idle emulated: no counterpart, sent with Urgency low",
        "FCM v1 AndroidConfig android.ttl (no time_to_live) emulated: limits the whole request's life; TTL follows from it",
      ]
    ),
    (
      #""notification":{"title":"t"},"priority":"high","delay_while_idle":true"#,
      [
        "GS-051, GS-054 priority converted: Urgency: normal, high; absent: normal",
        "GS-072 delay_while_idle dropped: no counterpart, and priority says high",
      ]
    ),
    (
      #""notification":{"title":"t","badge":"auto"},"apns":{"payload":{"aps":{"badge":5}}}"#,
      ["GS-096 notification.badge converted: app_badge, as apns.payload.aps.badge has it, in notification and beside it"]
    ),
    (
      #""notification":{"title":"t","badge":"auto"},"apns":{"payload":{"aps":{"badge":null}}}"#,
      ["GS-096 notification.badge dropped: apns.payload.aps.badge takes it away, so nothing is counted"]
    ),
  ]

  @Test("the report says what happened, all of it, and nothing else", arguments: losses)
  func report(members: String, entries: [String]) throws {
    #expect(try PushCoreTests.losses(accepted(members), .webpush) == entries)
  }

  // MARK: Hostile input

  @Test("a request with thousands of keys costs no more than reading it")
  func wide() throws {
    let members = (0..<3000).map { #""k\#($0)":"v""# }.joined(separator: ",")
    var limits = RequestLimits()
    limits.dataBytes = 1 << 20
    for block in [#""data":{\#(members)}"#, #""webpush":{"data":{\#(members)}}"#, #""webpush":{"notification":{\#(members)}}"#]
    {
      let request = try parsed(#"{"to":"x",\#(block)}"#, limits: limits)
      #expect(refused(request)?.code == .messageTooBig)
    }
    let request = try parsed(#"{"to":"x","data":{"a":"b"},"webpush":{"headers":{\#(members)}}}"#, limits: limits)
    #expect(refused(request)?.code == .invalidParameters)
  }

  @Test("a payload is always valid JSON with the request's content", arguments: 0..<300)
  func roundTrip(seed: UInt64) throws {
    var maker = TranslationPropertyTests.Maker(random: SplitMix(state: seed))
    var source = maker.request()
    var own: [String: Any] = [:]
    if maker.one(in: 2) {
      own["notification"] = ["title": maker.text(), "tag": maker.one(in: 2) ? NSNull() : maker.text() as Any]
    }
    if maker.one(in: 2) { own["data"] = ["k0": maker.text(), "w": maker.text()] }
    if maker.one(in: 2) { own["fcm_options"] = ["link": "https://example.com/" + "a"] }
    source["webpush"] = own
    let request = try SendRequest.parse(Array(try JSONSerialization.data(withJSONObject: source))).get()
    let template: WebPushTemplate
    do throws(Rejection) { template = try webpush(request) } catch {
      #expect(error.code == .nothingForPlatform && (source["data"] as? [String: Any])?.isEmpty ?? true)
      return
    }
    let payload = template.payload(token: [])
    #expect(payload.count <= WebPushTemplate.payloadLimit)
    _ = try JSONDocument(payload)
    let read = try #require(try JSONSerialization.jsonObject(with: Data(payload)) as? [String: Any])
    #expect(read["fcmMessageId"] as? String == "m-1")
    let block = own["data"] as? [String: String] ?? [:]
    let data = read["data"] as? [String: String] ?? [:]
    for (key, value) in block { #expect(data[key] == value) }
    for (key, value) in source["data"] as? [String: Any] ?? [:] where block[key] == nil {
      #expect(data[key] != nil)
      if let text = value as? String { #expect(data[key] == text) }
    }
    let shown = read["notification"] as? [String: Any]
    if let title = (own["notification"] as? [String: Any])?["title"] as? String { #expect(shown?["title"] as? String == title) }
    if read["web_push"] as? Int == 8030 {
      #expect((shown?["title"] as? String)?.isEmpty == false && (shown?["navigate"] as? String)?.hasPrefix("https://") == true)
    }
    #expect(template.topic.map { $0.count == 32 } ?? true)
  }
}
