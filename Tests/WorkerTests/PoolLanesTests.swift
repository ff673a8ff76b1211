import Broker
import Reactor
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("Requests that wait for a provider")
struct PoolLanesTests {
  private let loop: EventLoop
  private let pools: PoolSet
  private var lanes: PoolLanes
  private let table: InFlightTable

  init() throws {
    loop = try EventLoop()
    table = InFlightTable(time: loop.time)
    pools = PoolSet(try ShardSetup(try SendModel.configuration()), host: loop)
    lanes = PoolLanes(pools.accounts[0])
  }

  private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  private mutating func add(_ queue: WorkQueue, at seconds: Double, hold: Int? = nil, isNowOrNever: Bool = false) {
    let entry = table.insert(from: queue)
    entry.source.hold = hold
    entry.attempt.isLast = isNowOrNever
    lanes.append(.init(request: entry.reference, since: at(seconds)), of: entry)
  }

  private mutating func popQueue() -> WorkQueue? {
    lanes.popFirst().flatMap { table[$0.request]?.source.queue }
  }

  @Test("are served from the high lane first, with one turn of eight for the longest waiting")
  mutating func turns() {
    add(.sendNormal, at: 1)
    for number in 0..<30 { add(.sendHigh, at: 2 + Double(number)) }
    add(.sendNormal, at: 100)
    var order: [WorkQueue] = []
    while let queue = popQueue() { order.append(queue) }
    #expect(order.prefix(7).allSatisfy { $0 == .sendHigh } && order[7] == .sendNormal && order.last == .sendNormal)
    #expect(order.count == 32 && lanes.isEmpty)
  }

  @Test("with a lifetime of 0 leave one turn of eight to longer waiting ones")
  mutating func nowOrNeverForLong() {
    add(.sendNormal, at: 0)
    for number in 1...20 { add(.sendNormal, at: Double(number), isNowOrNever: true) }
    var order: [Bool] = []
    while let waiting = lanes.popFirst() { order.append(table[waiting.request]?.attempt.isLast == true) }
    #expect(order.firstIndex(of: false) == 7 && order.count == 21)
  }

  @Test("with a lifetime of 0 pass the others of their lane, and no other lane")
  mutating func nowOrNever() {
    for number in 0..<3 { add(.sendNormal, at: Double(number)) }
    add(.sendNormal, at: 5, isNowOrNever: true)
    add(.sendHigh, at: 6)
    var order: [Bool] = []
    while let waiting = lanes.popFirst() {
      guard let entry = table[waiting.request] else { continue }
      order.append(entry.attempt.isLast)
      // A request with more recipients keeps its place.
      if entry.attempt.isLast, order.count == 2 { lanes.putBack(waiting, of: entry) }
    }
    #expect(order == [false, true, true, false, false, false] && lanes.isEmpty)
  }

  @Test("from a hold queue come before later ones of the normal lane")
  mutating func held() {
    add(.sendNormal, at: 1)
    add(.sendHigh, at: 2, hold: 0)
    #expect(lanes.heldSince == at(2) && popQueue() == .sendHigh && lanes.heldSince == nil && popQueue() == .sendNormal)
  }

  @Test("are overdue by their lane's limit, a page later, and held ones never")
  mutating func overdue() {
    add(.sendHigh, at: 0, hold: 0)
    add(.fanoutNormal, at: 0)
    #expect(lanes.wait(in: .fanoutNormal, overdueAfter: 0.3, at: at(4)) == .short)
    #expect(lanes.wait(in: .fanoutNormal, overdueAfter: 0.3, at: at(6)) == .overdue)
    #expect(lanes.wait(in: .sendHigh, overdueAfter: 0.3, at: at(60)) == .none)
    add(.sendNormal, at: 10)
    #expect(lanes.wait(in: .sendNormal, overdueAfter: 0.3, at: at(10.4)) == .overdue)
    let taken = lanes.takeLanes(withHeld: false) { $0 == .sendNormal }
    #expect(taken.count == 1 && lanes.count == 2 && lanes.hasHeld)
  }
}
