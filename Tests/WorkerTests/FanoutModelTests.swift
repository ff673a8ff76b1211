import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry
@testable import Delivery
@testable import PushCore

@Suite("A broadcast, step by step")
struct FanoutModelTests {
  private static let devices = 40
  /// One chain, or three. Both have six pages.
  static let chainPages: [Int64] = [250, 2]

  private func check(_ model: FanoutModel, doubled most: Int, results mostResults: Int, _ seed: UInt64) throws {
    #expect(model.isQuiet, "seed \(seed): something is held for ever")
    #expect(Set(model.reached).count == Self.devices, "seed \(seed): \(Set(model.reached).count) devices")
    #expect(model.reached.count - Self.devices <= most, "seed \(seed): \(model.reached.count - Self.devices) doubled")
    let whole = Array(#"{"message_id":"b","success":0,"failure":\#(Self.devices)}"#.utf8)
    #expect(!model.results.isEmpty && model.results.count <= mostResults, "seed \(seed): \(model.results.count) results")
    #expect(
      model.results.allSatisfy { $0 == whole }, "seed \(seed): \(model.results.map { String(decoding: $0, as: UTF8.self) })")
    let campaigns = try model.store.campaigns(limit: 10)
    #expect(campaigns.count == 1 && campaigns.first?.state == .completed && campaigns.first?.pagesDone == 6, "seed \(seed)")
    #expect(campaigns.first?.failed == Int64(Self.devices), "seed \(seed)")
    let id = try #require(campaigns.first?.description.id)
    let unreached = try model.store.unreached(by: id, after: 0, limit: 1_000)
    #expect(unreached.count == Self.devices, "seed \(seed): \(unreached.count) listed")
  }

  @Test("sends to each device once, from request to result", arguments: Self.chainPages)
  func plain(_ chainPages: Int64) throws {
    let model = try FanoutModel(devices: Self.devices, workers: 2, chainPages: chainPages)
    model.request("b")
    model.finish()
    try check(model, doubled: 0, results: 1, 0)
  }

  @Test("the first page of each chain is confirmed before the request is acknowledged; that of chain 0 is published last")
  func firstPages() throws {
    let model = try FanoutModel(devices: Self.devices, workers: 1, chainPages: 2)
    model.request("b")
    model.deliver(to: 0)
    model.run(0)
    for _ in 0..<3 { model.arrive(0) }
    let tickets = model.queue.compactMap { message -> PageTicket? in
      guard case .ticket(let ticket) = PageTicket.read(message.properties.headers) else { return nil }
      return ticket
    }
    #expect(tickets.map(\.number) == [2 << 32, 1 << 32, 0] && tickets.allSatisfy(\.isOfSeveralChains))
    #expect(tickets.map(\.after) == [26, 13, 0] && tickets.map(\.upTo) == [40, 26, 13])
    for _ in 0..<3 {
      #expect(model.workers[0].held.count == 1)
      model.confirm(0)
    }
    #expect(model.workers[0].held.isEmpty)
  }

  @Test(
    "makes one dead letter a chain for all devices without a credential, on any number of pages", arguments: Self.chainPages)
  func noCredential(_ chainPages: Int64) throws {
    let model = try FanoutModel(devices: Self.devices, workers: 2, platform: .fcm, chainPages: chainPages)
    model.request("b")
    model.finish()
    #expect(model.isQuiet && model.reached.count == (chainPages == 2 ? 3 : 1), "\(model.reached.count) dead letters")
    #expect(
      model.reasons.allSatisfy { $0.hasPrefix("for all FCM devices of the broadcast with this problem: no credential") },
      "\(model.reasons)")
    #expect(
      model.results.map { String(decoding: $0, as: UTF8.self) }
        == [#"{"message_id":"b","success":0,"failure":\#(Self.devices)}"#])
    #expect(try model.store.campaigns(limit: 1).first?.failed == Int64(Self.devices))
  }

  @Test("published three times is one broadcast", arguments: Self.chainPages)
  func duplicates(_ chainPages: Int64) throws {
    let model = try FanoutModel(devices: Self.devices, workers: 2, chainPages: chainPages)
    for _ in 0..<3 { model.request("b") }
    model.finish()
    try check(model, doubled: 0, results: 1, 0)
  }

  @Test("a request without an id becomes one broadcast even if a worker dies between its copy and the acknowledgement")
  func unnamed() throws {
    let model = try FanoutModel(devices: Self.devices, workers: 2)
    model.request(nil)
    model.deliver(to: 0)
    model.run(0)
    model.arrive(0)
    try model.kill(0)
    model.finish()
    let campaigns = try model.store.campaigns(limit: 10)
    #expect(campaigns.count == 1 && model.isQuiet)
    #expect(model.reached.count == Self.devices && Set(model.reached).count == Self.devices && model.results.count == 1)
  }

  @Test(
    "if workers die or lose channels, all devices are reached and counted, and each loss repeats at most a page",
    arguments: Self.chainPages)
  func faults(_ chainPages: Int64) throws {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + 40 {
      let (model, doubled, losses) = try run(seed, chainPages)
      try check(model, doubled: doubled, results: 1 + losses, seed)
    }
  }

  /// Unless the registry's thread stalls, so that common answers come separately.
  @Test("the same seed gives the same broadcast, step by step")
  func reproducible() throws {
    let seed = UInt64.random(in: 0...UInt64(UInt32.max))
    for _ in 0..<20 {
      let traces = try (0..<2).map { _ in try run(seed).model.trace }
      #expect(traces[0].count > 20, "seed \(seed)")
      if traces[0] == traces[1] { return }
    }
    Issue.record("seed \(seed) is another broadcast each time")
  }

  /// - Returns: how many devices may have been reached twice, and how many workers have died or lost their channel.
  private func run(_ seed: UInt64, _ chainPages: Int64 = 250) throws -> (model: FanoutModel, doubled: Int, losses: Int) {
    var generator = SeededGenerator(seed: seed)
    let model = try FanoutModel(devices: Self.devices, workers: 2, chainPages: chainPages)
    model.request("b")
    if Bool.random(using: &generator) { model.request("b") }
    var doubled = 0
    var losses = 0
    for _ in 0..<Int.random(in: 10...250, using: &generator) {
      guard let lost = try model.stepByChance(using: &generator) else { continue }
      doubled += lost * 7
      losses += 1
    }
    model.finish()
    return (model, doubled, losses)
  }

  /// The first worker never gets one device's answer. The second has the page by then and puts another device off. The first
  /// continues while the copy for the ladder is under way, and saves the page's record.
  @Test("counts each device once when a suspended worker saves a page that is on the ladder by then")
  func twoHands() throws {
    let model = try FanoutModel(devices: 6, workers: 2)
    let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    model.workers[0].answer = { $0 == 1 ? nil : $0 == 2 ? Self.refusal : delivered }
    model.workers[1].answer = { $0 == 3 ? busy : $0 == 2 ? Self.refusal : delivered }
    model.request("b")
    for _ in 0..<3 { try step(0, of: model) }
    #expect(model.workers[0].held.count == 1 && model.queue.isEmpty)
    model.standStill(0)
    model.deliver(to: 1)
    model.run(1)
    // The refused device's letter; then the copy, in which the device has failed.
    #expect(model.workers[1].publications.count == 1 && !model.workers[1].hasCopy)
    model.arrive(1)
    model.confirm(1)
    #expect(model.workers[1].publications.count == 1 && model.workers[1].hasCopy)
    model.workers[0].goOn()
    model.run(0)
    for _ in 0..<6 { try step(1, of: model) }
    #expect(model.results.map { String(decoding: $0, as: UTF8.self) } == [#"{"message_id":"b","success":5,"failure":1}"#])
  }

  @Test("a device that failed is in the campaign's list although another worker ends its page")
  func listedByOther() throws {
    let model = try FanoutModel(devices: 6, workers: 2)
    let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
    model.workers[0].answer = { $0 == 1 ? nil : $0 == 2 ? Self.refusal : delivered }
    model.workers[1].answer = { _ in delivered }
    model.request("b")
    for _ in 0..<3 { try step(0, of: model) }
    model.loseChannel(0)
    model.run(0)
    for _ in 0..<6 { try step(1, of: model) }
    #expect(model.results.map { String(decoding: $0, as: UTF8.self) } == [#"{"message_id":"b","success":5,"failure":1}"#])
    let campaign = try #require(try model.store.campaigns(limit: 1).first?.description.id)
    #expect(try model.store.unreached(by: campaign, after: 0, limit: 9).map(\.id) == [2])
  }

  @Test("a device that is gone is in the campaign's list although its page goes to the ladder before a push")
  func listedBeforePushes() throws {
    let model = try FanoutModel(devices: 6, workers: 1)
    let worker = model.workers[0]
    let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    worker.answer = { $0 <= 2 ? busy : delivered }
    model.request("b")
    for _ in 0..<3 { try step(0, of: model) }
    #expect(model.queue.count == 1 && worker.held.isEmpty)
    let token = Array(String(repeating: "0", count: 64).utf8)
    var device = Registration(app: FanoutModel.app, platform: .apns, token: token)
    let user = Array("ada".utf8)
    device.user = user
    _ = try model.store.apply([.register(device)], now: 2)
    _ = try model.store.perform(FleetOperation(.forget(user: user, app: FanoutModel.app), by: [], from: []), now: 3)
    model.deliver(to: 0)
    #expect(worker.loop.run { worker.pipeline.table.acknowledgeable.contains { !$0.recipients.isEmpty } })
    // A gate's question fails, so the page isn't in the lanes.
    _ = worker.pipeline.dispatcher.pools[0].popFirst()
    for entry in worker.pipeline.table.acknowledgeable { worker.pipeline.refuseOrPutOff(entry, .unavailable(.down, "test")) }
    worker.answer = { _ in delivered }
    model.finish()
    #expect(model.results.map { String(decoding: $0, as: UTF8.self) } == [#"{"message_id":"b","success":5,"failure":1}"#])
    let campaign = try #require(try model.store.campaigns(limit: 1).first?.description.id)
    #expect(try model.store.unreached(by: campaign, after: 0, limit: 9).map(\.id) == [1])
  }

  @Test("a page with too many pending devices begins again once its failures are confirmed, and each fails once")
  func beginsAgain() throws {
    let devices = PageTicket.mostPending + 2
    let model = try FanoutModel(devices: devices, workers: 2, pageSize: devices)
    let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    model.workers[0].answer = { $0 == 1 ? Self.refusal : busy }
    model.workers[1].answer = { $0 == 1 ? Self.refusal : delivered }
    model.request("b")
    for _ in 0..<3 { try step(0, of: model) }
    for _ in 0..<9 { try step(1, of: model) }
    #expect(model.isQuiet && model.reached.count == 1, "\(model.reached.count) dead letters")
    let whole = #"{"message_id":"b","success":\#(devices - 1),"failure":1}"#
    #expect(model.results.map { String(decoding: $0, as: UTF8.self) } == [whole])
  }

  @Test("a page that must begin again leaves no copy if its channel is lost before the registry has its record")
  func lostBeforeItBeginsAgain() throws {
    let devices = PageTicket.mostPending + 2
    let model = try FanoutModel(devices: devices, workers: 2, pageSize: devices)
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    model.workers[0].answer = { $0 == 1 ? Self.refusal : busy }
    model.request("b")
    try step(0, of: model)
    model.deliver(to: 0)
    model.run(0)
    // The failed device's letter; its confirm leads to the registry call.
    model.arrive(0)
    model.confirm(0)
    model.loseChannel(0)
    model.run(0)
    #expect(!model.workers[0].hasCopy && model.queue.count == 1)
    // It comes back here, and begins again.
    model.deliver(to: 0)
    model.run(0)
    #expect(model.workers[0].hasCopy)
  }

  @Test("a copy is withdrawn with its channel even if the registry has not yet stored the waiting request's note")
  func copyWithCollapseKey() throws {
    let model = try FanoutModel(devices: 1, workers: 1)
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    model.workers[0].answer = { _ in busy }
    model.request("b", #""to":"apns:\#(String(repeating: "a", count: 64))""#, age: 0, collapseKey: "k")
    model.deliver(to: 0)
    model.run(0)
    #expect(model.workers[0].hasCopy)
    model.loseChannel(0)
    #expect(!model.workers[0].hasCopy)
    model.workers[0].answer = { _ in ReplyMeaning(reaction: .delivered, reason: "", status: 200) }
    model.finish()
    #expect(model.isQuiet && model.workers[0].sent["b"]?.count == 2 && model.results.count == 1)
  }

  private static let refusal = ReplyMeaning(reaction: .drop(.invalidParameters), reason: "test", status: 400)

  private func step(_ index: Int, of model: FanoutModel) throws {
    model.deliver(to: index)
    model.run(index)
    for _ in 0..<3 {
      model.arrive(index)
      model.confirm(index)
    }
    model.run(index)
  }

  @Test(
    "cancelled at any moment, with workers that die, it ends with one result that counts everything sent",
    arguments: Self.chainPages)
  func cancelled(_ chainPages: Int64) throws {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    for seed in first..<first + 40 {
      var generator = SeededGenerator(seed: seed)
      let model = try FanoutModel(devices: Self.devices, workers: 2, chainPages: chainPages)
      model.request("b")
      for step in 0..<150 {
        let worker = Int.random(in: 0..<2, using: &generator)
        switch Int.random(in: 0..<39, using: &generator) {
        case 0..<8: model.deliver(to: worker)
        case 8..<16: model.run(worker)
        case 16..<27: model.arrive(worker)
        case 27..<38: model.confirm(worker)
        default: try model.kill(worker)
        }
        if step == 75, let campaign = try model.store.campaigns(limit: 1).first {
          _ = try model.store.setState(.cancelled, of: campaign.description.id, now: 5)
        }
      }
      model.finish()
      #expect(model.isQuiet, "seed \(seed): something is held for ever")
      let campaign = try #require(try model.store.campaigns(limit: 10).first)
      #expect(
        campaign.isComplete && campaign.finishedAt != nil, "seed \(seed): \(campaign.pagesDone) of \(campaign.pageCount ?? -1)")
      #expect(!model.results.isEmpty && Set(model.results).count == 1, "seed \(seed)")
      let unknown = campaign.unknown > 0 ? #","unknown":\#(campaign.unknown)"# : ""
      #expect(
        model.results.first == Array(#"{"message_id":"b","success":0,"failure":\#(campaign.failed)\#(unknown)}"#.utf8),
        "seed \(seed)")
      let reached = Int64(Set(model.reached).count)
      #expect(campaign.failed <= reached && reached <= campaign.failed + campaign.unknown, "seed \(seed)")
    }
  }

  @Test("cancelled after two lost workers, a page from the quarantine counts its rest as unknown")
  func cancelledAfterTwoLosses() throws {
    let model = try FanoutModel(devices: 5, workers: 1)
    model.countsReturns = true
    let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)
    model.workers[0].answer = { _ in busy }
    model.request("b")
    for _ in 0..<3 where !model.workers[0].hasCopy { try step(0, of: model) }
    while !model.workers[0].publications.isEmpty {
      model.arrive(0)
      model.confirm(0)
    }
    #expect(model.queue.count == 1)
    for _ in 0..<2 {
      model.workers[0].answer = { _ in nil }
      model.deliver(to: 0)
      model.run(0)
      #expect(model.workers[0].sent["b"]?.count ?? 0 >= 5)
      try model.kill(0)
    }
    let campaign = try #require(try model.store.campaigns(limit: 1).first)
    _ = try model.store.setState(.cancelled, of: campaign.description.id, now: 5)
    model.finish()
    #expect(model.isQuiet)
    #expect(
      model.results.map { String(decoding: $0, as: UTF8.self) }
        == [#"{"message_id":"b","success":0,"failure":0,"unknown":5}"#])
  }

  @Test("cancelled after a lost channel, a page counts the pushes that were under way as unknown")
  func cancelledAfterLostChannel() throws {
    let model = try FanoutModel(devices: 5, workers: 2)
    var answered = 0
    model.workers[0].answer = { _ in
      answered += 1
      return answered <= 2 ? Self.refusal : nil
    }
    model.request("b")
    for _ in 0..<3 where model.workers[0].sent["b"]?.count ?? 0 < 5 { try step(0, of: model) }
    #expect(model.workers[0].sent["b"]?.count == 5)
    model.loseChannel(0)
    // The registry stores which devices are settled. Another worker that asks earlier counts all five as unknown.
    model.run(0)
    let campaign = try #require(try model.store.campaigns(limit: 1).first)
    _ = try model.store.setState(.cancelled, of: campaign.description.id, now: 5)
    for _ in 0..<2 { try step(1, of: model) }
    model.finish()
    #expect(model.isQuiet)
    #expect(
      model.results.map { String(decoding: $0, as: UTF8.self) }
        == [#"{"message_id":"b","success":0,"failure":2,"unknown":3}"#])
  }

  @Test("while a result awaits its confirm, another worker with the last page doesn't publish it")
  func resultUnderWay() throws {
    let model = try FanoutModel(devices: 5, workers: 2, lease: 60_000)
    model.request("b")
    for _ in 0..<200 where !model.workers[0].isPublishingResult {
      model.deliver(to: 0)
      model.run(0)
      if model.workers[0].isPublishingResult { break }
      model.arrive(0)
      model.confirm(0)
      model.run(0)
    }
    #expect(model.workers[0].isPublishingResult)
    let claimed = try #require(try model.store.campaigns(limit: 1).first?.finishedAt)
    let isRenewed = try eventually(seconds: 10) {
      model.workers[0].tick()
      model.run(0)
      return try model.store.campaigns(limit: 1).first?.finishedAt ?? 0 > claimed
    }
    #expect(isRenewed, "a result that the broker doesn't confirm for a while is another worker's")
    model.loseChannel(0)
    for _ in 0..<20 {
      model.deliver(to: 1)
      model.run(1)
      model.arrive(1)
      model.confirm(1)
    }
    #expect(model.results.isEmpty)
    for _ in 0..<3 {
      model.arrive(0)
      model.confirm(0)
      model.run(0)
    }
    model.finish()
    #expect(model.results.count == 1 && model.isQuiet)
  }

  @Test("that expires while the registry is unreachable waits a day for it, then becomes a dead letter")
  func doubtful() throws {
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    for (late, kind, step) in [(3_600_000, "retry", "5m"), (90_000_000, "deadLetter", "dead")] as [(Int64, String, String)] {
      let worker = try FanoutModel.Worker(.sqlite(path: "/nonexistent/registry.db"), 0)
      var message = FanoutModel.broadcast("b")
      message.exchange = "push.return"
      RetryRecord(
        attempts: 0, round: 3, deadline: now - late, error: .unavailable, reason: "", status: nil, settled: nil
      ).append(to: &message.properties.headers)
      worker.accept(message)
      worker.run()
      let publications = worker.publications.compactMap { _ in worker.arrive() }
      #expect(publications.contains { "\($0.kind)" == kind && $0.routingKey == Array(step.utf8) }, "\(publications)")
      #expect(!publications.contains { "\($0.kind)" == (kind == "retry" ? "deadLetter" : "retry") })
      worker.die()
    }
  }
}
