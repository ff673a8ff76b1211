import AMQP
@testable import DeviceRegistry
import Foundation
import PushCore
import Settings
import Testing

@testable import pushfleet

@Suite("A trace as text")
struct TraceTextTests {
  private static func text(width: Int = .max) throws -> String {
    let line = """
      {"message_id":"7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55","app":"com.example.an-application","outcome":"waits",
       "received_at":"2026-11-20T21:22:00.500Z","published_at":"2026-11-20T21:21:59.000Z","queue":"send.normal",
       "worker":"pushfleet-worker-6d5f8b7c9d-x7k2p:1","waited_ms":1500,"devices":1,"registered":true,
       "pushes":[{"platform":"apns","sent_at":"2026-11-20T21:22:00.600Z","pool":"com.example.an-application APNs production",
        "connection":3,"status":503,"round_trip_ms":12,"error":"Unavailable","reason":"ServiceUnavailable",
        "apns_id":"0d1f6a0a-52f7-4d7e-9a43-7f1c0c1e3b55"}],
       "ended_at":"2026-11-20T21:22:00.700Z","acknowledged":true,"waits_in":"retry.1h","waits_because":"ServiceUnavailable",
       "due_at":"2026-11-20T22:22:00.000Z"}
      """
    let round = try #require(TraceRound(Array(line.utf8)))
    return try TraceText(prefix: "push", width: width).text(of: TraceStory([round], nil))
  }

  @Test("fits a terminal of 80 columns, broken between words below the times, and says all that it says elsewhere")
  func narrow() throws {
    let lines = try Self.text(width: 80).split(separator: "\n").map(String.init)
    #expect(lines.allSatisfy { $0.count < 80 }, "\(lines)")
    #expect(lines[0].hasPrefix("message 7f1c0c1e-52f7-4d7e-9a43-0d1f6a0a3b55, application"))
    let received = try #require(lines.firstIndex { $0.hasPrefix("21:22:00.500  received from push.send.normal by") })
    #expect(lines[received + 1].hasPrefix("              "), "\(lines)")
    func words(_ text: String) -> [Substring] { text.split(whereSeparator: \.isWhitespace) }
    #expect(words(lines.joined(separator: "\n")) == words(try Self.text()))
  }

  @Test("names a refused credential in words")
  func refusedCredential() throws {
    let line = #"{"message_id":"m","pushes":[{"platform":"apns","sent":false,"reason":"unauthorised"}]}"#
    let story = try TraceStory([try #require(TraceRound(Array(line.utf8)))], nil)
    #expect(TraceText(prefix: "push").text(of: story).contains("not processed by the provider: it refuses the credential"))
  }

  @Test("impossible counts don't end a trace, in a round or in the number of rounds left out")
  func trappedCounts() throws {
    let round = try #require(TraceRound(Array(#"{"devices":\#(Int.min),"pushes":[{"token_name":"t"},{}]}"#.utf8)))
    #expect(round.narrowed(to: [["token_name": "t"]]).others == 0)
    let site = try RegistrySite()
    let configuration = try Configuration.load(path: site.configuration, environment: [:])
    let reader = try TraceReader(configuration, subject: TraceSubject(.init(.id, "m-1"), nil))
    for (place, left) in [(0, 0), (1, 3), (1, Int.max), (1, Int.max), (1, -3)] {
      var delivery = Delivery()
      delivery.consumer = place
      delivery.properties.headers = ["x-stream-offset": .integer(place == 0 ? 9 : 1)]
      delivery.body = Array("{\"left_out\":\(left)}\n".utf8)
      reader.delivered(delivery)
    }
    #expect(reader.leftOut == 3 + 2 * (1 << 32))
  }

  @Test("two applications with one message id have a block each, and --app chooses one of them")
  func applications() throws {
    let rounds = try ["a", "b"].map { app in
      try #require(TraceRound(Array(#"{"message_id":"m","app":"\#(app)","outcome":"delivered"}"#.utf8)))
    }
    let lines = try TraceText(prefix: "push").text(of: TraceStory(rounds, nil)).split(separator: "\n")
    #expect(lines.filter { $0.hasPrefix("message m, application") }.count == 2, "\(lines)")
    for (app, chosen) in [(nil, ["a", "b"]), ("b", ["b"]), ("c", [])] as [(String?, [String])] {
      let subject = TraceSubject(.init(.id, "m", app: app), nil)
      #expect(rounds.compactMap { subject.part(of: $0)?.text("app") } == chosen)
    }
  }

  @Test("in a pipe, has a line for each thing that happened")
  func wide() throws {
    let lines = try Self.text().split(separator: "\n")
    #expect(
      lines.contains {
        $0.hasPrefix("21:22:00.700")
          && $0.hasSuffix(
            "moved to push.retry.1h: ServiceUnavailable; the next attempt is at 22:22:00.000 at the earliest")
      }, "\(lines)")
  }

  @Test(
    "says of a broadcast that a device was sent it only where the device acknowledged it: the audience of then isn't known",
    arguments: ["silent", "there"])
  func broadcast(name: String) throws {
    let site = try RegistrySite()
    let store = try site.store()
    let app = Array(RegistrySite.app.utf8)
    let tokens = ["silent", "there"].map { Array($0.utf8) }
    _ = try store.load(tokens.map { Registration(app: app, platform: .fcm, token: $0) }, now: 1_000)
    let id = Array("campaign".utf8)
    let campaign = CampaignDescription(
      id: id, app: app, messageID: Array("m".utf8), target: Array("/all".utf8), total: 2, highWater: 2, chains: 2)
    _ = try store.createCampaign(campaign, now: 2_000)
    for chain in 0..<campaign.chains {
      let start = campaign.start(of: chain)
      let content = PageOpening.Content.members(.all, after: start.after, upTo: start.upTo, limit: 9)
      _ = try store.openPage(PageOpening(campaign: id, page: start.page, copy: 1, app: app, content: content), now: 2_000)
      let report = PageReport(campaign: id, page: start.page, isLast: true, isOfSeveralChains: true, sent: 1, failed: 0)
      _ = try store.pageDone(report, now: 2_000)
    }
    _ = try store.finish(id, claimant: [1], lease: 500)
    let token = Array(name.utf8)
    if name == "there" {
      _ = try store.acknowledge(
        [Acknowledgement(app: app, device: .token(.fcm, token), operation: .received(.id(Array("m".utf8))), at: 3_000)],
        wantsReceipts: false, now: 3_000)
    }
    let history = try DeviceHistory(of: try store.device(.token(.fcm, token), app: app), campaign: nil, in: store)
    let story = try TraceStory([], history)
    #expect(story.broadcasts.map(\.outcome.word) == [name == "there" ? "delivered" : "unknown"])
    let text = TraceText(prefix: "push").text(of: story)
    #expect(text.contains("accepted by FCM") == (name == "there"), "\(text)")
    #expect(text.contains("in the audience now") == (name != "there"), "\(text)")
    #expect(text.contains("its place is on page 0\(name == "there" ? " of chain 1" : ""): 1 accepted, 0 failed"), "\(text)")
  }

  @Test("as JSON, a request's acknowledgements are a member of its last round's object")
  func acknowledgementsAsJSON() throws {
    let site = try RegistrySite()
    let store = try site.store()
    let app = Array(RegistrySite.app.utf8)
    let token = Array("there".utf8)
    _ = try store.load([Registration(app: app, platform: .fcm, token: token)], now: 1_000)
    _ = try store.acknowledge(
      [Acknowledgement(app: app, device: .token(.fcm, token), operation: .received(.id(Array("m".utf8))), at: 3_000)],
      wantsReceipts: false, now: 3_000)
    let history = try DeviceHistory(of: try store.device(.token(.fcm, token), app: app), campaign: nil, in: store)
    let round = try #require(TraceRound(Array(#"{"message_id":"m","pushes":[]}"#.utf8)))
    let lines = try TraceStory([round], history).json
    let object = try #require(try JSONSerialization.jsonObject(with: Data(lines[0])) as? [String: Any])
    #expect(lines.count == 1 && object["message_id"] as? String == "m")
    #expect((object["acknowledgements"] as? [[String: Any]])?.count == 1)
  }

  @Test("says whether an operator has deleted messages from the queue in which a request waits")
  func deleted() throws {
    let site = try RegistrySite()
    let store = try site.store()
    let line = #"{"message_id":"m","outcome":"waits","waits_in":"hold.a","ended_at":"1970-01-01T00:00:02.000Z","pushes":[]}"#
    let round = try #require(TraceRound(Array(line.utf8)))
    func text(_ store: DeviceStore?) throws -> String {
      TraceText(prefix: "push").text(of: try TraceStory([round], nil, store, prefix: "push"))
    }
    func delete(_ queue: String, at time: Int64) throws {
      let removal = FleetOperation.Removal("held drop", app: nil, queue: queue, count: 3)
      let operation = FleetOperation(.messages(removal), by: Array("ann".utf8), from: Array("host".utf8))
      _ = try store.perform(operation, now: time).get()
    }
    try delete("push.hold.a", at: 1_000)
    try delete("push.hold.b", at: 3_000)
    #expect(try text(store).contains("its return from there is not in the trace; no operator has deleted requests there"))
    #expect(try text(nil).contains("an operator may have deleted it"))
    try delete("push.hold.a", at: 3_500)
    let told = try text(store)
    #expect(told.contains("00:00:03.500  held drop: 3 messages\n"), "\(told)")
    #expect(told.contains("its return from there is not in the trace; a deletion may have included it"))
  }

  @Test(
    "a stale device was left out of a topic's broadcast, but not of one to a user", arguments: ["/users/anna", "/topics/t"])
  func stale(target: String) throws {
    let site = try RegistrySite()
    let store = try site.store()
    let app = Array(RegistrySite.app.utf8)
    var registration = Registration(app: app, platform: .fcm, token: Array("old".utf8))
    registration.user = Array("anna".utf8)
    registration.topics = [Array("t".utf8)]
    _ = try store.load([registration], now: 1_000)
    let id = Array("campaign".utf8)
    _ = try store.createCampaign(
      CampaignDescription(
        id: id, app: app, messageID: Array("m".utf8), target: Array(target.utf8), total: 1, highWater: 9), now: 3_000)
    _ = try store.openPage(
      PageOpening(campaign: id, page: 0, copy: 1, app: app, content: .members(.all, after: 0, upTo: 9, limit: 9)), now: 3_000)
    _ = try store.pageDone(PageReport(campaign: id, page: 0, isLast: true, sent: 1, failed: 0), now: 3_000)
    var device = try #require(try store.device(.token(.fcm, Array("old".utf8)), app: app).first)
    (device.state, device.markedAt) = (.stale, 2_000)
    let story = try TraceStory([], DeviceHistory(of: [device], campaign: nil, in: store))
    #expect(story.broadcasts.map(\.outcome) == [target == "/topics/t" ? .left(.stale) : .unknown])
  }
}
