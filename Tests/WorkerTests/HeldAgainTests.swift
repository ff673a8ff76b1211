import AMQP
import Logging
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

/// A request of a hold queue is in hand, and its provider serves nothing.
@Suite("Held requests that can't be sent")
struct HeldAgainTests {
  private let loop: EventLoop
  private let time = Turn(now: MonotonicTime(nanoseconds: 1_000_000_000), wallClock: 1_800_000_000_000)
  private let broker = ScriptedHoldBroker()
  private let outbox: Outbox
  private let pools: PoolSet
  private let pipeline: Pipeline

  init() throws {
    loop = try EventLoop()
    outbox = Outbox(time: time, log: Log(level: .error))
    pools = PoolSet(try ShardSetup(try SendModel.configuration()), host: loop)
    pipeline = Pipeline(apps: pools.apps, accounts: pools.accounts, outbox: outbox, time: time)
    pipeline.dispatcher.holds.broker = broker
    _ = pipeline.dispatcher.holds.isPresent(0)
    broker.declarations[0](true)
    accept(#"{"to":"\#(String(repeating: "0a", count: 32))"}"#)
  }

  private func accept(_ request: String) {
    var delivery = Delivery()
    delivery.body = Array(request.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    pipeline.accept(delivery, from: .sendNormal, hold: 0)
  }

  private var publications: [Publication.Kind] { outbox.slots.indices.compactMap { outbox.slots[$0]?.kind } }

  /// Once a second, as a shard does.
  private func wait(_ seconds: Int) {
    for _ in 0..<seconds {
      time.begin(now: time.now.advanced(bySeconds: 1), wallClock: time.wallClock + 1_000)
      pipeline.dispatcher.holds.look()
      pipeline.dispatcher.holdAgain(for: pipeline)
    }
  }

  /// Sets the number of ready requests in the hold queue.
  private func count(_ ready: Int) {
    pipeline.dispatcher.holds.look()
    broker.counted.removeFirst().answer(ready)
  }

  @Test("stay if no others wait behind them, and go back long before the broker's timeout")
  func alone() {
    count(0)
    wait(9 * 60)
    #expect(publications.isEmpty && pipeline.dispatcher.pools[0].hasHeld)
    wait(60 + 10)
    #expect(publications == [.hold] && !pipeline.dispatcher.pools[0].hasHeld)
  }

  @Test("end soon after their time to live")
  func expired() {
    count(0)
    accept(#"{"to":"\#(String(repeating: "0b", count: 32))","time_to_live":2}"#)
    #expect(pipeline.dispatcher.pools[0].count == 2)
    wait(2 + 5)
    #expect(pipeline.dispatcher.pools[0].count == 1 && publications.isEmpty)
  }

  @Test("go back within a minute if others wait behind them")
  func others() {
    count(1)
    wait(45)
    #expect(publications.isEmpty && pipeline.dispatcher.pools[0].hasHeld)
    wait(15)
    #expect(publications == [.hold] && !pipeline.dispatcher.pools[0].hasHeld)
  }
}
