import Broker
import Logging
import Reactor
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("A bulkhead")
struct BulkheadTests {
  private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("closes when the provider is in trouble, and opens when the trouble and the held requests are gone")
  func trouble() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(1))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(2))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(3))
    bulkhead.emptied()
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(4))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == nil)
    bulkhead.emptied()
    #expect(!bulkhead.isClosed)
  }

  @Test("closes when a request has waited too long; for the high lane only when one of its own has")
  func waiting() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: true, high: .short, at: at(1))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .overdue, at: at(2))
    #expect(bulkhead.isClosed(to: .sendNormal) && bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(3))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
    bulkhead.emptied()
    #expect(!bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
  }

  @Test("lets the high lane pass held requests as soon as the provider is out of trouble")
  func highFirst() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(1))
    #expect(bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(2))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
  }

  @Test("stays open for a while if no other application is held up; new trouble counts from its own beginning")
  func grace() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(0))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(4))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: false, grace: 5, isOverdue: false, high: .none, at: at(4.5))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(5))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(9))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(10))
    #expect(bulkhead.isClosed)
  }

  @Test("gives an application half of what others leave of the prefetch, at least eight pushes; a single one has no limit")
  func share() throws {
    let loop = try EventLoop()
    let pools = PoolSet(try ShardSetup(try SendModel.configuration()), host: loop)
    func share(_ apps: Applications, _ capacity: Int, beside others: Int) -> Int {
      let outbox = Outbox(time: loop.time, log: Log(level: .error))
      let pipeline = Pipeline(apps: apps, accounts: pools.accounts, outbox: outbox, time: loop.time, prefetch: 1_000)
      return pipeline.dispatcher.share(of: 0, capacity, beside: others)
    }
    #expect(share(pools.apps, 5_000, beside: 0) == 5_000)
    let two = Applications()
    for id in ["a", "b"] { two.put(Array(id.utf8), packages: [], senders: []) }
    #expect([0, 100, 900, 990, 5_000].map { share(two, 5_000, beside: $0) } == [500, 450, 50, 8, 8])
    #expect([0, 3, 5_000].map { share(two, $0, beside: 100) } == [0, 3, 450])
  }
}
