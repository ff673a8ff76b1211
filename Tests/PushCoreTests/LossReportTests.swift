import Testing

@testable import PushCore

@Suite struct LossReportTests {
  @Test("the report of the document's one request for both systems says what APNs makes of it")
  func bothSystems() throws {
    #expect(
      try losses(parsed(fixture("seed004-both-systems.json", to: apnsToken)), .apns) == [
        "GS-096 notification.badge converted: aps.badge, a number",
        "GS-100, GS-101 notification.click_action converted: aps.category",
        "GS-091 – GS-095 notification.title_loc_key converted: aps.alert.title-loc-key, title-loc-args, loc-key, loc-args",
        "GS-091 – GS-095 notification.body_loc_key converted: aps.alert.title-loc-key, title-loc-args, loc-key, loc-args",
        "GS-091 – GS-095 notification.body_loc_args converted: aps.alert.title-loc-key, title-loc-args, loc-key, loc-args",
        "GS-098 notification.icon dropped: iOS shows the app's icon",
        "GS-099 notification.color dropped: no counterpart",
        "GS-103, GS-105 notification.tag dropped: every notification stays in the history; a collapse_key would replace it",
        "GS-051, GS-054 priority converted: apns-priority: normal 5, high 10; absent: normal",
      ])
  }

  static let cases: [(String, Platform, String)] = [
    (#""delay_while_idle":true"#, .apns, "GS-072 delay_while_idle emulated: no counterpart, sent with priority 5"),
    (#""delay_while_idle":true"#, .fcm, "GS-072 delay_while_idle emulated: no counterpart, sent with priority NORMAL"),
    (
      #""notification":{"body":"b"},"delay_while_idle":true,"android":{"priority":"HIGH"}"#, .fcm,
      "GS-072 delay_while_idle emulated: for Apple devices only: sent with priority 5"
    ),
    (
      #""notification":{"body":"b"},"delay_while_idle":true,"apns":{"headers":{"apns-priority":"10"}}"#, .fcm,
      "GS-072 delay_while_idle emulated: for Android devices only: sent with priority NORMAL"
    ),
    (
      #""delay_while_idle":true,"priority":"high""#, .fcm,
      "GS-072 delay_while_idle dropped: no counterpart, and priority says high"
    ),
    (
      #""data":{"a":"b"}"#, .apns,
      "GS-010 data (nothing to show, no content_available) emulated: GCM's own connection to the app has no counterpart: sent as a background push"
    ),
    (#""data":{"a":{"n":[5]}}"#, .apns, "F-REF data data.a converted: written as a string"),
    (#""data":{"a":null}"#, .fcm, "F-REF data data.a dropped: a null is no value"),
    (
      #""priority":"high","content_available":true"#, .apns,
      "GS-057 priority cut: APNs refuses 10 for a background push: sent with 5"
    ),
    (#""priority":"high","content_available":true"#, .fcm, "GS-057 priority cut: apns-priority 5; Android's stays as it is"),
    (
      #""collapse_key":"\#(String(repeating: "k", count: 80))""#, .apns,
      "GS-034 collapse_key cut: at most 43 bytes of it, ~ and a hash of the whole, so that different keys stay different"
    ),
    (#""time_to_live":5"#, .apns, "GS-062, GS-063 time_to_live converted: apns-expiration, counted from publishing; 0 for 0"),
    (
      #""mutable_content":true,"notification":{"badge":1}"#, .apns,
      "Apple: service extensions mutable_content dropped: without an alert no service extension runs"
    ),
    (
      #""restricted_package_name":"a.b""#, .apns,
      "F-REF restricted_package_name restricted_package_name dropped: compared with the app, not sent"
    ),
    (
      #""dry_run":true"#, .fcm,
      "F-REF dry_run dry_run converted: validate_only; for an audience or a device of the registry FCM is not asked"
    ),
    (
      #""notification":{"sound":{"name":"n","critical":1}}"#, .fcm,
      "F-REF notification notification.sound cut: Android plays the name only"
    ),
    (
      #""notification":{"body":"b","badge":1}"#, .fcm,
      "GS-096 notification.badge converted: for Apple devices only: apns.payload.aps.badge, a number"
    ),
    (
      #""notification":{"click_action":"c"},"content_available":true"#, .apns,
      "Apple: background updates notification.click_action dropped: a background push has no category"
    ),
    (
      #""notification":{"body":"b","ticker":"t"}"#, .apns,
      "FCM v1 AndroidNotification notification.ticker dropped: no counterpart"
    ),
    (
      #""apns":{"live_activity_token":"abcd","payload":{"aps":{"timestamp":1,"event":"update","content-state":{}}}}"#, .apns,
      "FCM v1 ApnsConfig apns.live_activity_token converted: the push goes to this token, as liveactivity"
    ),
    (
      #""apns":{"headers":{"apns-priority":"10"}}"#, .apns,
      "GS-057 apns.headers.apns-priority cut: APNs refuses 10 for a background push: sent with 5"
    ),
    (
      #""android":{"ttl":"60s"}"#, .apns,
      "FCM v1 AndroidConfig android.ttl (no time_to_live) emulated: limits the whole request's life; apns-expiration follows from it"
    ),
    (
      #""notification":{"body":"b"},"android_v2":{"background_sync":{}}"#, .apns,
      "FCM v1 AndroidConfigV2 android_v2 dropped: for Android only: iPhones get the fields outside it"
    ),
    (
      #""android_v2":{"background_sync":{},"ttl":"60s"}"#, .apns,
      "FCM v1 AndroidConfig android_v2.ttl (no time_to_live) emulated: limits the whole request's life; apns-expiration follows from it"
    ),
    (
      #""priority":"high","android_v2":{"remote_notification":{}}"#, .fcm,
      "FCM v1 AndroidConfigV2 priority dropped: for Android: a remote_notification goes out at once, a background_sync may wait"
    ),
    (
      #""notification":{"sound":{"critical":1}}"#, .fcm,
      "F-REF notification notification.sound dropped: for Android: it has no name"
    ),
    (
      #""notification":{"image":"http://i"},"android_v2":{"remote_notification":{}}"#, .fcm,
      "FCM v1 AndroidConfigV2 notification.image dropped: for Android: android_v2 has https URLs only"
    ),
    (
      #""delay_while_idle":true,"android_v2":{"remote_notification":{}}"#, .fcm,
      "FCM v1 AndroidConfigV2 delay_while_idle dropped: for Android: a remote_notification goes out at once, a background_sync may wait"
    ),
    (
      #""notification":{"title":"t"},"android_v2":{"background_sync":{}}"#, .fcm,
      "FCM v1 AndroidConfigV2 notification dropped: for Android, except title, body and image: a background_sync shows nothing"
    ),
    (
      #""apns":{"fcm_options":{"image":"https://x"}}"#, .apns,
      "FCM v1 FcmOptions apns.fcm_options dropped: for FCM only: its statistics, and an image that FCM adds"
    ),
    (
      #""data":{"k":"1"},"apns":{"payload":{"k":2}}"#, .apns,
      "FCM v1 ApnsConfig data.k dropped: apns.payload has a key of the same name"
    ),
  ]

  /// Cases in which the report was once wrong, with its only entries on a field.
  static let exact: [(String, Platform, [String])] = [
    (
      #""data":{"k":"v"},"apns":{"payload":{"aps":{"content-available":1}}}"#, .apns, []
    ),
    (
      #""data":{"k":"v"},"apns":{"headers":{"apns-push-type":"background"}}"#, .apns, []
    ),
    (
      #""notification":{"title":"t"},"collapse_key":"a","apns":{"headers":{"apns-collapse-id":"b"}}"#, .apns,
      ["FCM v1 ApnsConfig collapse_key dropped: apns.headers.apns-collapse-id wins"]
    ),
    (
      #""notification":{"title":"t"},"time_to_live":60,"apns":{"headers":{"apns-expiration":"0"}}"#, .apns,
      [
        "FCM v1 ApnsConfig time_to_live dropped: apns.headers.apns-expiration wins there; time_to_live still ends the request in the fleet"
      ]
    ),
    (
      #""notification":{"title":"t"},"time_to_live":60,"android":{"ttl":"5s"}"#, .fcm,
      [
        "FCM v1 AndroidConfig time_to_live dropped: for Android devices: android.ttl wins there; time_to_live still ends the request in the fleet",
        "GS-062, GS-063 time_to_live converted: for Apple devices only: apns-expiration",
      ]
    ),
    (
      #""notification":{"title":"t"},"priority":"high","apns":{"headers":{"apns-priority":"5"}},"android":{"priority":"normal"}"#,
      .fcm,
      [
        "FCM v1 ApnsConfig priority dropped: for Apple devices: apns.headers.apns-priority wins",
        "FCM v1 AndroidConfig priority dropped: for Android devices: android.priority wins",
      ]
    ),
    (
      "", .apns,
      [
        "GS-010 a request without notification and data emulated: GCM's own connection to the app has no counterpart: sent as a background push"
      ]
    ),
    (
      #""apns":{"payload":{"k":1}}"#, .apns,
      [
        "GS-010 apns.payload (nothing to show, no content-available) emulated: GCM's own connection to the app has no counterpart: sent as a background push"
      ]
    ),
    (
      #""data":{"k":"v"}"#, .fcm,
      [
        "GS-010 data (nothing to show, no content_available) emulated: a data message; for Apple devices a background push, as for APNs"
      ]
    ),
    (
      #""notification":{"body":"b","badge":1,"sound":"x"},"apns":{"payload":{"aps":{"badge":9,"alert":{"body":"B"}}}}"#, .apns,
      [
        "FCM v1 ApnsConfig notification.body dropped: apns.payload.aps.alert.body wins",
        "FCM v1 ApnsConfig notification.badge dropped: apns.payload.aps.badge wins",
      ]
    ),
    (
      #""notification":{"body":"b","badge":"auto"},"apns":{"payload":{"aps":{"badge":3}}}"#, .fcm,
      [
        "FCM v1 ApnsConfig notification.badge dropped: for Apple devices: apns.payload.aps.badge wins",
        "GS-096 notification.badge converted: for Android devices only: android.notification.notification_count, as apns.payload.aps.badge has it",
      ]
    ),
    (
      #""notification":{"body":"b","badge":"auto"},"apns":{"payload":{"aps":{"badge":null}}}"#, .fcm,
      [
        "FCM v1 ApnsConfig notification.badge dropped: for Apple devices: apns.payload.aps.badge wins",
        "GS-096 notification.badge dropped: for Android devices: apns.payload.aps.badge takes it away, so nothing is counted",
      ]
    ),
    (
      #""data":{"k":"v"},"apns":{"payload":{"aps":{"content-available":0}}}"#, .apns,
      [
        "GS-010 data (nothing to show, no content_available) emulated: GCM's own connection to the app has no counterpart: sent as a background push",
        "Apple: background updates apns.payload.aps.content-available dropped: a background push has 1",
      ]
    ),
    (
      #""content_available":true,"apns":{"payload":{"aps":{"content-available":null}}}"#, .fcm,
      [
        "GS-009 content_available converted: for Apple devices only: apns.payload.aps.content-available",
        "Apple: background updates apns.payload.aps.content-available dropped: for Apple devices: a background push has 1",
      ]
    ),
    (
      #""content_available":true,"apns":{"payload":{"aps":{"thread-id":"t"}}}"#, .fcm,
      [
        "GS-009 content_available converted: for Apple devices only: apns.payload.aps.content-available",
        "Apple: background updates apns.payload.aps.thread-id dropped: for Apple devices: a background push has nothing but content-available",
      ]
    ),
    (
      #""notification":{"body":"b","icon":"i"},"android":{"notification":{"icon":"j","title":"t"}}"#, .fcm,
      ["FCM v1 AndroidConfig notification.icon dropped: for Android devices: android.notification.icon wins"]
    ),
    (
      #""notification":{"body":"b"},"data":{"a":"b"},"android":{"data":{"c":"d"}}"#, .fcm,
      ["FCM v1 AndroidConfig data dropped: for Android devices: android.data wins"]
    ),
    (
      #""notification":{"body":"b"},"data":{"n":5},"apns":{"payload":{"n":6}}"#, .apns,
      ["FCM v1 ApnsConfig data.n dropped: apns.payload has a key of the same name"]
    ),
    (
      #""notification":{"body":"b"},"content_available":true,"apns":{"payload":{"aps":{"content-available":0}}}"#, .apns,
      ["FCM v1 ApnsConfig content_available dropped: apns.payload.aps.content-available wins"]
    ),
    (
      #""notification":{"click_action":"c"},"content_available":true"#, .apns,
      [
        "Apple: background updates notification.click_action dropped: a background push has no category",
        "GS-009 content_available converted: aps.content-available; a background push when nothing is shown",
      ]
    ),
  ]

  /// To a channel: no collapse id, and an expiration only if the request has one.
  @Test(
    "a channel's unsupported fields are in the report as they are",
    arguments: [
      (#""collapse_key":"k""#, ["Apple: broadcasts collapse_key dropped: a channel has no collapse id"]),
      (
        #""android":{"ttl":"60s"}"#,
        [
          "Apple: broadcasts android.ttl (no time_to_live) emulated: limits the whole request's life; apns-expiration is 0, which every channel accepts"
        ]
      ),
      (#""time_to_live":60"#, ["GS-062, GS-063 time_to_live converted: apns-expiration, counted from publishing; 0 for 0"]),
      ("", []),
    ])
  func channel(members: String, entries: [String]) throws {
    let aps = #""payload":{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#
    let request = try accepted(#"\#(members)\#(members.isEmpty ? "" : ",")"apns":{\#(aps)}"#, to: "apns-channel:bm8=")
    #expect(try losses(request, .apns) == entries)
  }

  static let sync = #""android_v2":{"background_sync":{}}"#
  static let shown = #""android_v2":{"remote_notification":{}}"#

  @Test(
    "beside android_v2 the report names its paths and values",
    arguments: [
      (
        #""notification":{"badge":"auto"},\#(sync)"#,
        [
          "GS-096 notification.badge converted: for Apple devices only: apns.payload.aps.badge, the device's counter plus one",
          "FCM v1 AndroidConfigV2 notification dropped: for Android, except title, body and image: a background_sync shows nothing",
        ]
      ),
      (
        #""notification":{"sound":{"name":"n","critical":1}},\#(sync)"#,
        [
          "FCM v1 AndroidConfigV2 notification dropped: for Android, except title, body and image: a background_sync shows nothing"
        ]
      ),
      (
        #""notification":{"badge":"auto"},\#(shown)"#,
        [
          "GS-096 notification.badge converted: android_v2.remote_notification.notification.notification_count and apns.payload.aps.badge, the same number"
        ]
      ),
      (
        #""notification":{"body":"b"},"time_to_live":60,\#(shown)"#,
        [
          "GS-062, GS-063 time_to_live converted: android_v2.ttl less the time spent queued; for Apple devices apns-expiration as for APNs"
        ]
      ),
      (
        #""notification":{"body":"b"},"time_to_live":60,"apns":{"headers":{"apns-expiration":"0"}},\#(shown)"#,
        [
          "FCM v1 ApnsConfig time_to_live dropped: for Apple devices: apns.headers.apns-expiration wins there; time_to_live still ends the request in the fleet",
          "GS-062, GS-063 time_to_live converted: for Android devices only: android_v2.ttl",
        ]
      ),
      (
        #""notification":{"body":"b"},"collapse_key":"k",\#(shown)"#,
        ["GS-033 collapse_key converted: android_v2.collapse_key; for Apple devices apns-collapse-id"]
      ),
      (
        #""notification":{"body":"b"},"android_v2":{"remote_notification":{},"ttl":"60s"}"#,
        [
          "FCM v1 AndroidConfig android_v2.ttl (no time_to_live) emulated: android_v2.ttl less the time spent queued; for Apple devices apns-expiration from it"
        ]
      ),
    ])
  func androidV2(members: String, entries: [String]) throws {
    #expect(try losses(accepted(members), .fcm) == entries)
  }

  @Test("a collapse id of the request that must be changed makes an entry, for APNs and FCM")
  func collapseID() throws {
    let id = #""notification":{"body":"b"},"apns":{"headers":{"apns-collapse-id":" k "}}"#
    let entry =
      "GS-034 apns.headers.apns-collapse-id cut: at most 43 bytes of it, ~ and a hash of the whole, so that different keys stay different"
    for platform in [Platform.apns, .fcm] {
      #expect(try losses(accepted(id), platform) == [entry])
      #expect(try losses(accepted(id + #","collapse_key":"c""#), platform).contains(entry))
      #expect(try losses(accepted(id.replacing(" k ", with: "k")), platform) == [])
    }
  }

  @Test("if mps has data.ext, the report says so, whatever apns.payload has")
  func upmc() throws {
    func losses(_ members: String) throws -> [String] {
      let request = try accepted(members)
      var report: LossReport? = LossReport()
      _ = try APNsTemplate(
        request, settings: APNsSettings(topic: "a.b", isUPMC: true), context: context(request), report: &report
      )
      return report?.entries.map { "\($0.rule) \($0.field) \($0.action.rawValue): \($0.words)" } ?? []
    }
    let moved = "UP-19 data.ext converted: mps.ext, for the app's library"
    #expect(try losses(#""notification":{"body":"b"},"data":{"ext":"e","k":"v"}"#) == [moved])
    #expect(try losses(#""notification":{"body":"b"},"data":{"ext":"e"},"apns":{"payload":{"ext":"x"}}"#) == [moved])
    #expect(
      try losses(#""notification":{"body":"b"},"data":{"ext":{"a":1}}"#) == [
        moved, "F-REF data data.ext converted: written as a string",
      ])
    #expect(try losses(#""notification":{"body":"b"},"data":{"ext":"e","mps":"m"}"#) == [])
    #expect(try losses(#""data":{"ext":"e"},"content_available":true"#).contains { $0.contains("ext") } == false)
  }

  @Test("the report says what happened, all of it, and nothing else", arguments: exact)
  func whole(members: String, platform: Platform, entries: [String]) throws {
    #expect(try losses(accepted(members), platform) == entries)
  }

  @Test("each loss is named by its rule", arguments: cases)
  func entries(members: String, platform: Platform, entry: String) throws {
    let found = try losses(accepted(members), platform)
    #expect(found.contains(entry), "\(found)")
  }

  @Test("unchanged fields make no entry")
  func nothingLost() throws {
    #expect(try losses(accepted(#""notification":{"title":"t","body":"b","sound":"s"},"data":{"a":"b"}"#), .apns) == [])
    #expect(try losses(accepted(#""notification":{"title":"t","tag":"b","sound":"s"},"data":{"a":"b"}"#), .fcm) == [])
    #expect(try losses(accepted(#""notification":{"title":"t"},"android_v2":{"remote_notification":{}}"#), .fcm) == [])
    #expect(try losses(accepted(#""priority":"high","android_v2":{"remote_notification":{}}"#), .fcm).count == 1)
  }

  @Test("asking for a report changes nothing else")
  func sameResult() throws {
    let request = try accepted(#""notification":{"title":"t","badge":"1"},"priority":"high","data":{"a":1}"#)
    var (silent, told): (LossReport?, LossReport?) = (nil, LossReport())
    let settings = APNsSettings(topic: "a.b")
    let one = try APNsTemplate(request, settings: settings, context: context(request), report: &silent)
    let two = try APNsTemplate(request, settings: settings, context: context(request), report: &told)
    #expect(one.stamp(token: []).payload == two.stamp(token: []).payload && one.priority == two.priority)
    #expect(silent == nil && told?.entries.isEmpty == false)
    #expect(
      try FCMTemplate(request, context: context(request), report: &silent).body(token: [0x61])
        == FCMTemplate(request, context: context(request), report: &told).body(token: [0x61]))
  }
}
