import Testing

@testable import PushCore

/// The requests printed in the concept documents, on both platforms, byte for byte.
@Suite struct FixtureTranslationTests {
  /// Published a minute ago: expires four weeks after that.
  static let fourWeeks = (testNow - 60_000) / 1000 + 2_419_200

  static let onAPNs: [(String, String, String)] = [
    (
      "seed000-data.json", "com.example.app background 5 \(fourWeeks) -",
      #"{"aps":{"content-available":1},"Nick":"Mario","body":"great match!","Room":"PortugalVSDenmark"}"#
    ),
    (
      "seed000-hybrid.json", "com.example.app alert 5 \(fourWeeks) -",
      #"{"aps":{"alert":{"title":"Portugal vs. Denmark","body":"great match!"}},"Nick":"Mario","Room":"PortugalVSDenmark"}"#
    ),
    (
      "seed000-notification.json", "com.example.app alert 5 \(fourWeeks) -",
      #"{"aps":{"alert":{"title":"Portugal vs. Denmark","body":"great match!"}}}"#
    ),
    (
      "seed000-priority.json", "com.example.app alert 5 \(fourWeeks) -",
      #"{"aps":{"alert":{"title":"NewsMagazine.com","body":"This week’s edition is now available."}},"volume":"3.21.15","contents":"http://www.news-magazine.com/world-week/21659772"}"#
    ),
    // A lifetime of three seconds from a minute ago is over: the worker doesn't send it. If it did, the push would have a
    // single attempt.
    (
      "seed000-ttl.json", "com.example.app background 5 0 demo",
      #"{"aps":{"content-available":1},"key1":"value1","key2":"value2"}"#
    ),
    (
      "seed004-both-systems.json", "com.example.app alert 5 \(fourWeeks) -",
      #"{"aps":{"alert":{"title-loc-key":"title","loc-key":"r_rcv","loc-args":["雑談部屋","2"]},"badge":2,"sound":"default","category":"N"},"type":"r","rid":"300"}"#
    ),
  ]

  @Test("each fixture yields the payload and headers that the rules demand on APNs", arguments: onAPNs)
  func toAPNs(name: String, headers: String, payload: String) throws {
    let push = try apns(parsed(fixture(name, to: apnsToken)))
    #expect(utf8(push.payload) == payload)
    #expect(push.headers == headers)
    #expect(utf8(push.token) == apnsToken)
    #expect(push.id == DeviceIdentity.apnsID(messageID: Array("m-1".utf8), token: Array(apnsToken.utf8)))
  }

  static let onFCM: [(String, String)] = [
    (
      "seed000-data.json",
      #"{"message":{"data":{"Nick":"Mario","body":"great match!","Room":"PortugalVSDenmark"},"android":{"priority":"NORMAL","ttl":"2419139s"},"token":"T:1"}}"#
    ),
    (
      "seed000-hybrid.json",
      #"{"message":{"notification":{"title":"Portugal vs. Denmark","body":"great match!"},"data":{"Nick":"Mario","Room":"PortugalVSDenmark"},"android":{"priority":"NORMAL","ttl":"2419139s","notification":{"icon":"myicon"}},"token":"T:1"}}"#
    ),
    (
      "seed000-notification.json",
      #"{"message":{"notification":{"title":"Portugal vs. Denmark","body":"great match!"},"android":{"priority":"NORMAL","ttl":"2419139s","notification":{"icon":"myicon"}},"token":"T:1"}}"#
    ),
    (
      "seed000-priority.json",
      #"{"message":{"notification":{"title":"NewsMagazine.com","body":"This week’s edition is now available."},"data":{"volume":"3.21.15","contents":"http://www.news-magazine.com/world-week/21659772"},"android":{"priority":"NORMAL","ttl":"2419139s","notification":{"icon":"new"}},"token":"T:1"}}"#
    ),
    (
      "seed000-ttl.json",
      #"{"message":{"data":{"key1":"value1","key2":"value2"},"android":{"collapse_key":"demo","priority":"NORMAL","ttl":"0s"},"token":"T:1"}}"#
    ),
    (
      "seed004-both-systems.json",
      ##"{"message":{"data":{"type":"r","rid":"300"},"android":{"priority":"NORMAL","ttl":"2419139s","notification":{"icon":"notification","color":"#fb9200","sound":"default","tag":"r300","click_action":"N","title_loc_key":"title","body_loc_key":"r_rcv","body_loc_args":["雑談部屋","2"]}},"apns":{"payload":{"aps":{"alert":{"title-loc-key":"title","loc-key":"r_rcv","loc-args":["雑談部屋","2"]},"badge":2,"sound":"default","category":"N"}}},"token":"T:1"}}"##
    ),
  ]

  @Test("each fixture yields the v1 body that the rules demand on FCM", arguments: onFCM)
  func toFCM(name: String, body: String) throws {
    // A fraction of a second has passed: the remaining time is rounded down.
    var request = try parsed(fixture(name, to: "fcm:T:1"))
    var report: LossReport?
    var context = context(request)
    context.now += 1
    let template = try FCMTemplate(request, context: context, report: &report)
    #expect(try utf8(template.body(token: Array("T:1".utf8)[...])) == withApple(body, request))
    request = try parsed(body)
    #expect(request.targets == .one(.fcm(token: Array("T:1".utf8)[...])))
  }

  @Test(
    "the registration document's payloads pass through the apns block unchanged",
    arguments: ["seed003-rich.json", "seed003-simple.json"])
  func apnsFixtures(name: String) throws {
    let payload = try fixture("apns/\(name)")
    let push = try apns(accepted(#""apns":{"payload":\#(payload)}"#))
    let document = try JSONDocument(Array(payload.utf8))
    var compact: [UInt8] = []
    document.append(document.root, to: &compact)
    #expect(utf8(push.payload) == utf8(compact))
    #expect(push.headers == "com.example.app alert 5 \(Self.fourWeeks) -")
  }
}
