import AMQP
import Reactor
import Testing

@testable import Worker

@Suite("Hold queues, as a shard knows them")
struct HoldsTests {
  /// Answers when the test says so.
  private final class Broker: HoldBroker {
    var canAsk = true
    var declared: [String] = []
    var consumed: [String] = []
    var asked: [(app: String, answer: (Int?) -> Void)] = []
    var declarations: [(Bool) -> Void] = []
    var inHand = 0

    func declareHold(_ app: String, _ completion: @escaping (Bool) -> Void) {
      declared.append(app)
      declarations.append(completion)
    }
    func countHeld(_ app: String, _ completion: @escaping (Int?) -> Void) { asked.append((app, completion)) }
    func consumeHold(_ app: String, index: Int) { consumed.append(app) }
    func isFlowing(_ app: Int) -> Bool { false }
    func setFlowing(_ isFlowing: Bool, _ app: Int) {}
    func acknowledgeHeld(_ token: DeliveryToken, _ app: Int) {}
    func heldInHand(_ app: Int) -> Int { inHand }
  }

  private let loop: EventLoop
  private let broker = Broker()
  private let holds: Holds

  init() throws {
    loop = try EventLoop()
    holds = Holds(apps: ["a", "b"], time: loop.time, log: Log(level: .error))
    holds.broker = broker
  }

  /// Answers the question under way, and lets the next one follow.
  private func answer(_ count: Int?) {
    let declarations = broker.declarations.count
    broker.asked.removeFirst().answer(count)
    for declaration in broker.declarations[declarations...] { declaration(true) }
    loop.turn(waitingAtMost: 0)
  }

  @Test("one is declared by whoever needs it first, once, and consumed when it is there")
  func declared() {
    #expect(!holds.isPresent(1) && !holds.isPresent(1) && broker.declared == ["b"] && broker.consumed.isEmpty)
    broker.declarations[0](true)
    #expect(holds.isPresent(1) && broker.declared == ["b"] && broker.consumed == ["b"] && holds.present == [1])
  }

  @Test("one that can't be declared is not there, and isn't asked for at every request")
  func refused() {
    _ = holds.isPresent(0)
    broker.declarations[0](false)
    for _ in 0..<100 { #expect(!holds.isPresent(0)) }
    #expect(broker.declared == ["a"] && holds.present.isEmpty)
  }

  @Test("those that other workers have made are found, one question at a time, and declared once more")
  func found() {
    holds.look()
    holds.look()
    #expect(broker.asked.map(\.app) == ["a"] && !holds.areKnown)
    answer(nil)
    #expect(broker.asked.map(\.app) == ["b"])
    answer(7)
    holds.look()
    #expect(holds.areKnown && broker.declared == ["b"] && broker.consumed == ["b"] && broker.asked.isEmpty)
  }

  @Test("one with little in it lets requests pass it, and one with much doesn't")
  func emptied() {
    var emptied: [Int] = []
    holds.onEmptied = { emptied.append($0) }
    holds.look()
    answer(500)
    answer(3)
    #expect(emptied == [1])
  }

  @Test("nothing is asked without a connection, and all is asked again when they were lost")
  func lost() {
    broker.canAsk = false
    holds.look()
    #expect(broker.asked.isEmpty && !holds.areKnown)
    broker.canAsk = true
    holds.look()
    answer(1)
    answer(nil)
    holds.look()
    #expect(holds.areKnown && holds.present == [0])
    holds.lost()
    #expect(!holds.areKnown && holds.present.isEmpty)
    holds.look()
    #expect(broker.asked.map(\.app) == ["a"])
  }
}
