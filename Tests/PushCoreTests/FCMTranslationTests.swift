import Foundation
import Testing

@testable import PushCore

@Suite struct FCMTranslationTests {
  static let bodies: [(String, String, String)] = [
    (
      "GS-008", #""notification":{"title":"t","body":"b"}"#,
      #""notification":{"title":"t","body":"b"},"android":{"priority":"NORMAL","ttl":"4W"}"#
    ),
    (
      "a notification with nothing for Android's own block has none", #""notification":{"image":"https://x/y.png"}"#,
      #""notification":{"image":"https://x/y.png"},"android":{"priority":"NORMAL","ttl":"4W"}"#
    ),
    ("an empty notification", #""notification":{}"#, #""android":{"priority":"NORMAL","ttl":"4W"}"#),
    (
      "GS-052 high", #""priority":"high","data":{"a":"b"}"#,
      #""data":{"a":"b"},"android":{"priority":"HIGH","ttl":"4W"}"#
    ),
    (
      "GS-062 the time queued is subtracted", #""time_to_live":600"#,
      #""android":{"priority":"NORMAL","ttl":"540s"}"#
    ),
    (
      "GS-063 zero", #""time_to_live":0"#,
      #""android":{"priority":"NORMAL","ttl":"0s"}"#
    ),
    (
      "GS-033 collapse_key", #""collapse_key":"k""#,
      #""android":{"collapse_key":"k","priority":"NORMAL","ttl":"4W"}"#
    ),
    (
      "F-REF data as strings", #""data":{"n":5,"t":false,"o":{"a":1},"z":null}"#,
      #""data":{"n":"5","t":"false","o":"{\"a\":1}"},"android":{"priority":"NORMAL","ttl":"4W"}"#
    ),
    ("data of nulls only is none", #""data":{"z":null}"#, #""android":{"priority":"NORMAL","ttl":"4W"}"#),
    (
      "restricted_package_name", #""restricted_package_name":"a.b""#,
      #""android":{"priority":"NORMAL","ttl":"4W","restricted_package_name":"a.b"}"#
    ),
    (
      "Android's keys",
      ##""notification":{"icon":"i","color":"#010203","sound":"s","tag":"t","click_action":"c","title_loc_key":"T","title_loc_args":"[\"a\"]","body_loc_key":"B","body_loc_args":["b",2],"android_channel_id":"ch"}"##,
      ##""android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"i","color":"#010203","sound":"s","tag":"t","click_action":"c","title_loc_key":"T","title_loc_args":["a"],"body_loc_key":"B","body_loc_args":["b","2"],"channel_id":"ch"}},"apns":{"payload":{"aps":{"alert":{"title-loc-key":"T","title-loc-args":["a"],"loc-key":"B","loc-args":["b","2"]},"sound":"s","category":"c"}}}"##
    ),
    (
      "newer keys",
      #""notification":{"ticker":"k","sticky":"true","event_time":"2026-11-20T21:22:00Z","local_only":false,"notification_priority":"PRIORITY_MAX","default_sound":true,"visibility":"SECRET","notification_count":"3"}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"ticker":"k","sticky":true,"event_time":"2026-11-20T21:22:00Z","local_only":false,"notification_priority":"PRIORITY_MAX","default_sound":true,"visibility":"SECRET","notification_count":3}}"#
    ),
    (
      "GS-092 null arguments are absent", #""notification":{"body_loc_key":"B","body_loc_args":null}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"body_loc_key":"B"}},"apns":{"payload":{"aps":{"alert":{"loc-key":"B"}}}}"#
    ),
    (
      "GS-096 a badge is for Apple devices, a number", #""notification":{"body":"b","badge":"2"}"#,
      #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W"},"apns":{"payload":{"aps":{"badge":2}}}"#
    ),
    (
      "a subtitle is for Apple devices, with the whole alert", #""notification":{"body":"b","subtitle":"s"}"#,
      #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W"},"apns":{"payload":{"aps":{"alert":{"subtitle":"s","body":"b"}}}}"#
    ),
    (
      "a critical sound's name is Android's sound", #""notification":{"sound":{"critical":1,"name":"n"}}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"sound":"n"}},"apns":{"payload":{"aps":{"sound":{"critical":1,"name":"n"}}}}"#
    ),
    (
      "a sound without a name is none for Android", #""notification":{"sound":{"critical":1},"tag":"t"}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"tag":"t"}},"apns":{"payload":{"aps":{"sound":{"critical":1}}}}"#
    ),
    (
      "GS-009 content_available wakes Apple devices", #""content_available":true,"data":{"a":"b"}"#,
      #""data":{"a":"b"},"android":{"priority":"NORMAL","ttl":"4W"},"apns":{"payload":{"aps":{"content-available":1}}}"#
    ),
    (
      "GS-057 at priority 5", #""content_available":true,"priority":"high","data":{"a":"b"}"#,
      #""data":{"a":"b"},"android":{"priority":"HIGH","ttl":"4W"},"apns":{"payload":{"aps":{"content-available":1}}}"#
    ),
    (
      "mutable_content", #""mutable_content":true,"notification":{"body":"b"}"#,
      #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W"},"apns":{"payload":{"aps":{"mutable-content":1}}}"#
    ),
    ("GS-072 delay_while_idle", #""delay_while_idle":true"#, #""android":{"priority":"NORMAL","ttl":"4W"}"#),
    // Blocks.
    (
      "the android block wins key by key",
      #""priority":"high","collapse_key":"k","notification":{"tag":"t","icon":"i"},"android":{"priority":"normal","collapse_key":"K","ttl":"120.9s","notification":{"tag":"T","vibrate_timings":["1s"]},"data":{"x":"y"},"direct_boot_ok":true,"fcm_options":{"analytics_label":"l"}}"#,
      #""android":{"collapse_key":"K","priority":"normal","ttl":"60s","notification":{"icon":"i","tag":"T","vibrate_timings":["1s"]},"data":{"x":"y"},"fcm_options":{"analytics_label":"l"},"direct_boot_ok":true}"#
    ),
    (
      "the apns block wins key by key",
      #""priority":"high","notification":{"body":"b","badge":1,"sound":"s"},"apns":{"headers":{"apns-priority":"5"},"payload":{"aps":{"badge":2},"x":1},"fcm_options":{"image":"https://x"}}"#,
      #""notification":{"body":"b"},"android":{"priority":"HIGH","ttl":"4W","notification":{"sound":"s"}},"apns":{"payload":{"aps":{"sound":"s","badge":2},"x":1},"fcm_options":{"image":"https://x"}}"#
    ),
    (
      "an alert that the block takes away is none for Apple devices; others show title and body",
      #""notification":{"title":"t","image":"https://x/y.png","tag":"T"},"apns":{"payload":{"aps":{"alert":null}}},"webpush":{"notification":{"title":"w"}}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"title":"t","tag":"T","image":"https://x/y.png"}},"webpush":{"notification":{"image":"https://x/y.png","title":"w"}}"#
    ),
    (
      "the webpush block is passed on",
      #""webpush":{"headers":{"TTL":"5"},"notification":{"a":[1]},"fcm_options":{"link":"https://x"}}"#,
      #""android":{"priority":"NORMAL","ttl":"4W"},"webpush":{"headers":{"TTL":"5"},"notification":{"a":[1]},"fcm_options":{"link":"https://x"}}"#
    ),
    (
      "android_v2 stands in the place of android and wins key by key",
      #""priority":"high","collapse_key":"k","time_to_live":600,"notification":{"title":"t","body":"b","image":"https://i","icon":"i","tag":"t"},"android_v2":{"collapse_key":"K","restricted_package_name":"a.b","remote_notification":{"notification":{"body":"B","tag":"T","id":7},"mutable_content":false,"use_as_v1_data_message":true},"fcm_options":{"analytics_label":"l"},"bandwidth_constrained_ok":true}"#,
      #""notification":{"title":"t","body":"b","image":"https://i"},"android_v2":{"collapse_key":"K","ttl":"540s","restricted_package_name":"a.b","remote_notification":{"notification":{"title":"t","body":"B","icon":"i","tag":"T","image":"https://i","id":7},"mutable_content":false,"use_as_v1_data_message":true},"fcm_options":{"analytics_label":"l"},"bandwidth_constrained_ok":true}"#
    ),
    (
      "its images have https URLs", #""notification":{"image":"http://i"},"android_v2":{"remote_notification":{}}"#,
      #""notification":{"image":"http://i"},"android_v2":{"ttl":"4W","remote_notification":{}}"#
    ),
    (
      "Android's own image may have any URL",
      #""notification":{"title":"t","image":"http://i"},"apns":{"payload":{"aps":{"alert":null}}}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"title":"t","image":"http://i"}},"webpush":{"notification":{"title":"t","image":"http://i"}}"#
    ),
    (
      "android_v2 with nothing to show", #""android_v2":{"remote_notification":{},"ttl":"120.5s"}"#,
      #""android_v2":{"ttl":"60s","remote_notification":{}}"#
    ),
    (
      "android_v2 with an id alone", #""android_v2":{"remote_notification":{"notification":{"id":1}}}"#,
      #""android_v2":{"ttl":"4W","remote_notification":{"notification":{"id":1}}}"#
    ),
    (
      "android_v2.background_sync shows nothing",
      #""notification":{"title":"t","tag":"t"},"data":{"a":"b"},"android_v2":{"background_sync":{},"data":{"x":"y"},"direct_boot_ok":false,"restricted_satellite_ok":true}"#,
      #""notification":{"title":"t"},"data":{"a":"b"},"android_v2":{"ttl":"4W","background_sync":{},"data":{"x":"y"},"direct_boot_ok":false,"restricted_satellite_ok":true}"#
    ),
    (
      "an icon and a click action that are https URLs are a browser's too",
      #""notification":{"title":"t","icon":"https://x/i.png","click_action":"https://x/y"}"#,
      #""notification":{"title":"t"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"https://x/i.png","click_action":"https://x/y"}},"apns":{"payload":{"aps":{"category":"https://x/y"}}},"webpush":{"notification":{"icon":"https://x/i.png"},"fcm_options":{"link":"https://x/y"}}"#
    ),
    (
      "what the webpush block says of them wins",
      #""notification":{"icon":"https://x/i.png","click_action":"https://x/y"},"webpush":{"notification":{"badge":"b"},"fcm_options":{"link":"https://z","analytics_label":"l"}}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"https://x/i.png","click_action":"https://x/y"}},"webpush":{"notification":{"icon":"https://x/i.png","badge":"b"},"fcm_options":{"link":"https://z","analytics_label":"l"}}"#
    ),
    (
      "others are Android's alone", #""notification":{"icon":"http://x/i.png"}"#,
      #""android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"http://x/i.png"}}"#
    ),
    ("empty blocks leave nothing", #""apns":{},"android":{},"webpush":{}"#, #""android":{"priority":"NORMAL","ttl":"4W"}"#),
  ]

  @Test("the v1 message is what the rules demand", arguments: bodies)
  func body(rule: String, members: String, message: String) throws {
    let request = try accepted(members, to: "fcm:T:1")
    let body = try fcm(request)
    let expected = try withApple(message.replacingOccurrences(of: "4W", with: "2419140s"), request)
    #expect(body == #"{"message":{\#(expected),"token":"T:1"}}"#, "\(rule)")
    // Our own output is a request that we accept.
    _ = try parsed(body)
  }

  @Test("in FCM v1's shape too, the alert's content is where Apple devices don't see it if the block removes the alert")
  func alertTakenAway() throws {
    let request = try parsed(
      #"{"message":{"token":"T:1","notification":{"title":"t","body":"b"},"android":{"notification":{"body":"B"}},"apns":{"payload":{"aps":{"alert":null}}}}}"#
    )
    let body = try fcm(request)
    #expect(
      body.hasPrefix(
        #"{"message":{"android":{"ttl":"2419140s","notification":{"title":"t","body":"B"}},"apns":{"headers":{"apns-push-type":"background""#
      )
        && body.hasSuffix(#""webpush":{"notification":{"title":"t","body":"b"}},"token":"T:1"}}"#), "\(body)")
  }

  @Test(
    "what counts for FCM's topics has one limit, in any part of the request",
    arguments: [
      #""notification":{"subtitle":"\#(String(repeating: "s", count: 1_500))"},"data":{"a":"@"}"#,
      #""notification":{"title":"t"},"data":{"a":"@"}"#, #""notification":{"title":"t"},"android":{"data":{"a":"@"}}"#,
    ])
  func topicLimit(members: String) throws {
    func result(_ bytes: Int) throws -> Result<FCMTemplate, Rejection> {
      let request = try accepted(
        members.replacingOccurrences(of: "@", with: String(repeating: "x", count: bytes)), to: "fcm:/topics/news")
      var report: LossReport?
      return Result { () throws(Rejection) in
        try FCMTemplate(request, context: context(request), report: &report)
      }
    }
    let counted = try FCMMessage.countedBytes(
      accepted(members.replacingOccurrences(of: "@", with: ""), to: "fcm:/topics/news"))
    #expect((try? result(2_048 - counted).get()) != nil)
    guard case .failure(let rejection) = try result(2_049 - counted) else {
      Issue.record("2,049 bytes are taken")
      return
    }
    #expect(rejection.code == .messageTooBig)
  }

  @Test(
    "an iPhone behind FCM gets what one behind APNs gets",
    arguments: [
      (
        #"{"to":"T:1","data":{"k":"v"}}"#,
        #""headers":{"apns-push-type":"background","apns-priority":"5","apns-expiration":"4W"},"payload":{"aps":{"content-available":1}}"#
      ),
      (
        #"{"to":"T:1","priority":"high","data":{"k":"v"}}"#,
        #""headers":{"apns-push-type":"background","apns-priority":"5","apns-expiration":"4W"},"payload":{"aps":{"content-available":1}}"#
      ),
      (
        #"{"message":{"token":"T:1","data":{"k":"v"},"apns":{"headers":{"apns-push-type":"background","apns-priority":"10"}}}}"#,
        #""headers":{"apns-push-type":"background","apns-priority":"5","apns-expiration":"4W"},"payload":{"aps":{"content-available":1}}"#
      ),
      (
        #"{"to":"T:1","notification":{"title":"t"}}"#,
        #""headers":{"apns-push-type":"alert","apns-priority":"5","apns-expiration":"4W"}"#
      ),
      (
        #"{"to":"T:1","notification":{"click_action":"c"},"content_available":true,"mutable_content":true}"#,
        #""headers":{"apns-push-type":"background","apns-priority":"5","apns-expiration":"4W"},"payload":{"aps":{"content-available":1}}"#
      ),
      (
        #"{"to":"T:1","apns":{"live_activity_token":"00ff","payload":{"aps":{"timestamp":1,"event":"update","content-state":{}}}}}"#,
        #""headers":{"apns-priority":"5","apns-expiration":"4W"},"payload":{"aps":{"timestamp":1,"event":"update","content-state":{}}},"live_activity_token":"00ff""#
      ),
    ])
  func appleDevices(body: String, apns: String) throws {
    let expected = apns.replacingOccurrences(of: "4W", with: "\((testNow - 60_000) / 1000 + 2_419_200)")
    let found = try fcm(parsed(body))
    #expect(found.contains(#""apns":{\#(expected)}"#), "\(found)")
  }

  @Test("dry_run is validate_only")
  func dryRun() throws {
    #expect(try fcm(accepted(#""dry_run":true,"data":{"a":"b"}"#)).hasPrefix(#"{"validate_only":true,"message":{"data""#))
    #expect(try !fcm(accepted(#""dry_run":false"#)).contains("validate_only"))
  }

  @Test("a v1 request passes with its target replaced, its lifetime recomputed, and APNs' translation for Apple devices")
  func v1Shape() throws {
    let message =
      #""notification":{"title":"t"},"data":{"a":"b"},"android":{"ttl":"3600s","notification":{"channel_id":"c","body_loc_args":["x"]}},"apns":{"headers":{"apns-priority":"10"},"payload":{"aps":{"badge":1}}},"webpush":{"data":{"w":"x"}},"fcm_options":{"analytics_label":"l"}"#
    let body = try fcm(parsed(#"{"validate_only":true,"message":{"token":"fcm:old",\#(message)}}"#))
    let headers = #""apns-push-type":"alert","apns-priority":"10","apns-expiration":"1795213260""#
    let expected =
      message.replacingOccurrences(of: "3600s", with: "3540s").replacingOccurrences(of: #""apns-priority":"10""#, with: headers)
      .replacingOccurrences(of: #""channel_id":"c","body_loc_args":["x"]"#, with: #""body_loc_args":["x"],"channel_id":"c""#)
    #expect(body == #"{"validate_only":true,"message":{\#(expected),"token":"T:1"}}"#)
  }

  @Test("android_v2 of a v1 request passes unchanged, except for its lifetime")
  func v2Shape() throws {
    let message =
      #""notification":{"title":"t"},"android_v2":{"ttl":"3600s","remote_notification":{"notification":{"notification_count":-1,"vibrate_timings":["1s"]}}}"#
    let body = try fcm(parsed(#"{"message":{"fid":"cXyZ0123456789_-AbCdEf",\#(message)}}"#))
    let expected = message.replacingOccurrences(of: "3600s", with: "3540s")
      .replacingOccurrences(
        of: #""notification_count":-1,"vibrate_timings":["1s"]"#, with: #""vibrate_timings":["1s"],"notification_count":-1"#)
    let request = try parsed(#"{"message":{"token":"fcm:old",\#(message)}}"#)
    #expect(try body == #"{"message":{\#(withApple(expected, request)),"token":"T:1"}}"#)
  }

  @Test(
    "camel case is accepted in the v1 shape",
    arguments: [
      (
        #""android":{"collapseKey":"k","ttl":"100s","restrictedPackageName":"a.b","directBootOk":true,"notification":{"channelId":"c"}}"#,
        #""android":{"collapse_key":"k","ttl":"40s","restricted_package_name":"a.b","notification":{"channel_id":"c"},"direct_boot_ok":true}"#
      )
    ])
  func camelCase(message: String, expected: String) throws {
    #expect(try fcm(parsed(#"{"message":{"token":"fcm:old",\#(message)}}"#)) == #"{"message":{\#(expected),"token":"T:1"}}"#)
  }

  @Test(
    "GS-062 remaining time is rounded down, bounded, and never negative",
    arguments: [
      (0, 600_000, "600s"), (1, 600_000, "599s"), (599_001, 600_000, "0s"), (600_000, 600_000, "0s"), (700_000, 600_000, "0s"),
      (0, Int64.max / 2, "2419200s"),
    ] as [(Int64, Int64, String)])
  func remaining(elapsed: Int64, deadline: Int64, expected: String) throws {
    var report: LossReport?
    let context = TranslationContext(now: elapsed, deadline: deadline, messageID: [])
    let body = try FCMTemplate(accepted(""), context: context, report: &report).body(token: [])
    #expect(utf8(body).contains(#""ttl":"\#(expected)""#))
  }

  @Test(
    "GS-062 an android.ttl beside time_to_live counts from publishing too, and the message's own end bounds both",
    arguments: [
      ("40s", 600, 600_000, "30s"), ("700s", 600, 600_000, "690s"), ("40s", 600, 20_000, "10s"), ("700s", 600, 20_000, "10s"),
      ("40s", 0, 5_000, "30s"), ("0s", 600, 600_000, "0s"), ("5s", 600, 600_000, "0s"),
    ] as [(String, Int, Int64, String)])
  func androidLifetime(android: String, common: Int, deadline: Int64, expected: String) throws {
    var report: LossReport?
    let request = try accepted(#""time_to_live":\#(common),"android":{"ttl":"\#(android)"}"#)
    let context = TranslationContext(now: 10_000, deadline: deadline, messageID: [], published: 0)
    let body = utf8(try FCMTemplate(request, context: context, report: &report).body(token: []))
    #expect(body.contains(#""ttl":"\#(expected)""#), "\(body)")
  }

  @Test(
    "the message names an installation, an FCM topic or a condition over topics in the right field",
    arguments: [
      ("fid:cXyZ0123456789_-AbCdEf", #""fid":"cXyZ0123456789_-AbCdEf""#), ("/topics/news", #""topic":"news""#),
      ("'a' in topics && !('b' in topics)", #""condition":"'a' in topics && !('b' in topics)""#), ("fid", #""token":"fid""#),
      ("cXyZ0123456789_-AbCdEf:APA91", #""token":"cXyZ0123456789_-AbCdEf:APA91""#),
    ])
  func addresses(address: String, member: String) throws {
    let body = try fcm(accepted(#""notification":{"icon":"i"}"#, to: "fcm:T:1"), token: address)
    #expect(
      body == #"{"message":{"android":{"priority":"NORMAL","ttl":"2419140s","notification":{"icon":"i"}},"# + member + "}}")
    _ = try JSONDocument(Array(body.utf8))
  }

  @Test("to FCM's topics 2048 bytes of keys and values pass, 2049 don't", arguments: ["/topics/a", "'a' in topics"])
  func topicLimit(address: String) throws {
    func sized(_ bytes: Int) throws -> SendRequest {
      let shown = String(repeating: "y", count: 1000)
      let value = String(repeating: "x", count: bytes - 4 - 1000 - 1)
      return try parsed(#"{"to":"fcm:\#(address)","notification":{"body":"\#(shown)"},"data":{"k":"\#(value)"}}"#)
    }
    _ = try fcm(sized(2048))
    let tooBig = try sized(2049)
    let rejection = #expect(throws: Rejection.self) { try fcm(tooBig) }
    #expect(rejection?.code == .messageTooBig)
    #expect(rejection?.reason == "2049 bytes of notification and data for FCM, at most 2048 allowed")
    let data = parse(#"{"to":"fcm:\#(address)","data":{"k":"\#(String(repeating: "x", count: 2048))"}}"#)
    #expect(code(data) == .messageTooBig)
  }

  @Test("4096 bytes of keys and values pass, 4097 don't", arguments: ["", "部", "\\u90e8"])
  func limit(unit: String) throws {
    func sized(_ bytes: Int) throws -> SendRequest {
      var limits = RequestLimits()
      limits.dataBytes = 100_000
      // notification: "body" + 1000; data: "k" + the rest.
      let room = bytes - 4 - 1000 - 1
      let units = unit.isEmpty ? 0 : room / 3
      let value = String(repeating: unit, count: units) + String(repeating: "x", count: room - units * 3)
      let shown = String(repeating: "y", count: 1000)
      return try parsed(
        #"{"to":"fcm:T:1","notification":{"body":"\#(shown)"},"data":{"k":"\#(value)"}}"#, limits: limits)
    }
    _ = try fcm(sized(4096))
    let tooBig = try sized(4097)
    let rejection = #expect(throws: Rejection.self) { try fcm(tooBig) }
    #expect(rejection?.code == .messageTooBig)
    #expect(rejection?.reason == "4097 bytes of notification and data for FCM, at most 4096 allowed")
  }

  @Test("GS-005 a full 4096 bytes of data in a thousand keys pass: JSON's punctuation doesn't count")
  func manySmallKeys() throws {
    let members = (0..<819).map { #""k\#(String(format: "%03d", $0))":"v""# }.joined(separator: ",")
    _ = try fcm(accepted(#""data":{\#(members)}"#, to: "fcm:T:1"))
  }

  @Test("a live activity's push that its device would drop is refused", arguments: ["", #""timestamp":1,"event":"update""#])
  func incompleteActivity(aps: String) throws {
    let body = #"{"to":"T:1","apns":{"live_activity_token":"00ff","payload":{"aps":{\#(aps)}}}}"#
    #expect(throws: Rejection.self) { try fcm(parsed(body)) }
  }

  @Test("an apns.payload over 4096 bytes is refused")
  func apnsPayload() throws {
    let request = try accepted(#""apns":{"payload":{"x":"\#(String(repeating: "y", count: 4096))"}}"#, to: "fcm:T:1")
    let rejection = #expect(throws: Rejection.self) { try fcm(request) }
    #expect(rejection?.code == .messageTooBig)
  }

  @Test("a token can't break the body")
  func token() throws {
    #expect(try fcm(accepted(""), token: "a\"b\n").hasSuffix(#""token":"a\"b\n"}}"#))
  }
}
