import AMQP
import Broker
import Logging
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

/// A request waits for its provider in the hold queue, so its devices were never looked at.
@Suite("A request whose copy for the hold queue is withdrawn")
struct RedeliveredUnbegunTests {
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
    pipeline = Pipeline(apps: pools.apps, accounts: pools.accounts, outbox: outbox, time: time, results: .all)
    pipeline.dispatcher.holds.broker = broker
    _ = pipeline.dispatcher.holds.isPresent(0)
    broker.declarations[0](true)
    // A new hold queue isn't used at once.
    time.refresh(now: time.now.advanced(bySeconds: 2))
    close(true)
  }

  private func close(_ isInTrouble: Bool) {
    pipeline.dispatcher.pools[0].bulkhead.note(
      isInTrouble: isInTrouble, grace: 0, isOverdue: false, high: .none, at: time.now)
    if !isInTrouble { pipeline.dispatcher.pools[0].bulkhead.emptied() }
  }

  private func deliver(tag: UInt64) {
    var delivery = Delivery()
    delivery.token = DeliveryToken(generation: 1, tag: tag)
    delivery.properties.messageID = Array("m".utf8)
    delivery.body = Array(#"{"to":"\#(String(repeating: "0a", count: 32))"}"#.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    pipeline.accept(delivery, from: .sendNormal)
  }

  private var publications: [Publication.Kind] { outbox.slots.indices.compactMap { outbox.slots[$0]?.kind } }

  /// The channel is lost while the registry stores a note about the request.
  private func loseChannel() throws {
    deliver(tag: 1)
    #expect(publications == [.hold])
    let entry = try #require(pipeline.table.acknowledgeable.first { _ in true })
    entry.ledger.owes()
    pipeline.channelLost()
    #expect(publications.isEmpty)
    pipeline.consequenceEnded(of: entry)
  }

  @Test("waits there again if its provider is still in trouble")
  func heldAgain() throws {
    try loseChannel()
    deliver(tag: 2)
    #expect(publications == [.hold])
  }

  @Test("is sent to its device if its provider is well")
  func sent() throws {
    try loseChannel()
    close(false)
    deliver(tag: 2)
    #expect(publications.isEmpty && !pipeline.dispatcher.pools[0].isEmpty)
  }
}
