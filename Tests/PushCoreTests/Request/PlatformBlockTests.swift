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
    "apns": {"headers": {"apns-push-type": "alert", "apns-topic": "com.example.app", "apns-priority": "10", "apns-expiration": "0",
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
    #expect(request.targets == .one(.fcm(token: Array("abc:def".utf8))))
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

  @Test("lowerCamelCase is the same name as snake_case in FCM v1's shape, and both at once are one too many")
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

  @Test("the blocks stand beside GCM's fields as well")
  func besideGCM() throws {
    let request = try request(#""apns": {"headers": {"apns-priority": "5"}}, "android": {"ttl": "0s"}, "webpush": {}"#).get()
    #expect(request.shape == .gcm)
    #expect(request.apnsHeader(.apnsPriority).map(request.document.text) == "5")
    #expect(request.apnsHeader(.apnsTopic) == nil)
    #expect(request.androidTimeToLive == 0)
    #expect(request.apns(.payload) == nil)
  }

  @Test("FCM v1 targets are one of token, topic and condition")
  func targets() throws {
    func message(_ members: String) -> Result<SendRequest, Rejection> { parse("{\"message\": {\(members)}}") }
    #expect(try message(#""topic": "news""#).get().targets == .one(.topic(Array("news".utf8))))
    #expect(try message(#""token": "\#(apnsToken)""#).get().targets == .one(.apns(token: Array(apnsToken.utf8))))
    guard case .condition = try message(#""condition": "'a' in topics""#).get().targets else {
      Issue.record("not a condition")
      return
    }
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
    "APNs header fields outside the list, or with values that APNs refuses, are refused here",
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
      (#""webpush": {"headers": {"TTL": 5}}"#, "webpush.headers.TTL: "),
      (#""webpush": {"notification": "x"}"#, "webpush.notification: "),
    ])
  func wrongTypes(members: String, path: String) {
    let result = request(members)
    #expect(code(result) == .invalidParameters)
    #expect(reason(result).hasPrefix(path), "\(reason(result))")
  }

  @Test(
    "android.ttl is a duration from 0 s to four weeks, rounded down",
    arguments: [
      ("0s", 0), ("3.5s", 3), ("2419200s", 2_419_200), ("2419200.999999999s", 2_419_200), ("2419201s", nil), ("-1s", nil),
      ("3", nil), ("s", nil), (".5s", nil),
      ("1.s", nil), ("1.0000000000s", nil), ("1e3s", nil), ("9999999999999s", nil), ("1 s", nil),
    ] as [(String, Int?)])
  func ttl(text: String, seconds: Int?) {
    let result = request(#""android": {"ttl": "\#(text)"}"#)
    #expect(code(result) == (seconds == nil ? .invalidTTL : nil))
    #expect((try? result.get().androidTimeToLive) == seconds)
  }

  @Test("reserved data keys and values that aren't strings are refused in FCM v1's shape")
  func v1Data() {
    #expect(code(parse(#"{"message": {"token": "t", "data": {"gcm.x": "v"}}}"#)) == .invalidDataKey)
    #expect(code(parse(#"{"message": {"token": "t", "data": {"x": 1}}}"#)) == .invalidParameters)
    #expect(code(request(#""android": {"data": {"google.x": "v"}}"#)) == .invalidDataKey)
    #expect(code(request(#""data": {"x": 1, "y": {"z": null}, "n": null}"#)) == nil)
  }
}
