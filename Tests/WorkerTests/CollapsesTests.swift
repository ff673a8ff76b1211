import AMQP
import DeviceRegistry
import Logging
import PushCore
import Reactor
import TestSupport
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("A shard's knowledge of waiting requests")
struct CollapsesTests {
  private final class Handler {
    var noted = 0
    var answered: [Collapses.Question] = []
  }

  private let loop: EventLoop
  private let handler = Handler()

  init() throws { loop = try EventLoop() }

  private func collapses(_ registry: RegistryClient? = nil) -> Collapses {
    let collapses = Collapses(ShardTools(apps: Applications(), registry: registry, time: loop.time))
    collapses.onNoted = { [handler] in handler.noted += $0.count }
    collapses.onAnswered = { [handler] in handler.answered += $0 }
    return collapses
  }

  private static func place(_ number: Int) -> CollapsePlace { CollapsePlace(high: UInt64(number), low: 0) }
  private static func order(_ published: Int) -> CollapseOrder {
    CollapseOrder(published: Int64(published), arrived: 0, message: Int64(published))
  }

  @Test("keeps the newest request of each place, whichever arrives first")
  func newest() {
    let collapses = collapses()
    #expect(collapses.isEmpty && collapses.newest(in: Self.place(1)) == nil)
    for number in [3, 5, 4] { collapses.learn(Self.order(number), in: Self.place(1)) }
    collapses.learn(Self.order(1), in: Self.place(2))
    #expect(collapses.newest(in: Self.place(1)) == Self.order(5) && collapses.newest(in: Self.place(2)) == Self.order(1))
    #expect(!collapses.isEmpty)
  }

  @Test("is limited in places, and keeps the latest")
  func bounded() {
    let collapses = collapses()
    let count = 200_000
    for number in 0..<count { collapses.learn(Self.order(number + 1), in: Self.place(number)) }
    let known = (0..<count).count { collapses.newest(in: Self.place($0)) != nil }
    #expect((32_768...65_536).contains(known), "\(known)")
    #expect((count - 32_768..<count).allSatisfy { collapses.newest(in: Self.place($0)) == Self.order($0 + 1) })
    // An older request that comes again changes nothing.
    collapses.learn(Self.order(1), in: Self.place(count - 40_000))
    #expect(collapses.newest(in: Self.place(count - 40_000)).map { $0 >= Self.order(1) } == true)
  }

  @Test("gives each request a unique arrival time")
  func arrivals() {
    let collapses = collapses()
    let times = (0..<10_000).map { _ in collapses.arrival() }
    #expect(zip(times, times.dropFirst()).allSatisfy(<))
    #expect(times[0] / 1_000 == loop.wallClock)
  }

  @Test("orders requests by the producer's time, even if the worker's clock is behind")
  func dates() {
    var properties = BasicProperties()
    let now: Int64 = 1_799_999_988_910
    func date(_ timestamp: UInt64?) -> Int64 {
      properties.timestamp = timestamp
      return Intake.dateForOrder(properties, published: now - 1, at: now)
    }
    // One and two seconds by a clock that is ahead, the present time, and five minutes ahead.
    #expect(
      [1_799_999_990, 1_799_999_989, 1_799_999_900, 1_800_000_288].map(date) == [
        1_799_999_990_000, 1_799_999_989_000, 1_799_999_900_000, 1_800_000_288_000,
      ])
    // No date, and implausible ones.
    #expect([nil, 0, 1_800_000_289, 1_799_999_990_000, UInt64.max].map(date).allSatisfy { $0 == now - 1 })
  }

  @Test("isn't stored without a registry, and no request waits for it")
  func alone() {
    let collapses = collapses()
    let note = CollapseNote(place: Self.place(1), order: Self.order(1), until: 1)
    #expect(!collapses.store([note], for: RequestReference(index: 0, generation: 0)))
    collapses.flush()
    #expect(handler.noted == 0)
  }

  @Test("is answered without the registry while that is unavailable")
  func unavailable() throws {
    let registry = try RegistryClient(
      .sqlite(path: "/proc/nowhere/registry.db"), limits: RegistryLimits(), host: loop, log: Log(level: .error))
    let collapses = collapses(registry)
    let request = RequestReference(index: 0, generation: 0)
    for round in 1...3 {
      let note = CollapseNote(place: Self.place(1), order: Self.order(1), until: 1)
      #expect(collapses.store([note, note], for: request) && !collapses.store([], for: request))
      collapses.ask(
        .init(places: [Self.place(1)], waiting: .init(request: request, isReturned: true), pool: 0))
      collapses.flush()
      #expect(loop.run(atMost: 5) { handler.noted == round && handler.answered.count == round })
    }
  }
}
