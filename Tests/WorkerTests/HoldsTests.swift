import AMQP
import Logging
import Reactor
import Testing

@testable import Delivery

@Suite("Hold queues, as a shard knows them")
struct HoldsTests {
  private let loop: EventLoop
  private let broker = ScriptedHoldBroker()
  private let apps = Applications()
  private let holds: Holds

  init() throws {
    loop = try EventLoop()
    for id in ["a", "b"] { apps.put(Array(id.utf8), packages: [], senders: []) }
    holds = Holds(apps: apps, time: loop.time, log: Log(level: .error))
    holds.broker = broker
  }

  /// Answers the questions under way, whether there is a hold queue, and has those that are found declared.
  private func answer(_ answers: [Bool?]) {
    let questions = broker.sought.prefix(answers.count)
    broker.sought.removeFirst(questions.count)
    let declarations = broker.declarations.count
    for (question, answer) in zip(questions, answers) { question.answer(answer) }
    for declaration in broker.declarations[declarations...] { declaration(true) }
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

  @Test("those that other workers have made are found, and declared once more; one that comes later as well")
  func found() {
    holds.look()
    holds.look()
    #expect(broker.sought.map(\.app) == ["a", "b"] && !holds.areKnown)
    answer([false, true])
    #expect(holds.areKnown && broker.declared == ["b"] && broker.consumed == ["b"] && holds.present == [1])
    apps.put(Array("c".utf8), packages: [], senders: [])
    #expect(!holds.areKnown)
    holds.look()
    #expect(broker.sought.map(\.app) == ["c"])
  }

  @Test("ten thousand are asked for a few at a time")
  func many() {
    for number in 0..<10_000 { apps.put(Array("\(number)".utf8), packages: [], senders: []) }
    var rounds = 0
    while !holds.areKnown, rounds < 1_000 {
      holds.look()
      #expect(broker.sought.count <= 64)
      answer(broker.sought.map { _ in false })
      rounds += 1
    }
    #expect(holds.areKnown && rounds == (10_002 + 63) / 64 && holds.present.isEmpty)
  }

  @Test("what isn't answered is asked again")
  func unanswered() {
    holds.look()
    answer([nil, false])
    #expect(!holds.areKnown)
    holds.look()
    #expect(broker.sought.map(\.app) == ["a"])
    answer([false])
    #expect(holds.areKnown)
  }

  @Test("one with little in it lets requests pass it, and one with much doesn't")
  func emptied() {
    var emptied: [Int] = []
    holds.onEmptied = { emptied.append($0) }
    holds.look()
    answer([true, true])
    holds.look()
    #expect(broker.counted.map(\.app) == ["a"])
    broker.counted.removeFirst().answer(500)
    while broker.counted.isEmpty { loop.turn(waitingAtMost: 1) }
    #expect(broker.counted.map(\.app) == ["b"])
    broker.counted.removeFirst().answer(3)
    #expect(emptied == [1])
  }

  @Test("what was counted is reported of those that are there; where it couldn't be counted, nothing is said")
  func reported() {
    holds.look()
    answer([true, false])
    holds.look()
    broker.inHand = 8
    #expect(holds.report.map(\.ready) == [nil])
    broker.counted.removeFirst().answer(70)
    #expect(holds.report.map(\.ready) == [70] && holds.report.map(\.inHand) == [8])
    #expect(holds.report.map(\.app) == [Array("a".utf8)])
    while broker.counted.isEmpty { loop.turn(waitingAtMost: 1) }
    broker.counted.removeFirst().answer(nil)
    #expect(holds.report.map(\.ready) == [nil])
    holds.lost()
    #expect(holds.report.isEmpty)
  }

  @Test("nothing is asked without a connection, and all is asked again when they were lost")
  func lost() {
    broker.canAsk = false
    holds.look()
    #expect(broker.sought.isEmpty && !holds.areKnown)
    broker.canAsk = true
    holds.look()
    answer([true, false])
    #expect(holds.areKnown && holds.present == [0])
    holds.lost()
    #expect(!holds.areKnown && holds.present.isEmpty)
    holds.look()
    #expect(broker.sought.map(\.app) == ["a", "b"])
  }
}
