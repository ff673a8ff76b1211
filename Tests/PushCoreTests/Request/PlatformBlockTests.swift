import PushCore
import Testing

/// A request that uses every part of FCM v1's shape.
let fcmV1Request = """
  {"validate_only": true, "message": {"name": "x", "token": "abc:def",
    "notification": {"title": "T", "body": "B", "image": "https://example.com/i.png"}, "data": {"k": "v"},
    "fcm_options": {"analytics_label": "label-1"},
    "android": {"collapse_key": "c", "priority": "HIGH", "ttl": "3.5s", "restricted_package_name": "com.example.app",
      "data": {"a": "b"}, "direct_boot_ok": true, "fcm_options": {"analytics_label": "l"},
      "notification": {"title": "T", "title_loc_args": ["a"], "color": "#00ff00", "channel_id": "c", "visibility": "PRIVATE",
        "vibrate_timings": ["0.5s", "1s"], "event_time": "2026-11-20T21:22:00+01:00", "notification_count": 2,
        "light_settings": {"color": {"red": 0.5, "green": 1, "blue": 0, "alpha": 1}, "light_on_duration": "1s", "light_off_duration": "0.1s"}}},
    "apns": {"headers": {"apns-push-type": "liveactivity", "apns-topic": "com.example.app", "apns-priority": "10", "apns-expiration": "0",
        "apns-collapse-id": "c", "apns-id": "123e4567-e89b-12d3-a456-426614174000"},
      "payload": {"aps": {"alert": {"title": "x"}}, "custom": [1]}, "fcm_options": {"image": "i"}, "live_activity_token": "00ff"},
    "webpush": {"headers": {"TTL": "5"}, "data": {"k": "v"}, "notification": {"any": [1]}, "fcm_options": {"link": "https://example.com"}}}}
  """

@Suite struct PlatformBlockTests {
  @Test("a request in FCM v1's shape means the same as one in GCM's")
  func v1() throws {
    let request = try parse(fcmV1Request).get()
    #expect(request.shape == .fcmV1)
    #expect(request.isDryRun)
    #expect(request.targets == .one(.fcm(token: Array("abc:def".utf8)[...])))
    #expect(request.notification[.title].map(request.document.text) == "T")
    #expect(request.notification[.image].map(request.document.text) == "https://example.com/i.png")
    #expect(request.data.map { request.document.text($0.value) } == ["v"])
    #expect(request.androidTimeToLive == 3)
    #expect(request.android(.collapseKey).map(request.document.text) == "c")
    #expect(request.androidNotification(.channelId).map(request.document.text) == "c")
    #expect(request.apnsHeader(.apnsPriority).map(request.document.text) == "10")
    #expect(request.apns(.payload).map(request.document.kind) == .object)
    #expect(request.webpush(.notification).map(request.document.kind) == .object)
    #expect(request.fcmOptionsNode != nil)
    #expect(request.timeToLive == nil)
    #expect(request.priority == nil)
  }

  @Test("lowerCamelCase names are snake_case names in FCM v1's shape, and a field in both is refused")
  func camelCase() throws {
    let body =
      #"{"validateOnly": true, "message": {"token": "t", "fcmOptions": {"analyticsLabel": "l"}, "android": {"collapseKey": "c", "notification": {"channelId": "x"}}}}"#
    let request = try parse(body).get()
    #expect(request.isDryRun)
    #expect(request.android(.collapseKey) != nil)
    #expect(request.androidNotification(.channelId) != nil)
    let twice = parse(#"{"message": {"token": "t", "android": {"collapseKey": "c", "collapse_key": "c"}}}"#)
    #expect(code(twice) == .invalidParameters)
    #expect(reason(twice) == "message.android.collapse_key: given twice, in both spellings at byte 59")
  }

  @Test("the blocks are accepted beside GCM's fields too")
  func besideGCM() throws {
    let request = try request(#""apns": {"headers": {"apns-priority": "5"}}, "android": {"ttl": "0s"}, "webpush": {}"#).get()
    #expect(request.shape == .gcm)
    #expect(request.apnsHeader(.apnsPriority).map(request.document.text) == "5")
    #expect(request.apnsHeader(.apnsTopic) == nil)
    #expect(request.androidTimeToLive == 0)
    #expect(request.apns(.payload) == nil)
  }

  @Test("FCM v1 targets are one of token, fid, topic and condition")
  func targets() throws {
    func message(_ members: String) -> Result<SendRequest, Rejection> { parse("{\"message\": {\(members)}}") }
    #expect(try message(#""topic": "news""#).get().targets == .one(.topic(Array("news".utf8))))
    #expect(try message(#""token": "\#(apnsToken)""#).get().targets == .one(.apns(token: Array(apnsToken.utf8)[...])))
    guard case .condition = try message(#""condition": "'a' in topics""#).get().targets else {
      Issue.record("not a condition")
      return
    }
    let fid = TargetTests.fid
    #expect(try message(#""fid": "\#(fid)""#).get().targets == .one(.fcm(token: Array("fid:\(fid)".utf8)[...])))
    #expect(try message(#""token": "fid:\#(fid)""#).get().targets == .one(.fcm(token: Array("fid:\(fid)".utf8)[...])))
    #expect(try message(#""token": "fcm:/topics/news""#).get().targets == .one(.fcmTopics(Array("/topics/news".utf8)[...])))
    #expect(reason(message(#""fid": 5"#)) == "message.fid: expected a string, found a number at byte 20")
    #expect(
      reason(message(#""fid": "fid:\#(fid)""#))
        == "message.fid: an installation's id has 22 of the characters A-Z a-z 0-9 _ -, the first of them c, d, e or f at byte 20"
    )
    #expect(code(message(#""fid": "\#(fid)x""#)) == .invalidRegistration)
    #expect(code(message(#""fid": """#)) == .missingRegistration)
    #expect(code(message(#""fid": "\#(fid)", "token": "a""#)) == .invalidParameters)
    #expect(code(message(#""fid": "\#(fid)", "topic": "a""#)) == .invalidParameters)
    #expect(code(message("")) == .missingRegistration)
    #expect(code(message(#""token": """#)) == .missingRegistration)
    #expect(code(message(#""token": "a", "topic": "b""#)) == .invalidParameters)
    #expect(code(message(#""topic": "/topics/news""#)) == .invalidRegistration)
    #expect(code(message(#""token": "/topics/news""#)) == .invalidRegistration)
    #expect(code(message(#""token": "a b""#)) == .invalidRegistration)
    #expect(code(message(#""to": "a""#)) == .invalidParameters)
    #expect(code(parse(#"{"validate_only": true}"#)) == .invalidParameters)
    #expect(code(parse(#"{"message": {"token": "a"}, "to": "b"}"#)) == .invalidParameters)
    #expect(code(parse(#"{"message": []}"#)) == .invalidParameters)
    #expect(code(parse(#"{"message": null}"#)) == .invalidParameters)
  }

  @Test(
    "APNs headers outside the list, or with values that APNs refuses, are refused here",
    arguments: [
      (#"{"authorization": "bearer x"}"#, "apns.headers.authorization: unknown key"),
      (#"{"apns-channel-id": "x"}"#, "apns.headers.apns-channel-id: unknown key"),
      (#"{":path": "/"}"#, #"apns.headers.":path": unknown key"#),
      (#"{"apns-priority": 10}"#, "apns.headers.apns-priority: expected a string, found a number"),
      (#"{"apns-priority": "7"}"#, "apns.headers.apns-priority: expected 1, 5 or 10"),
      (#"{"apns-push-type": "Alert"}"#, "apns.headers.apns-push-type: expected one of alert"),
      (#"{"apns-id": "123E4567-e89b-12d3-a456-426614174000"}"#, "apns.headers.apns-id: expected a UUID"),
      (#"{"apns-id": "123e4567e89b12d3a456426614174000"}"#, "apns.headers.apns-id: expected a UUID"),
      (#"{"apns-expiration": "-1"}"#, "apns.headers.apns-expiration: expected UNIX seconds"),
      (#"{"apns-expiration": "1e9"}"#, "apns.headers.apns-expiration: expected UNIX seconds"),
      (#"{"apns-topic": "a\r\nb"}"#, "apns.headers.apns-topic: expected a bundle ID"),
      (#"{"apns-collapse-id": ""}"#, "apns.headers.apns-collapse-id: expected 1 to 64 bytes"),
      (#"{"apns-collapse-id": "a\nb"}"#, "apns.headers.apns-collapse-id: expected 1 to 64 bytes"),
      (
        #"{"apns-collapse-id": "\#(String(repeating: "雑", count: 22))"}"#,
        "apns.headers.apns-collapse-id: expected 1 to 64 bytes"
      ),
      ("[]", "apns.headers: expected an object, found an array"),
    ])
  func headers(value: String, rule: String) {
    let result = request("\"apns\": {\"headers\": \(value)}")
    #expect(code(result) == .invalidParameters)
    #expect(reason(result).hasPrefix(rule), "\(reason(result))")
  }

  @Test("every push type of Apple's table is accepted, and a collapse id of 64 bytes")
  func pushTypes() {
    #expect(APNsHeader.pushTypes.count == 11)
    for type in APNsHeader.pushTypes { #expect(code(request(#""apns": {"headers": {"apns-push-type": "\#(type)"}}"#)) == nil) }
    #expect(code(request(#""apns": {"headers": {"apns-collapse-id": "\#(String(repeating: "a", count: 64))"}}"#)) == nil)
    #expect(
      code(request(#""apns": {"headers": {"apns-collapse-id": "\#(String(repeating: "a", count: 65))"}}"#))
        == .invalidParameters)
  }

  @Test(
    "wrong types in the blocks are refused with their path",
    arguments: [
      (#""apns": 5"#, "apns: "), (#""apns": {"payload": "x"}"#, "apns.payload: "),
      (#""apns": {"payload": {"aps": []}}"#, "apns.payload.aps: "),
      (#""apns": {"live_activity_token": "0"}"#, "apns.live_activity_token: "), (#""apns": {"x": 1}"#, "apns.x: "),
      (#""android": {"priority": "urgent"}"#, "android.priority: "), (#""android": {"data": {"a": 1}}"#, "android.data.a: "),
      (#""android": {"collapse_key": "a\nb"}"#, "android.collapse_key: "),
      (#""android": {"direct_boot_ok": "true"}"#, "android.direct_boot_ok: "),
      (#""android": {"notification": {"title": 1}}"#, "android.notification.title: "),
      (#""android": {"notification": {"title_loc_args": "[]"}}"#, "android.notification.title_loc_args: "),
      (
        #""android": {"notification": {"light_settings": {"color": {"red": 2}}}}"#,
        "android.notification.light_settings.color.red: "
      ),
      (#""android": {"notification": {"vibrate_timings": ["x"]}}"#, "android.notification.vibrate_timings[0]: "),
      (#""android": {"fcm_options": {"analytics_label": "a b"}}"#, "android.fcm_options.analytics_label: "),
      (#""android": {"fcm_options": {"image": "i"}}"#, "android.fcm_options.image: unknown key"),
      (#""android": {"fcm_options": {"link": "https://x"}}"#, "android.fcm_options.link: unknown key"),
      (#""apns": {"fcm_options": {"link": "https://x"}}"#, "apns.fcm_options.link: unknown key"),
      (#""apns": {"fcm_options": {"image": 5}}"#, "apns.fcm_options.image: expected a string"),
      (#""apns": {"fcm_options": {"analytics_label": "a b"}}"#, "apns.fcm_options.analytics_label: expected at most 50"),
      (#""webpush": {"fcm_options": {"image": "i"}}"#, "webpush.fcm_options.image: unknown key"),
      (#""webpush": {"fcm_options": {"link": "http://x"}}"#, "webpush.fcm_options.link: expected an https URL"),
      (#""webpush": {"fcm_options": {"link": "/path"}}"#, "webpush.fcm_options.link: expected an https URL"),
      (#""webpush": {"fcm_options": {"analytics_label": 5}}"#, "webpush.fcm_options.analytics_label: expected at most 50"),
      (#""webpush": {"headers": {"TTL": 5}}"#, "webpush.headers.TTL: "),
      (#""webpush": {"notification": "x"}"#, "webpush.notification: "),
    ])
  func wrongTypes(members: String, path: String) {
    let result = request(members)
    #expect(code(result) == .invalidParameters)
    #expect(reason(result).hasPrefix(path), "\(reason(result))")
  }

  @Test("FCM's options are accepted where FCM has them, in both spellings")
  func options() throws {
    for block in [
      #""apns": {"fcm_options": {"analytics_label": "l", "image": "i"}}"#, #""apns": {"fcmOptions": {"analyticsLabel": "l"}}"#,
      #""webpush": {"fcm_options": {"analytics_label": "l", "link": "https://x/y"}}"#,
      #""webpush": {"fcm_options": {"link": null}}"#, #""android": {"fcm_options": {"analyticsLabel": "l"}}"#,
    ] { #expect(code(request(block)) == nil) }
    #expect(code(parse(#"{"message": {"token": "t", "fcm_options": {"analytics_label": "l"}}}"#)) == nil)
    for key in ["image", "link"] {
      let result = parse(#"{"message": {"token": "t", "fcm_options": {"\#(key)": "https://x"}}}"#)
      #expect(code(result) == .invalidParameters)
      #expect(reason(result).hasPrefix("message.fcm_options.\(key): unknown key"), "\(reason(result))")
    }
  }

  @Test(
    "android.ttl is a duration from 0 s to four weeks, rounded down",
    arguments: [
      ("0s", 0), ("3.5s", 3), ("2419200s", 2_419_200), ("2419200.000s", 2_419_200), ("2419199.999999999s", 2_419_199),
      ("2419200.000000001s", nil), ("2419200.1s", nil), ("2419201s", nil), ("-1s", nil),
      ("3", nil), ("s", nil), (".5s", nil),
      ("1.s", nil), ("1.0000000000s", nil), ("1e3s", nil), ("9999999999999s", nil), ("1 s", nil),
    ] as [(String, Int?)])
  func ttl(text: String, seconds: Int?) {
    let result = request(#""android": {"ttl": "\#(text)"}"#)
    #expect(code(result) == (seconds == nil ? .invalidTTL : nil))
    #expect((try? result.get().androidTimeToLive) == seconds)
  }

  /// Every field of it, each with a value at the end of its range.
  static let androidV2 = """
    {"collapse_key": "\(String(repeating: "k", count: 1024))", "ttl": "2419200s", "restricted_package_name": "com.example.app",
      "data": {"a": "b"}, "fcm_options": {"analytics_label": "\(String(repeating: "l", count: 50))"}, "direct_boot_ok": true,
      "bandwidth_constrained_ok": false, "restricted_satellite_ok": true,
      "remote_notification": {"mutable_content": true, "use_as_v1_data_message": false, "notification": {
        "title": "T", "body": "B", "icon": "i", "color": "#00ff00", "sound": "s", "tag": "t", "click_action": "c", "title_loc_key": "k",
        "title_loc_args": ["a"], "body_loc_key": "k", "body_loc_args": [], "channel_id": "c", "ticker": "t",
        "image": "https://x", "sticky": true, "local_only": false, "default_sound": true, "default_vibrate_timings": false,
        "default_light_settings": true, "id": -2147483648, "notification_count": 2147483647, "event_time": "2026-11-20T21:22:00Z",
        "vibrate_timings": ["0.5s"], "light_settings": {"color": {"red": 1}, "light_on_duration": "1s"}, "visibility": "SECRET",
        "notification_priority": "PRIORITY_MAX"}}}
    """

  @Test("android_v2 has every field of FCM's, in both shapes")
  func v2() throws {
    for result in [
      request("\"android_v2\": \(Self.androidV2)"),
      parse("{\"message\": {\"token\": \"t\", \"androidV2\": \(Self.androidV2)}}"),
    ] {
      let request = try result.get()
      #expect(request.androidTimeToLive == 2_419_200)
      #expect(request.android(.collapseKey) != nil && request.android(.restrictedSatelliteOk) != nil)
      for key in AndroidNotificationKey.allCases where key != .proxy && key != .bypassProxyNotification {
        #expect(request.androidNotification(key) != nil, "\(key)")
      }
    }
    let sync = try request(#""android_v2": {"background_sync": {}, "remote_notification": null}, "android": null"#).get()
    #expect(sync.androidTimeToLive == nil)
  }

  @Test(
    "unknown and invalid fields of android_v2 are refused with their place",
    arguments: [
      ("5", "android_v2: expected an object, found a number"),
      ("{}", "android_v2: expected remote_notification or background_sync in it"),
      (#"{"ttl": "0s"}"#, "android_v2: expected remote_notification or background_sync in it"),
      (
        #"{"remote_notification": {}, "background_sync": {}}"#,
        "android_v2.background_sync: beside remote_notification, expected only one of the two"
      ),
      (#"{"background_sync": true}"#, "android_v2.background_sync: expected an object, found a boolean"),
      (#"{"background_sync": {"x": 1}}"#, "android_v2.background_sync.x: unknown key"),
      (#"{"background_sync": {}, "priority": "HIGH"}"#, "android_v2.priority: unknown key"),
      (#"{"background_sync": {}, "notification": {}}"#, "android_v2.notification: unknown key"),
      (
        #"{"background_sync": {}, "collapse_key": "\#(String(repeating: "k", count: 1025))"}"#,
        "android_v2.collapse_key: 1025 bytes, at most 1024 allowed"
      ),
      (#"{"background_sync": {}, "data": {"a": 1}}"#, "android_v2.data.a: expected a string, found a number"),
      (#"{"background_sync": {}, "direct_boot_ok": "true"}"#, "android_v2.direct_boot_ok: expected a boolean, found a string"),
      (#"{"background_sync": {}, "fcm_options": {"image": "i"}}"#, "android_v2.fcm_options.image: unknown key"),
      (
        #"{"background_sync": {}, "fcm_options": {"analytics_label": "\#(String(repeating: "l", count: 51))"}}"#,
        "android_v2.fcm_options.analytics_label: expected at most 50"
      ),
      (#"{"remote_notification": "x"}"#, "android_v2.remote_notification: expected an object, found a string"),
      (#"{"remote_notification": {"title": "t"}}"#, "android_v2.remote_notification.title: unknown key"),
      (
        #"{"remote_notification": {"mutable_content": 1}}"#,
        "android_v2.remote_notification.mutable_content: expected a boolean, found a number"
      ),
      (
        #"{"remote_notification": {"notification": {"proxy": "ALLOW"}}}"#,
        "android_v2.remote_notification.notification.proxy: unknown key"
      ),
      (
        #"{"remote_notification": {"notification": {"bypass_proxy_notification": true}}}"#,
        "android_v2.remote_notification.notification.bypass_proxy_notification: unknown key"
      ),
      (
        #"{"remote_notification": {"notification": {"id": 2147483648}}}"#,
        "android_v2.remote_notification.notification.id: expected an integer from -2147483648 to 2147483647"
      ),
      (
        #"{"remote_notification": {"notification": {"id": "7"}}}"#,
        "android_v2.remote_notification.notification.id: expected a number, found a string"
      ),
      (
        #"{"remote_notification": {"notification": {"notification_count": -2147483649}}}"#,
        "android_v2.remote_notification.notification.notification_count: expected an integer from"
      ),
      (
        #"{"remote_notification": {"notification": {"image": "http://x"}}}"#,
        "android_v2.remote_notification.notification.image: expected an https URL"
      ),
      (
        #"{"remote_notification": {"notification": {"image": "https://"}}}"#,
        "android_v2.remote_notification.notification.image: expected an https URL"
      ),
    ])
  func v2Refused(value: String, rule: String) {
    let result = request("\"android_v2\": \(value)")
    #expect(code(result) == .invalidParameters)
    #expect(reason(result).hasPrefix(rule), "\(reason(result))")
  }

  @Test("android and android_v2 exclude each other, whatever they have")
  func v2BesideV1() {
    for (members, place) in [
      (#""android": {}, "android_v2": {"background_sync": {}}"#, "android_v2: "),
      (#""android_v2": {}, "android": {}"#, "android_v2: "),
    ] {
      #expect(code(request(members)) == .invalidParameters)
      #expect(reason(request(members)).hasPrefix(place + "beside android, expected only one of the two"))
    }
    let v1 = parse(#"{"message": {"token": "t", "android": {}, "androidV2": {"backgroundSync": {}}}}"#)
    #expect(reason(v1).hasPrefix("message.androidV2: beside android, expected only one of the two"))
    #expect(code(request(#""android_v2": {"background_sync": {}, "ttl": "2419201s"}"#)) == .invalidTTL)
    #expect(code(request(#""android_v2": {"background_sync": {}, "ttl": 60}"#)) == .invalidTTL)
    #expect(code(request(#""android_v2": {"background_sync": {}, "restricted_package_name": "a b"}"#)) == .invalidPackageName)
    #expect(code(request(#""android_v2": {"background_sync": {}, "data": {"google.x": "v"}}"#)) == .invalidDataKey)
    #expect(code(request(#""androidV2": {"background_sync": {}}"#)) == .invalidParameters)
    #expect(reason(request(#""android": {"notification": {"id": 1}}"#)).hasPrefix("android.notification.id: unknown key"))
  }

  @Test("reserved data keys and values that aren't strings are refused in FCM v1's shape")
  func v1Data() {
    for name in ["from", "message_type", "google.x", "gcm.notification.x", "gcm.n\\u006ftification."] {
      #expect(code(parse(#"{"message": {"token": "t", "data": {"\#(name)": "v"}}}"#)) == .invalidDataKey)
    }
    for name in ["fromx", "google", "googlex", "gcm", "gcm.x", "gcm.notification", "gcmx", "Google.x"] {
      #expect(code(parse(#"{"message": {"token": "t", "data": {"\#(name)": "v"}}}"#)) == nil, "\(name)")
      #expect(code(request("\"data\": {\"\(name)\": \"v\"}")) == (name.hasPrefix("g") ? .invalidDataKey : nil), "\(name)")
    }
    #expect(code(parse(#"{"message": {"token": "t", "data": {"x": 1}}}"#)) == .invalidParameters)
    #expect(code(request(#""android": {"data": {"google.x": "v"}}"#)) == .invalidDataKey)
    #expect(code(request(#""data": {"x": 1, "y": {"z": null}, "n": null}"#)) == nil)
  }
}
