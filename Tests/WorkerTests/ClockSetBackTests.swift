import AMQP
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

/// The machine's clock is set while requests are in hand.
@Suite("A request in hand while the clock is set")
struct ClockSetBackTests {
  private let time = Turn(now: MonotonicTime(nanoseconds: 1_000_000_000), wallClock: 1_800_000_000_000)
  private let outbox: Outbox
  private let pools: PoolSet
  private let pipeline: Pipeline
  private static let steps = [1, 10, 60, 3_600].map { RetryStep(name: "\($0)s", delay: $0 * 1_000) }

  init() throws {
    outbox = Outbox(time: time, log: Log(level: .error))
    pools = PoolSet(try ShardSetup(try SendModel.configuration()), host: try EventLoop())
    pipeline = Pipeline(apps: pools.apps, accounts: pools.accounts, outbox: outbox, time: time, steps: Self.steps)
  }

  private static func delivery(_ body: String) -> Delivery {
    var delivery = Delivery()
    delivery.body = Array(body.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    return delivery
  }

  private static func token(_ number: Int) -> String { String(repeating: "0a", count: 31) + String(number) }

  private func setClock(by seconds: Int64, after passed: Double = 0) {
    time.begin(
      now: time.now.advanced(bySeconds: passed), wallClock: time.wallClock + (seconds + Int64(passed)) * 1_000)
  }

  private func answer(_ entry: InFlight, _ recipient: Int, _ meaning: ReplyMeaning) {
    entry.recipients[recipient].state = .sent
    entry.ledger.pushed()
    pipeline.answered(
      tag: PushTag(entry: entry.index, recipient: recipient).rawValue, meaning: meaning, name: nil,
      from: pipeline.dispatcher.pools[0].pool)
  }

  @Test("waits no longer than its answer said, however far the clock was set back", arguments: [0, 60, 2_400, 86_400])
  func setBack(seconds: Int64) throws {
    pipeline.accept(
      Self.delivery(#"{"registration_ids":["\#(Self.token(10))","\#(Self.token(11))"],"data":{"k":"v"}}"#), from: .sendNormal)
    let entry = try #require(pipeline.table.entries.first { $0.isInUse })
    answer(entry, 0, APNsReply.interpret(status: 429, body: Array(#"{"reason":"TooManyRequests"}"#.utf8)))
    setClock(by: -seconds)
    answer(entry, 1, APNsReply.interpret(status: 200, body: []))
    let copies = outbox.slots.indices.compactMap { outbox.slots[$0] }.filter { $0.kind == .retry }
    #expect(copies.map { String(decoding: $0.routingKey, as: UTF8.self) } == ["10s"])
    // The device is due when the request comes back after its step.
    guard case .record(let record) = RetryRecord.read(copies[0].properties.headers), let settled = record.settled else {
      Issue.record("a copy of a list says how far it has come")
      return
    }
    setClock(by: 0, after: 16)
    SettledTargets.restore(settled, to: &entry.recipients, until: .max)
    guard case .postponed(let until) = entry.recipients[0].state else { return }
    #expect(until <= time.wallClock)
  }

  @Test("that was read ahead keeps its arrival time for the order of replacement")
  func takenAhead() throws {
    let came = time.wallClock
    pipeline.backpressure.takeAhead(
      Self.delivery(#"{"to":"\#(Self.token(10))","collapse_key":"k","data":{"k":"v"}}"#), from: .sendNormal)
    setClock(by: 0, after: 60)
    pipeline.beginAhead()
    let entry = try #require(pipeline.table.entries.first { $0.isInUse })
    #expect(entry.collapse.arrival?.number == came * 1_000 && entry.identity.published == came)
  }
}
