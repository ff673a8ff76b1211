import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry
@testable import Delivery
@testable import PushCore

@Suite("Broadcasts with a collapse key, step by step")
struct FanoutCollapseTests {
  private static let devices = 40
  private static let delivered = ReplyMeaning(reaction: .delivered, reason: "", status: 200)
  private static let busy = ReplyMeaning(reaction: .retry(.perDevice, .unavailable), reason: "test", status: 503)

  private func model(workers: Int = 1) throws -> FanoutModel {
    let model = try FanoutModel(devices: Self.devices, workers: workers)
    for worker in model.workers { worker.answer = { _ in Self.delivered } }
    return model
  }

  private func sent(_ model: FanoutModel, _ message: String) -> [Int64] {
    model.workers.flatMap { $0.sent[message] ?? [] }.sorted()
  }

  private func results(_ model: FanoutModel) -> Set<String> { Set(model.results.map { String(decoding: $0, as: UTF8.self) }) }

  private static func result(_ id: String, _ success: Int, _ failure: Int) -> String {
    #"{"message_id":"\#(id)","success":\#(success),"failure":\#(failure)}"#
  }

  private func campaign(_ model: FanoutModel, _ id: String) throws -> Campaign {
    try #require(try model.store.campaigns(limit: 10).first { $0.description.messageID == Array(id.utf8) })
  }

  /// Processes the first matching message up to its acknowledgement.
  private func pass(_ model: FanoutModel, where isOne: (FanoutModel.Message) -> Bool) {
    guard let place = model.queue.firstIndex(where: isOne) else { return }
    model.queue.insert(model.queue.remove(at: place), at: 0)
    model.deliver(to: 0)
    for _ in 0..<100 where !model.workers[0].held.isEmpty {
      model.run(0)
      model.arrive(0)
      model.confirm(0)
    }
  }

  private static func isFresh(_ message: FanoutModel.Message) -> Bool { message.exchange != "push.return" }

  /// One page was delivered, the others wait on the ladder.
  private func beginOlder(_ model: FanoutModel, key: String? = "k") {
    model.workers[0].answer = { $0 > 7 ? Self.busy : Self.delivered }
    model.request("old", age: 100, collapseKey: key)
    for _ in 0..<7 { pass(model, where: Self.isFresh) }
    model.workers[0].answer = { _ in Self.delivered }
  }

  private static let topic = #""to":"/topics/all""#

  /// The newer one begins before the older one's pages come back.
  private func beginNewer(_ model: FanoutModel, _ target: String = Self.topic, age: Int = 50, key: String? = "k") {
    model.request("new", target, age: age, collapseKey: key)
    pass(model, where: { $0.queue == .sendNormal })
  }

  @Test(
    "pages that come back after a newer broadcast to the same audience send nothing more, and each device is counted once"
  )
  func replaced() throws {
    let model = try model()
    beginOlder(model)
    #expect(model.queue.count == 5 && model.queue.allSatisfy { $0.exchange == "push.return" })
    let tried = sent(model, "old")
    beginNewer(model)
    model.finish()
    #expect(model.isQuiet && model.reached.isEmpty)
    #expect(sent(model, "old") == tried && tried.count == Self.devices)
    #expect(Set(sent(model, "new")).count == Self.devices && sent(model, "new").count == Self.devices)
    #expect(results(model) == [Self.result("old", 7, 33), Self.result("new", Self.devices, 0)], "\(results(model))")
    let old = try campaign(model, "old")
    #expect(old.state == .completed && old.sent == 7 && old.failed == 33 && old.pagesDone == 6)
    #expect(model.workers[0].pipeline.observers.figures.counters.collapsed == 33)
  }

  @Test("older broadcasts, other keys, no key and other audiences replace nothing")
  func kept() throws {
    let cases: [(target: String, age: Int, keys: (old: String?, new: String?))] = [
      (Self.topic, 200, ("k", "k")), (Self.topic, 50, ("k", "K")), (Self.topic, 50, ("k", nil)), (Self.topic, 50, (nil, "k")),
      (#""to":"/all""#, 50, ("k", "k")), (#""condition":"'all' in topics""#, 50, ("k", "k")),
    ]
    for (target, age, keys) in cases {
      let model = try model()
      beginOlder(model, key: keys.old)
      beginNewer(model, target, age: age, key: keys.new)
      model.finish()
      #expect(
        results(model) == [Self.result("old", Self.devices, 0), Self.result("new", Self.devices, 0)],
        "\(target) \(age) \(keys)")
      #expect(model.workers[0].pipeline.observers.figures.counters.collapsed == 0)
    }
  }

  @Test("a broadcast that was paused before its pages began ends without a push once a newer one has begun")
  func paused() throws {
    let model = try model()
    model.request("old", age: 100, collapseKey: "k")
    pass(model, where: Self.isFresh)
    let id = try campaign(model, "old").description.id
    _ = try model.store.setState(.paused, of: id, now: 5)
    pass(model, where: Self.isFresh)
    #expect(model.queue.count == 1 && model.queue.first?.exchange == "push.return")
    _ = try model.store.setState(.running, of: id, now: 6)
    beginNewer(model)
    model.finish()
    #expect(model.isQuiet && sent(model, "old").isEmpty)
    #expect(results(model) == [Self.result("old", 0, Self.devices), Self.result("new", Self.devices, 0)], "\(results(model))")
  }

  @Test("pages that never waited are sent even if a newer broadcast has begun")
  func straight() throws {
    let model = try model()
    model.request("old", age: 100, collapseKey: "k")
    model.request("new", age: 50, collapseKey: "k")
    model.finish()
    #expect(results(model) == [Self.result("old", Self.devices, 0), Self.result("new", Self.devices, 0)], "\(results(model))")
  }

  @Test("of two broadcasts with the same date the one that began later is sent")
  func sameDate() throws {
    let model = try model()
    beginOlder(model)
    beginNewer(model, age: 100)
    model.finish()
    #expect(results(model) == [Self.result("old", 7, 33), Self.result("new", Self.devices, 0)], "\(results(model))")
  }

  @Test(
    "if workers die or lose channels, the newest reaches all devices, and each device of the others is counted once")
  func faults() throws {
    let first = UInt64.random(in: 0...UInt64(UInt32.max))
    var collapsed: Int64 = 0
    for seed in first..<first + 30 {
      var generator = SeededGenerator(seed: seed)
      let model = try model(workers: 2)
      func answer() {
        for worker in model.workers { worker.answer = { ($0 &* 7 &+ Int64(seed % 7)) % 3 == 0 ? Self.busy : Self.delivered } }
      }
      answer()
      model.request("old", age: 100, collapseKey: "k")
      for step in 0..<Int.random(in: 40...250, using: &generator) {
        _ = try model.stepByChance(using: &generator)
        if step == 30 { model.request("new", age: 50, collapseKey: "k") }
        answer()
      }
      for worker in model.workers { worker.answer = { _ in Self.delivered } }
      model.finish()
      #expect(model.isQuiet && model.reached.isEmpty, "seed \(seed)")
      let (old, new) = (try campaign(model, "old"), try campaign(model, "new"))
      #expect(new.sent == Int64(Self.devices) && new.failed == 0, "seed \(seed): \(new)")
      #expect(
        old.sent + old.failed == Int64(Self.devices) && old.state == .completed,
        "seed \(seed): \(old)")
      #expect(
        results(model) == [Self.result("old", Int(old.sent), Int(old.failed)), Self.result("new", Self.devices, 0)],
        "seed \(seed): \(results(model))")
      collapsed += old.failed
    }
    #expect(collapsed > 0, "seeds from \(first)")
  }
}
