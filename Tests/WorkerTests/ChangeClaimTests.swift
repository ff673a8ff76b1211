import AMQP
import Broker
import DeviceRegistry
import Foundation
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Delivery
@testable import Worker

@Suite("Changes are applied by the worker that holds the queue")
final class ChangeClaimTests {
  private let loop: EventLoop
  private let path = NSTemporaryDirectory() + "/pushfleet-claims-\(UUID().uuidString).db"
  /// Another worker's connection to the registry.
  private let other: DeviceStore
  private let registry: RegistryClient
  private let changes: ChangeQueue
  private let outbox: Outbox
  private let source = Source()

  /// The broker's side, with the questions that it has to answer.
  private final class Source: ChangeSource {
    var acknowledged = 0
    var questions: [(Bool) -> Void] = []
    func acknowledge(_ delivery: Delivery) { acknowledged += 1 }
    func registryChanged(isUsable: Bool) {}
    func giveBack() {}
    func prove(_ then: @escaping (Bool) -> Void) { questions.append(then) }
  }

  init() throws {
    loop = try EventLoop()
    other = try openRegistry(.sqlite(path: path))
    let log = Log(level: .error)
    registry = try RegistryClient(.sqlite(path: path), limits: RegistryLimits(), host: loop, log: log)
    outbox = Outbox(time: loop.time, log: log)
    let pipeline = Pipeline(
      apps: Applications(Self.app), outbox: outbox,
      time: loop.time, registry: registry)
    changes = ChangeQueue(pipeline.tools, limits: RegistryLimits(), replyQueues: pipeline.rights.replyQueues)
    changes.feed = source
  }

  deinit { for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: path + suffix) } }

  private static let app = Array("com.example.app".utf8)

  private func deliver(_ token: String) {
    var delivery = Delivery()
    delivery.body = Array(#"{"platform":"fcm","token":"\#(token)"}"#.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    changes.registryChangeDelivered(delivery)
  }

  private func isKnown(_ token: String) throws -> Bool {
    try !other.device(.token(.fcm, Array(token.utf8)), app: Self.app).isEmpty
  }

  /// Waits until the broker has been asked so often.
  private func asked(_ count: Int) { #expect(loop.run(atMost: 10) { source.questions.count == count }) }

  @Test(
    "The worker asks the registry for a number, then the broker, then applies the changes; later changes are applied at once")
  func inTurn() throws {
    deliver("a")
    deliver("b")
    asked(1)
    #expect(try registry.isIdle && !isKnown("a"))
    source.questions[0](true)
    #expect(loop.run(atMost: 10) { source.acknowledged == 2 })
    deliver("c")
    #expect(loop.run(atMost: 10) { source.acknowledged == 3 })
    #expect(try isKnown("a") && isKnown("b") && isKnown("c") && source.questions.count == 1)
  }

  @Test("If another worker has claimed the changes since, they stay in order until they are claimed again")
  func claimedByAnother() throws {
    deliver("a")
    asked(1)
    source.questions[0](true)
    #expect(loop.run(atMost: 10) { source.acknowledged == 1 })
    _ = try other.claimChanges()
    deliver("b")
    deliver("c")
    asked(2)
    #expect(changes.waiting.map { $0 } == [1, 2] && changes.stuckSince == nil)
    #expect(try !isKnown("b") && !isKnown("c"))
    source.questions[1](true)
    #expect(loop.run(atMost: 10) { source.acknowledged == 3 })
    #expect(try isKnown("b") && isKnown("c"))
  }

  @Test("If the connection is gone, late answers apply nothing, and the next connection needs its own claim")
  func lost() throws {
    deliver("a")
    asked(1)
    changes.registryChangesLost()
    deliver("b")
    source.questions[0](true)
    asked(2)
    #expect(try !isKnown("a") && !isKnown("b") && changes.count == 1)
    source.questions[1](true)
    #expect(loop.run(atMost: 10) { source.acknowledged == 1 })
    #expect(try !isKnown("a") && isKnown("b"))
    // A late number belongs to no claim.
    changes.registryChangesLost()
    deliver("c")
    changes.registryChangesLost()
    #expect(loop.run(atMost: 10) { registry.isIdle })
    #expect(try source.questions.count == 2 && !isKnown("c"))
  }

  @Test("If the broker can't answer, it is asked again with the same number")
  func unanswered() throws {
    deliver("a")
    asked(1)
    source.questions[0](false)
    #expect(source.questions.count == 1)
    changes.apply()
    #expect(source.questions.count == 2 && registry.isIdle)
    source.questions[1](true)
    #expect(loop.run(atMost: 10) { source.acknowledged == 1 })
    #expect(try other.claimChanges() == 2)
  }
}
