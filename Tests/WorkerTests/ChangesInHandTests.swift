import AMQP
import PushCore
import Reactor
import Storage
import Testing
import Wire

@testable import Worker

@Suite("Changes in hand")
struct ChangesInHandTests {
  private let loop: EventLoop
  private let pipeline: Pipeline
  private let outbox: Outbox

  /// A pipeline whose registry can't be opened.
  init() throws {
    loop = try EventLoop()
    let log = Log(level: .error)
    outbox = Outbox(time: loop.time, log: log)
    let app = Array("com.example.app".utf8)
    pipeline = Pipeline(
      apps: [Pipeline.App(id: app, packages: [], routes: Pipeline.Routes())],
      intake: Intake(apps: [(app, [])], limits: RequestLimits()),
      publications: OutcomePublications(
        prefix: "push", apps: ["com.example.app"], steps: [RetryStep(name: "1s", delay: 1_000)]),
      outbox: outbox, time: loop.time, log: log, results: .none, attemptLimit: 10)
    let desk = try RegistryDesk("sqlite:/proc/nowhere/registry.db", limits: RegistryLimits(), host: LoopHost(loop))
    desk.owner = pipeline
    pipeline.desk = desk
  }

  private func deliver(_ body: String, returns: Int64 = 0, keeping kept: Int = .max) {
    var delivery = Delivery()
    delivery.body = Array(body.utf8.prefix(kept))
    delivery.bodySize = UInt64(body.utf8.count)
    delivery.redelivered = returns > 0
    if returns > 0 { delivery.properties.headers.append("x-delivery-count", .integer(returns)) }
    pipeline.registryChangeDelivered(delivery)
  }

  private func settle() {
    while pipeline.desk?.isIdle == false { loop.turn(waitingAtMost: 0.05) }
    loop.turn(waitingAtMost: 0)
  }

  /// Whether changes that the registry hasn't taken for so many seconds are still in hand.
  private func keeps(_ seconds: Double) -> Bool {
    pipeline.changesStuckSince = loop.now.advanced(bySeconds: -seconds)
    pipeline.giveBackStuckChanges()
    return pipeline.table.count > 0
  }

  @Test("go back after a minute in which the registry took none, and the later the more often they have been returned")
  func givenBack() {
    for number in 0..<3 { deliver(#"{"platform":"fcm","token":"t\#(number)"}"#) }
    settle()
    #expect(pipeline.table.count == 3 && pipeline.owed.count == 3 && pipeline.changesStuckSince != nil)
    pipeline.giveBackStuckChanges()
    #expect(keeps(59))
    #expect(!keeps(61) && pipeline.owed.isEmpty && pipeline.changesStuckSince == nil)
    deliver(#"{"platform":"fcm","token":"t0"}"#, returns: 2)
    settle()
    #expect(keeps(239))
    #expect(!keeps(241))
  }

  @Test("that are lost with their connection are asked for no more; one whose answer is on its way stays until that is out")
  func lost() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    deliver("no change at all")
    settle()
    #expect(pipeline.table.count == 2 && outbox.backlog == 1)
    pipeline.registryChangesLost()
    #expect(pipeline.table.count == 1 && pipeline.owed.isEmpty)
    for slot in outbox.slots.indices where outbox.slots[slot] != nil { outbox.confirmed(slot) }
    #expect(pipeline.table.count == 0)
    pipeline.applyOwedChanges()
    #expect(pipeline.desk?.isIdle == true)
  }

  @Test("that were lost before the registry failed don't count as changes that it doesn't take")
  func lostBeforeFailure() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    pipeline.registryChangesLost()
    settle()
    #expect(pipeline.table.count == 0 && pipeline.changesAsked == 0 && pipeline.changesStuckSince == nil)
  }

  @Test("however large they are, the reading of requests goes on")
  func large() {
    for number in 0..<80 { deliver(#"{"platform":"fcm","token":"t\#(number)"\#(String(repeating: " ", count: 1 << 20))}"#) }
    settle()
    pipeline.adjustIntake()
    #expect(pipeline.table.count == 80 && !pipeline.bodies.isReadingPaused && pipeline.bodies.total == 0)
    pipeline.registryChangesLost()
    #expect(pipeline.table.count == 0 && pipeline.bodies.total == 0)
  }

  @Test("one that is larger than what is kept of it is refused as too large, and not as bad JSON")
  func tooLarge() throws {
    let body = #"{"platform":"fcm","token":"t0"\#(String(repeating: " ", count: 5 << 20))}"#
    deliver(body, keeping: 4 << 20)
    let letter = try #require(outbox.slots.compactMap { $0 }.first)
    guard case .string(let reason)? = letter.properties.headers["x-push-reason"] else { throw Missing() }
    #expect(String(decoding: reason, as: UTF8.self).hasPrefix("too large: \(body.utf8.count) bytes"))
    #expect(letter.properties.headers["x-push-truncated-from"] == .integer(Int64(body.utf8.count)))
  }

  private struct Missing: Error {}

  @Test("leave the requests that are in hand beside them alone, and the other way round")
  func apart() {
    deliver(#"{"platform":"fcm","token":"t0"}"#)
    settle()
    pipeline.channelLost()
    #expect(pipeline.table.count == 1 && pipeline.owed.count == 1)
    pipeline.registryChangesLost()
    #expect(pipeline.table.count == 0)
  }
}
