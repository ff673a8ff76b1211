import Testing

@testable import PushCore

/// A Live Activity runs on one device, and its pushes must have its content.
@Suite struct LiveActivityRequestTests {
  static let block = #""apns":{"live_activity_token":"00ff"}"#
  static let registration = "pf1r~00000000000000000000000000"

  @Test(
    "an activity's token may accompany one device of any form",
    arguments: [
      #""to":"\#(apnsToken)""#, #""to":"apns:00ff""#, #""to":"T:1""#, #""to":"fcm:T:1""#, #""to":"fid:cXyZ0123456789_-AbCdEf""#,
      #""to":"\#(registration)""#, #""notification_key":"\#(registration)""#, #""registration_ids":["\#(apnsToken)"]"#,
      #""registration_ids":["\#(registration)"]"#, #""registration_ids":["/topics/"]"#,
    ])
  func oneDevice(target: String) throws {
    _ = try parsed("{\(target),\(Self.block)}")
  }

  @Test(
    "it is refused beside targets that may be several devices, or none",
    arguments: [
      #""to":"/all""#, #""to":"/topics/a""#, #""to":"/users/a""#, #""to":"pf1g~00000000000000000000000000""#,
      #""to":"apns-channel:bm8=""#,
      #""to":"fcm:/topics/a""#, #""to":"fcm:'a' in topics""#, #""condition":"'a' in topics""#,
      #""notification_key":"pf1g~00000000000000000000000000""#, #""registration_ids":["apns:00ff","apns:00fe"]"#,
      #""registration_ids":["apns:00ff","apns:00ff"]"#, #""registration_ids":["/topics/a"]"#, #""registration_ids":["/all"]"#,
      #""registration_ids":["/users/a"]"#, #""registration_ids":["apns-channel:bm8="]"#,
      #""registration_ids":["fcm:/topics/a"]"#, #""registration_ids":["fcm:'a' in topics"]"#,
    ])
  func moreDevices(target: String) {
    let refused = #expect(throws: Rejection.self) { try parsed("{\(target),\(Self.block)}") }
    #expect(refused?.code == .invalidParameters)
    #expect(
      refused?.reason.hasPrefix("apns.live_activity_token: expected one device as the request's target, an activity is on one")
        == true, "\(refused?.reason ?? "")")
  }

  @Test("the same rules apply in FCM v1's shape")
  func v1() throws {
    _ = try parsed(#"{"message":{"token":"T:1",\#(Self.block)}}"#)
    _ = try parsed(#"{"message":{"fid":"cXyZ0123456789_-AbCdEf",\#(Self.block)}}"#)
    for target in [#""topic":"a""#, #""condition":"'a' in topics""#, #""token":"/users/a""#, #""token":"apns-channel:bm8=""#] {
      let refused = #expect(throws: Rejection.self) { try parsed(#"{"message":{\#(target),\#(Self.block)}}"#) }
      #expect(refused?.code == .invalidParameters)
      #expect(refused?.reason.hasPrefix("message.apns.live_activity_token: expected one device") == true)
    }
  }

  @Test("it is refused beside another push type")
  func pushType() throws {
    _ = try accepted(#""apns":{"live_activity_token":"00ff","headers":{"apns-push-type":"liveactivity"}}"#)
    for type in APNsHeader.pushTypes where type != "liveactivity" {
      let refused = #expect(throws: Rejection.self) {
        try accepted(#""apns":{"live_activity_token":"00ff","headers":{"apns-push-type":"\#(type)"}}"#)
      }
      #expect(refused?.code == .invalidParameters)
      #expect(
        refused?.reason.hasPrefix("apns.live_activity_token: beside apns-push-type \(type), expected liveactivity or none")
          == true, "\(refused?.reason ?? "")")
    }
  }

  static let start = #""event":"start","attributes-type":"A","attributes":{},"alert":{"title":"t","body":"b"}"#

  @Test(
    "without a content-state neither its start nor its update is accepted", arguments: [start, #""event":"update""#],
    ["", #","content-state":null"#])
  func stateless(event: String, state: String) throws {
    let request = try accepted(
      #""apns":{"headers":{"apns-push-type":"liveactivity"},"payload":{"aps":{"timestamp":1,\#(event)\#(state)}}}"#)
    let refused = #expect(throws: Rejection.self) { try apns(request) }
    #expect(refused?.code == .invalidParameters)
    #expect(
      refused?.reason == "apns.payload.aps.content-state: missing, a live activity's start and update need it",
      "\(refused?.reason ?? "")")
  }

  @Test("an end needs none, and with one every event is accepted")
  func stateful() throws {
    let end = try accepted(#""apns":{"live_activity_token":"00ff","payload":{"aps":{"timestamp":1,"event":"end"}}}"#)
    #expect(utf8(try apns(end).payload) == #"{"aps":{"timestamp":1,"event":"end"}}"#)
    for event in [Self.start, #""event":"update""#, #""event":"end""#] {
      let request = try accepted(#""apns":{"payload":{"aps":{"timestamp":1,\#(event),"content-state":{}}}}"#)
      #expect(utf8(try apns(request).pushType) == "liveactivity")
    }
  }

  @Test("a channel's update needs one, its end doesn't")
  func channel() throws {
    func push(_ aps: String) throws(Rejection) -> APNsTemplate {
      let parsed = SendRequest.parse(Array(#"{"to":"apns-channel:bm8=","apns":{"payload":{"aps":{\#(aps)}}}}"#.utf8))
      let request = try parsed.get()
      var report: LossReport?
      return try APNsTemplate(
        request, settings: APNsSettings(topic: "com.example.app"), context: context(request), isBroadcast: true, report: &report
      )
    }
    let refused = #expect(throws: Rejection.self) { try push(#""timestamp":1,"event":"update""#) }
    #expect(refused?.reason.hasPrefix("apns.payload.aps.content-state: missing") == true, "\(refused?.reason ?? "")")
    _ = try push(#""timestamp":1,"event":"update","content-state":{}"#)
    _ = try push(#""timestamp":1,"event":"end""#)
  }
}
