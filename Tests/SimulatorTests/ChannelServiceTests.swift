import HTTP2
import TestSupport
import Testing

@testable import Simulator

@Suite("The APNs simulator's broadcast channels")
struct ChannelServiceTests {
  static let names = [
    ":path", "authorization", "apns-channel-id", "apns-push-type", "apns-priority", "apns-expiration", "apns-request-id",
    "apns-topic",
  ]
  static let update = #"{"aps":{"timestamp":1,"event":"update","content-state":{}}}"#

  /// A simulator with one channel of each policy, the ids in the order of the policies.
  private func talk() throws -> (APNsTalk, [String]) {
    let talk = try APNsTalk(names: Self.names)
    let ids = [ChannelRegistry.Policy.storesNothing, .storesLatest].map { policy in
      let id = talk.service.channels.make(for: Array("com.example.app".utf8), policy, id: talk.service.makeChannelID())
      return String(decoding: id ?? [], as: UTF8.self)
    }
    return (talk, ids)
  }

  private func broadcast(
    _ talk: APNsTalk, _ channel: String?, _ headers: [String: String?] = [:], payload: String = ChannelServiceTests.update,
    app: String = "com.example.app"
  ) -> String {
    let usual: [String: String?] = [
      "apns-channel-id": channel, "apns-push-type": "liveactivity", "apns-expiration": "0", "apns-topic": nil,
    ]
    talk.push(0, payload: payload, path: "/4/broadcasts/apps/\(app)", usual.merging(headers) { $1 })
    return talk.reason()
  }

  @Test("a broadcast to a channel is taken, and journaled with the channel in the token's place")
  func accepted() throws {
    let (talk, ids) = try talk()
    #expect(broadcast(talk, ids[0]) == "200 ")
    #expect(broadcast(talk, ids[1], ["apns-expiration": "1764000600", "apns-push-type": "LiveActivity"]) == "200 ")
    #expect(
      broadcast(talk, ids[0], payload: Self.update.replacing("{}", with: #"{"a":"\#(String(repeating: "x", count: 4_900))"}"#))
        == "200 ")
    let entries = talk.service.journal.entries
    #expect(entries.map(\.tokenText) == [ids[0], ids[1], ids[0]] && entries.allSatisfy(\.violations.isEmpty))
    _ = broadcast(talk, ids[0], ["apns-topic": "com.example.app"], payload: Self.update.replacing("update", with: "start"))
    #expect(talk.service.journal.entries.last?.violations.count == 2)
  }

  @Test("what is wrong with a broadcast is said in the order of APNs' checks")
  func refused() throws {
    let (talk, ids) = try talk()
    let steps: [(String, [String: String?])] = [
      ("MissingChannelId", ["apns-channel-id": nil, "apns-push-type": nil]),
      ("MissingPushType", ["apns-channel-id": "bm8=", "apns-push-type": nil, "apns-expiration": nil]),
      ("InvalidPushType", ["apns-channel-id": "bm8=", "apns-push-type": "alert", "apns-expiration": nil]),
      ("BadExpirationDate", ["apns-channel-id": "bm8=", "apns-expiration": nil, "apns-priority": "7"]),
      ("BadPriority", ["apns-channel-id": "bm8=", "apns-priority": "7"]),
      ("ChannelNotRegistered", ["apns-channel-id": "bm8="]), ("BadExpirationDate", ["apns-expiration": "5"]),
      ("BadMessageId", ["apns-request-id": "x"]),
    ]
    for (reason, headers) in steps { #expect(broadcast(talk, ids[0], headers) == #"400 {"reason":"\#(reason)"}"#) }
    #expect(broadcast(talk, ids[0], payload: "") == #"400 {"reason":"PayloadEmpty"}"#)
    let large = Self.update.replacing("{}", with: #"{"a":"\#(String(repeating: "x", count: 5_100))"}"#)
    #expect(broadcast(talk, ids[0], payload: large) == #"413 {"reason":"PayloadTooLarge"}"#)
    #expect(broadcast(talk, ids[0], ["authorization": nil]) == #"403 {"reason":"MissingProviderToken"}"#)
    #expect(broadcast(talk, ids[0], app: "com.example.app.push-type.liveactivity") == #"400 {"reason":"TopicDisallowed"}"#)
    #expect(broadcast(talk, ids[0], app: "com.example.other") == #"400 {"reason":"ChannelNotRegistered"}"#)
    #expect(broadcast(talk, ids[0], app: "") == #"404 {"reason":"BadPath"}"#)
  }

  @Test(
    "a channel needs a policy and its push type, and an application has ten thousand of them",
    arguments: [
      (#"{"message-storage-policy":2,"push-type":"LiveActivity"}"#, "MissingChannelQueueSize"),
      (#"{"push-type":"LiveActivity"}"#, "MissingChannelQueueSize"), (#"{"message-storage-policy":1}"#, "MissingPushType"),
      (#"{"message-storage-policy":1,"push-type":"liveactivity"}"#, "InvalidPushType"), ("[]", "BadRequestPayload"),
      ("", "PayloadEmpty"), (#"{"message-storage-policy":1,"push-type":"LiveActivity"}"#, "CannotCreateChannelConfig"),
    ])
  func creation(_ body: String, _ reason: String) throws {
    let talk = try APNsTalk(names: Self.names)
    for number in 0..<ChannelRegistry.most {
      _ = talk.service.channels.make(for: Array("com.example.app".utf8), .storesLatest, id: Array("\(number)".utf8))
    }
    talk.push(0, payload: body, path: "/1/apps/com.example.app/channels", ["apns-push-type": nil, "apns-topic": nil])
    #expect(talk.reason() == #"400 {"reason":"\#(reason)"}"#)
    talk.push(1, payload: body, path: "/1/apps/com.example.app/all-channels", ["apns-push-type": nil, "apns-topic": nil])
    #expect(talk.reason(1) == #"405 {"reason":"MethodNotAllowed"}"#)
    talk.push(2, payload: body, path: "/1/apps/com.example.app", ["apns-push-type": nil, "apns-topic": nil])
    #expect(talk.reason(2) == #"404 {"reason":"BadPath"}"#)
  }
}
