import AMQP
import Reactor
import Testing

@testable import Delivery

@Suite("A shard's hold queues")
struct HoldsTests {
  private let loop: EventLoop
  private let broker = ScriptedHoldBroker()
  private let apps = Applications()
  private let holds: Holds

  init() throws {
    loop = try EventLoop()
    for id in ["a", "b"] { apps.put(Array(id.utf8), packages: [], senders: []) }
    holds = Holds(ShardTools(apps: apps, time: loop.time))
    holds.broker = broker
  }

  /// Answers the open questions about hold queues, and confirms declarations of found ones.
  private func answer(_ answers: [Bool?]) {
    let questions = broker.sought.prefix(answers.count)
    broker.sought.removeFirst(questions.count)
    let declarations = broker.declarations.count
    for (question, answer) in zip(questions, answers) { question.answer(answer) }
    for declaration in broker.declarations[declarations...] { declaration(true) }
  }

  @Test("are declared once, when first needed, and consumed when they exist")
  func declared() {
    #expect(!holds.isPresent(1) && !holds.isPresent(1) && broker.declared == ["b"] && broker.consumed.isEmpty)
    broker.declarations[0](true)
    #expect(broker.declared == ["b"] && broker.consumed == ["b"] && holds.present == [1])
    // A new queue loses confirmed messages if the broker is killed.
    pass(1.2)
    #expect(!holds.isPresent(1))
    pass(0.05)
    #expect(holds.isPresent(1) && broker.declared == ["b"])
  }

  private func pass(_ seconds: Double) { loop.time.refresh(now: loop.time.now.advanced(bySeconds: seconds)) }

  @Test("that can't be declared are not tried again for every request")
  func refused() {
    _ = holds.isPresent(0)
    broker.declarations[0](false)
    for _ in 0..<100 { #expect(!holds.isPresent(0)) }
    #expect(broker.declared == ["a"] && holds.present.isEmpty)
    // Other applications wait for a moment only.
    pass(1.1)
    #expect(!holds.isPresent(0) && !holds.isPresent(1) && broker.declared == ["a", "b"])
    broker.declarations[1](true)
    pass(60)
    #expect(!holds.isPresent(0) && holds.isPresent(1) && broker.declared == ["a", "b", "a"])
  }

  @Test("are all declared ever more rarely while a declaration ends the connection, and not while there is none")
  func ended() {
    for _ in 0..<12 {
      _ = holds.isPresent(0)
      broker.declarations.last?(nil)
      pass(10)
    }
    #expect((3..<9).contains(broker.declared.count))
    pass(100)
    broker.canAsk = false
    let declared = broker.declared.count
    _ = holds.isPresent(0)
    broker.canAsk = true
    #expect(broker.declared.count == declared && !holds.isPresent(0) && broker.declared.count == declared + 1)
  }

  @Test("of other workers are found and declared again, later ones too")
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

  @Test("of ten thousand applications are searched a few at a time")
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

  @Test("are asked for again if the broker didn't answer")
  func unanswered() {
    holds.look()
    answer([nil, false])
    #expect(!holds.areKnown)
    holds.look()
    #expect(broker.sought.map(\.app) == ["a"])
    answer([false])
    #expect(holds.areKnown)
  }

  @Test("with few requests let others pass, those with many don't")
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

  @Test("are reported with their counts; an unknown count is left out")
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
    while broker.counted.isEmpty { loop.turn(waitingAtMost: 1) }
    holds.lost()
    #expect(holds.report.isEmpty)
    // An answer of the lost connection.
    broker.counted.removeFirst().answer(1)
    #expect(holds.ready.isEmpty)
    holds.look()
    answer([true, false])
    pass(1)
    holds.look()
    #expect(broker.counted.map(\.app) == ["a"])
  }

  @Test("are not searched without a connection, and all are searched again after a loss")
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
