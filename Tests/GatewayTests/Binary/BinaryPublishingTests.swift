import PushCore
import Testing
import Wire

@testable import Gateway

private final class TestBroker {
  var answers: [(Bool) -> Void] = []
  func publish(_ request: BinaryRequest, _ answered: @escaping (Bool) -> Void) { answers.append(answered) }
}

@Suite("Publishing for old senders")
struct BinaryPublishingTests {
  private let broker = TestBroker()
  private let time = Turn(now: MonotonicTime(nanoseconds: 0), wallClock: 0)
  private let publishing: BinaryPublishing

  init() { publishing = BinaryPublishing(time: time, publishOnce: broker.publish) }

  private func request() throws -> BinaryRequest {
    try BinaryRequest(
      BinaryFrame(identifier: 1, token: OldSender.token, payload: OldSender.payload), app: [], now: 0, id: [],
      limits: RequestLimits())
  }

  private func pass(_ seconds: Double) {
    time.begin(now: time.now.advanced(bySeconds: seconds), wallClock: 0)
    time.runTimers()
  }

  @Test("unconfirmed notifications are published again, under the same id, until they are confirmed")
  func again() throws {
    var settled: [Bool] = []
    publishing.publish(try request()) { settled.append($0) }
    broker.answers[0](false)
    pass(5)
    #expect(broker.answers.count == 2 && settled.isEmpty)
    broker.answers[1](true)
    #expect(settled == [true] && publishing.open == 0)
  }

  @Test("but only for a limited time")
  func givenUp() throws {
    var settled: [Bool] = []
    publishing.publish(try request()) { settled.append($0) }
    var rounds = 0
    while settled.isEmpty, rounds < 100 {
      broker.answers.last?(false)
      pass(2)
      rounds += 1
    }
    #expect(settled == [false] && time.now.seconds(since: MonotonicTime(nanoseconds: 0)) < 14)
  }

  @Test("a publication without an answer is given up after ten seconds; a later answer is ignored")
  func unanswered() throws {
    var settled: [Bool] = []
    publishing.publish(try request()) { settled.append($0) }
    pass(9.9)
    #expect(settled.isEmpty && publishing.open == 1)
    pass(0.1)
    #expect(settled == [false] && publishing.open == 0)
    broker.answers[0](true)
    pass(20)
    #expect(settled == [false] && broker.answers.count == 1)
  }

  @Test("a notification refused for the last time after its end isn't tried again")
  func refusedLate() throws {
    publishing.publish(try request()) { _ in }
    pass(10)
    broker.answers[0](false)
    pass(20)
    #expect(broker.answers.count == 1)
  }

  @Test("a stopping gateway tries and waits only for its limit, and reports in a later turn")
  func hurried() throws {
    var settled: [Int: Bool] = [:]
    publishing.publish(try request()) { settled[0] = $0 }
    publishing.hurry(2)
    publishing.publish(try request()) { settled[1] = $0 }
    broker.answers[1](false)
    pass(1.9)
    #expect(settled.isEmpty)
    pass(0.1)
    #expect(settled == [0: false, 1: false])
    publishing.publish(try request()) { settled[2] = $0 }
    #expect(settled[2] == nil)
    pass(0)
    #expect(settled[2] == false)
  }
}
