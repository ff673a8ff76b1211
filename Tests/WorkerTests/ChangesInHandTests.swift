import AMQP
import DeviceRegistry
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery
@testable import Worker

@Suite("Changes in hand")
struct ChangesInHandTests {
  private let loop: EventLoop
  private let pipeline: Pipeline
  private let changes: ChangeQueue
  private let registry: RegistryClient
  private let outbox: Outbox

  /// A queue of changes beside a pipeline, with a registry that can't be opened.
  init() throws {
    loop = try EventLoop()
    let log = Log(level: .error)
    outbox = Outbox(time: loop.time, log: log)
    let app = Array("com.example.app".utf8)
    registry = try RegistryClient(.sqlite(path: "/proc/nowhere/registry.db"), limits: RegistryLimits(), host: loop, log: log)
    pipeline = Pipeline(
      apps: Applications(app), outbox: outbox, time: loop.time,
      registry: registry)
    changes = ChangeQueue(pipeline.tools, limits: RegistryLimits(), replyQueues: pipeline.rights.replyQueues)
  }

  private func deliver(_ body: String, returns: Int64 = 0, keeping kept: Int = .max) {
    var delivery = Delivery()
    delivery.body = Array(body.utf8.prefix(kept))
    delivery.bodySize = UInt64(body.utf8.count)
    delivery.redelivered = returns > 0
    if returns > 0 { delivery.properties.headers.append("x-delivery-count", .integer(returns)) }
    changes.registryChangeDelivered(delivery)
  }

  private func settle() {
    while !registry.isIdle { loop.turn(waitingAtMost: 0.05) }
    loop.turn(waitingAtMost: 0)
  }

  /// Whether changes are still in hand after so many seconds without progress.
  private func keeps(_ seconds: Double) -> Bool {
    changes.stuckSince = loop.now.advanced(bySeconds: -seconds)
    changes.giveBackStuck()
    return changes.count > 0
  }

  @Test("go back after a minute without progress, and later if they have been returned before")
  func givenBack() {
    for number in 0..<3 { deliver(#"{"platform":"fcm","token":"t\#(number)"}"#) }
    settle()
    #expect(changes.count == 3 && changes.waiting.count == 3 && changes.stuckSince != nil)
    changes.giveBackStuck()
    #expect(keeps(59))
    #expect(!keeps(61) && changes.waiting.isEmpty && changes.stuckSince == nil)
    deliver(#"{"platform":"fcm","token":"t0"}"#, returns: 2)
    settle()
    #expect(keeps(239))
    #expect(!keeps(241))
  }

  @Test("are withdrawn when their connection is lost; one with an answer under way stays until the answer is confirmed")
  func lost() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    deliver("no change at all")
    settle()
    #expect(changes.count == 2 && outbox.backlog == 1)
    changes.registryChangesLost()
    #expect(changes.count == 1 && changes.waiting.isEmpty)
    for slot in outbox.slots.indices { outbox.confirmed(slot) }
    #expect(changes.count == 0)
    changes.apply()
    #expect(registry.isIdle)
  }

  @Test("are acknowledged in order, whichever answer is confirmed first")
  func inOrder() {
    for _ in 0..<3 { deliver("no change at all") }
    let slots = outbox.slots.indices
    outbox.confirmed(slots[2])
    outbox.confirmed(slots[1])
    #expect(changes.count == 3)
    outbox.confirmed(slots[0])
    #expect(changes.count == 0)
    for _ in 0..<2 { deliver("no change at all") }
    changes.registryChangesLost()
    deliver("no change at all")
    let later = outbox.slots.indices
    outbox.confirmed(later[2])
    #expect(changes.count == 2)
    for slot in later.prefix(2) { outbox.confirmed(slot) }
    #expect(changes.count == 0)
  }

  @Test("count as acknowledged unless they are lost")
  func acknowledged() {
    deliver("no change at all")
    changes.registryChangesLost()
    deliver("no change at all")
    for slot in outbox.slots.indices { outbox.confirmed(slot) }
    #expect(changes.count == 0 && changes.counters.acknowledged == 1)
  }

  @Test("that were lost before the registry failed don't count as stuck")
  func lostBeforeFailure() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    changes.registryChangesLost()
    settle()
    #expect(changes.count == 0 && changes.asked == 0 && changes.stuckSince == nil)
  }

  @Test("of any size don't stop the reading of requests")
  func large() {
    for number in 0..<80 { deliver(#"{"platform":"fcm","token":"t\#(number)"\#(String(repeating: " ", count: 1 << 20))}"#) }
    settle()
    pipeline.backpressure.adjustIntake()
    #expect(changes.count == 80 && !pipeline.backpressure.bodies.isReadingPaused && pipeline.backpressure.bodies.total == 0)
    changes.registryChangesLost()
    #expect(changes.count == 0 && pipeline.backpressure.bodies.total == 0)
  }

  @Test("that are larger than the kept part are refused as too large, not as bad JSON")
  func tooLarge() throws {
    let body = #"{"platform":"fcm","token":"t0"\#(String(repeating: " ", count: 5 << 20))}"#
    deliver(body, keeping: 4 << 20)
    let letter = try #require(outbox.slots.indices.first.flatMap { outbox.slots[$0] })
    guard case .string(let reason)? = letter.properties.headers["x-push-reason"] else { throw Missing() }
    #expect(String(decoding: reason, as: UTF8.self).hasPrefix("too large: \(body.utf8.count) bytes"))
    #expect(letter.properties.headers["x-push-truncated-from"] == .integer(Int64(body.utf8.count)))
  }

  private struct Missing: Error {}

  @Test("and requests in hand don't influence each other")
  func apart() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    settle()
    pipeline.channelLost()
    #expect(changes.count == 1 && changes.waiting.count == 1)
    changes.registryChangesLost()
    #expect(changes.count == 0)
  }
}
