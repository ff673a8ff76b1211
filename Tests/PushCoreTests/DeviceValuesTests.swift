import Testing

@testable import PushCore

@Suite("A push's values for each device")
struct DeviceValuesTests {
  private func template(_ members: String, isUPMC: Bool = false, isKept: Bool = false) throws -> APNsTemplate {
    let request = try accepted(members)
    var report: LossReport?
    var context = context(request)
    context.isKept = isKept
    return try APNsTemplate(
      request, settings: APNsSettings(topic: "com.example.app", isUPMC: isUPMC), context: context, report: &report
    )
  }

  @Test("auto is the badge of each device's counter, on iPhones and on Android phones")
  func automatic() throws {
    let members = #""notification":{"body":"b","badge":"auto"}"#
    let template = try template(members)
    for badge in [1, 42, Int64(Int32.max)] {
      let push = template.stamp(token: Array(apnsToken.utf8)[...], badge: badge)
      #expect(utf8(push.payload) == #"{"aps":{"alert":{"body":"b"},"badge":\#(badge)}}"#)
    }
    var report: LossReport?
    let request = try accepted(members)
    let fcm = try FCMTemplate(request, context: context(request), report: &report)
    #expect(
      try utf8(fcm.body(token: Array("T:1".utf8)[...], badge: 42))
        == withApple(
          #"{"message":{"notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"2419140s","notification":{"notification_count":42}},"apns":{"payload":{"aps":{"badge":42}}},"token":"T:1"}}"#,
          request))
    #expect(
      try losses(request, .apns) == ["GS-096 notification.badge converted: aps.badge, the device's counter plus one"])
  }

  @Test("a block's own badge replaces auto, and auto is no count of Android's")
  func overridden() throws {
    let template = try template(#""notification":{"body":"b","badge":"auto"},"apns":{"payload":{"aps":{"badge":9}}}"#)
    #expect(utf8(template.stamp(token: []).payload) == #"{"aps":{"alert":{"body":"b"},"badge":9}}"#)
    // Nothing is counted, so it is Android's number too.
    let number = try fcm(accepted(#""notification":{"body":"b","badge":"auto"},"apns":{"payload":{"aps":{"badge":9}}}"#))
    #expect(number.contains(#""notification":{"notification_count":9}"#) && number.contains(#""aps":{"badge":9}"#))
    let none = try fcm(accepted(#""notification":{"body":"b","badge":"auto"},"apns":{"payload":{"aps":{"badge":null}}}"#))
    #expect(!none.contains("notification_count") && !none.contains("badge"))
    #expect(throws: Rejection.self) { try accepted(#""notification":{"notification_count":"auto"}"#) }
    #expect(throws: Rejection.self) { try accepted(#""notification":{"badge":"Auto"}"#) }
  }

  @Test(
    "counters are set to the number that iPhones show, from any field of the request; a removed badge changes none",
    arguments: [
      ("", "none"), (#""notification":{"badge":5}"#, "5"), (#""notification":{"badge":"auto"}"#, "auto"),
      (#""apns":{"payload":{"aps":{"badge":50}}}"#, "50"),
      (#""notification":{"badge":5},"apns":{"payload":{"aps":{"badge":6}}}"#, "6"),
      (#""notification":{"badge":"auto"},"apns":{"payload":{"aps":{"badge":0}}}"#, "0"),
      (#""notification":{"badge":5},"apns":{"payload":{"aps":{"badge":null}}}"#, "none"),
      (#""notification":{"badge":"auto"},"apns":{"payload":{"aps":{"badge":null}}}"#, "none"),
      (#""notification":{"badge":"auto"},"apns":{"payload":{"aps":{"sound":"s"}}}"#, "auto"),
    ])
  func counter(members: String, expected: String) throws {
    let counter =
      switch try accepted(members).badgeOfCounter {
      case nil: "none"
      case .automatic?: "auto"
      case .number(let number)?: String(number)
      }
    #expect(counter == expected)
  }

  @Test("a payload that fits only with the shortest badge is refused")
  func limit() throws {
    func body(_ bytes: Int) -> String { #""notification":{"body":"\#(String(repeating: "b", count: bytes))","badge":"auto"}"# }
    let frame = #"{"aps":{"alert":{"body":""},"badge":2147483647}}"#.utf8.count
    var limits = RequestLimits()
    limits.notificationBytes = 65_536
    func made(_ bytes: Int) throws -> APNsTemplate {
      let request = try parsed(#"{"to":"\#(apnsToken)",\#(body(bytes))}"#, limits: limits)
      var report: LossReport?
      return try APNsTemplate(
        request, settings: APNsSettings(topic: "com.example.app"), context: context(request), report: &report
      )
    }
    #expect(try made(4096 - frame).stamp(token: [], badge: Int64(Int32.max)).payload.count == 4096)
    #expect(throws: Rejection.self) { try made(4097 - frame) }
  }

  @Test("an alert has its mps object, a sound and mutable-content if the app's library acknowledges it (UP-19, UP-20)")
  func mps() throws {
    let template = try template(
      #""notification":{"title":"t","badge":2},"data":{"ext":"6|x|https://x","k":"v"}"#, isUPMC: true, isKept: true)
    let push = template.stamp(token: Array(apnsToken.utf8)[...])
    let key = MessageKey.of(Array("m-1".utf8))
    var pushKey: [UInt8] = []
    MessageKey.appendPushKey(of: key, token: Array(apnsToken.utf8).span, to: &pushKey)
    #expect(
      utf8(push.payload)
        == #"{"aps":{"alert":{"title":"t"},"badge":2,"sound":"default","mutable-content":1},"mps":{"appid":"com.example.app","sender":"admin","seqno":"\#(MessageKey.number(of: key))","ext":"6|x|https://x","senddate":"2026112021","db_in":"Y","pushkey":"\#(utf8(pushKey))"},"k":"v"}"#
    )
    #expect(pushKey.count == 40 && MessageKey.key(ofPushKey: pushKey) == key)
    #expect(MessageKey.key(ofPushKey: Array(utf8(pushKey).uppercased().utf8)) == key)
    #expect(MessageKey.keys(ofNumber: MessageKey.number(of: key))?.contains(key) == true)
    let other = template.stamp(token: Array(repeating: 0x61, count: 64)[...])
    #expect(push.payload != other.payload && push.payload.count == other.payload.count)
  }

  @Test("an Android phone gets the object as a string in its data, and its bytes count (UP-19)")
  func mpsForAndroid() throws {
    let settings = FCMSettings(upmcTopic: "com.example.app")
    var pushKey: [UInt8] = []
    MessageKey.appendPushKey(of: MessageKey.of(Array("m-1".utf8)), token: Array("T:1".utf8).span, to: &pushKey)
    func message(_ members: String) throws -> String {
      let request = try accepted(members)
      var report: LossReport? = LossReport()
      let template = try FCMTemplate(request, settings: settings, context: context(request), report: &report)
      #expect(report?.entries.contains { $0.field.hasPrefix("data.mps") } == !members.contains("mps"))
      return utf8(template.body(token: Array("T:1".utf8)[...]))
    }
    let number = MessageKey.number(of: MessageKey.of(Array("m-1".utf8)))
    let object =
      #""mps":"{\"appid\":\"com.example.app\",\"sender\":\"admin\",\"seqno\":\"\#(number)\",\"senddate\":\"2026112021\",\"db_in\":\"N\",\"pushkey\":\"\#(utf8(pushKey))\"}""#
    #expect(try message(#""notification":{"title":"t"}"#).contains(#""data":{\#(object)}"#))
    #expect(try message(#""data":{"ext":"e"}"#).contains(#""data":{"ext":"e",\#(object)}"#))
    let own = try message(#""data":{"k":"v"},"android":{"data":{"a":"b"}}"#)
    #expect(own.contains(#""data":{"k":"v"},"#) && own.contains(#""data":{"a":"b",\#(object)}"#))
    #expect(try message(#""data":{"mps":"mine"}"#).contains(#""data":{"mps":"mine"}"#))
    let bytes = try #require(JSONDocument(Array("{\(object)}".utf8)).value("mps", of: 0))
    let document = try JSONDocument(Array("{\(object)}".utf8))
    let room = 4_096 - 3 - document.string(bytes).count - 1
    #expect(throws: Never.self) { try message(#""data":{"k":"\#(String(repeating: "x", count: room))"}"#) }
    #expect(throws: Rejection.self) { try message(#""data":{"k":"\#(String(repeating: "x", count: room + 1))"}"#) }
  }

  @Test("a badge that an application counts by default is left out for a device without a counter")
  func badgeByDefault() throws {
    var limits = RequestLimits()
    limits.countsBadges = true
    func filled(_ members: String) throws -> [String] {
      let request = try SendRequest.parse(Array(#"{"to":"fcm:T",\#(members)}"#.utf8), limits: limits).get()
      var report: LossReport?
      let fcm = try FCMTemplate(request, context: context(request), report: &report)
      let apns = try APNsTemplate(
        request, settings: APNsSettings(topic: "com.example.app"), context: context(request), report: &report
      )
      return ([7, nil] as [Int64?]).flatMap { badge in
        [utf8(apns.stamp(token: [], badge: badge).payload), utf8(fcm.body(token: [], badge: badge))]
      }
    }
    let shown = try filled(#""notification":{"body":"{,"}"#)
    #expect(shown[0] == #"{"aps":{"alert":{"body":"{,"},"badge":7}}"# && shown[2] == #"{"aps":{"alert":{"body":"{,"}}}"#)
    #expect(shown[1].contains(#""notification":{"notification_count":7}"#) && shown[1].contains(#""aps":{"badge":7}"#))
    #expect(!shown[3].contains("badge") && !shown[3].contains("notification_count"))
    let withSound = try filled(#""notification":{"body":"b","sound":"s"}"#)
    #expect(withSound[3].contains(#""aps":{"sound":"s"}"#) && withSound[3].contains(#""notification":{"sound":"s"}"#))
    for silent in [#""data":{"a":"b"}"#, #""notification":{"body":"b"},"apns":{"headers":{"apns-push-type":"voip"}}"#] {
      #expect(try !filled(silent).contains { $0.contains("badge") })
    }
  }

  /// `payload` of `apns` in what FCM is sent for the token `T:1`.
  private func behindFCM(_ members: String) throws -> String? {
    let request = try accepted(members)
    var report: LossReport?
    let settings = FCMSettings(upmcTopic: "com.example.app")
    let template = try FCMTemplate(request, settings: settings, context: context(request), report: &report)
    let body = try JSONDocument(template.body(token: Array("T:1".utf8)[...]))
    guard let message = body.value("message", of: body.root), let apns = body.value("apns", of: message),
      let payload = body.value("payload", of: apns)
    else { return nil }
    return utf8(Array(body.bytes[body.source(payload)]))
  }

  @Test("an iPhone behind FCM gets the same beside FCM's translation of notification and data (UP-19, UP-20)")
  func mpsBehindFCM() throws {
    let key = MessageKey.of(Array("m-1".utf8))
    var pushKey: [UInt8] = []
    MessageKey.appendPushKey(of: key, token: Array("T:1".utf8).span, to: &pushKey)
    let object =
      #""mps":{"appid":"com.example.app","sender":"admin","seqno":"\#(MessageKey.number(of: key))","ext":"e","senddate":"2026112021","db_in":"N","pushkey":"\#(utf8(pushKey))"}"#
    #expect(
      try behindFCM(#""notification":{"title":"t"},"data":{"ext":"e"}"#)
        == #"{"aps":{"sound":"default","mutable-content":1},\#(object)}"#)
    #expect(
      try behindFCM(
        #""notification":{"title":"t","badge":2},"data":{"ext":"e"},"apns":{"payload":{"aps":{"sound":"s"},"x":1}}"#)
        == #"{"aps":{"badge":2,"mutable-content":1,"sound":"s"},"x":1,\#(object)}"#)
    #expect(
      try behindFCM(#""notification":{"body":"b"},"data":{"mps":"mine"}"#)
        == #"{"aps":{"sound":"default","mutable-content":1}}"#)
    #expect(try behindFCM(#""content_available":true,"data":{"ext":"e"}"#)?.contains("mps") == false)
  }

  @Test("behind FCM mps repeats data only if there is room for both")
  func roomBehindFCM() throws {
    func members(_ count: Int) -> String {
      #""notification":{"body":"b"},"data":{"ext":"\#(String(repeating: "x", count: count))"}"#
    }
    let frame = try #require(try behindFCM(members(0))).utf8.count
    // FCM counts these keys and values beside the content: body, b, ext, and the object for Android.
    let request = try accepted(members(0))
    let object = MPSObject.text(request, topic: Array("com.example.app".utf8), context(request))
    let counted = 4 + 1 + 3 + FCMMessage.countedBytes(of: object)
    let most = (4_096 - frame - counted) / 2
    #expect(try behindFCM(members(most))?.contains(#""ext":"x"#) == true)
    let without = try #require(try behindFCM(members(most + 1)))
    #expect(without.contains(#""mps":{"#) && !without.contains(#""ext""#))
  }

  @Test("a push that shows nothing has no mps object, and a request's own stays unchanged")
  func withoutMPS() throws {
    for (members, payload) in [
      (#""content_available":true"#, #"{"aps":{"content-available":1}}"#),
      (
        #""notification":{"body":"b","sound":"s"},"data":{"mps":"mine","ext":"e"}"#,
        #"{"aps":{"alert":{"body":"b"},"sound":"s","mutable-content":1},"mps":"mine","ext":"e"}"#
      ),
    ] {
      #expect(utf8(try template(members, isUPMC: true).stamp(token: []).payload) == payload)
    }
  }
}
