import Testing
import Wire

@testable import Gateway

@Suite("An awaited outcome")
struct AwaitedTests {
  private let time = Turn(now: MonotonicTime(nanoseconds: 0), wallClock: 0)

  private func pass(_ seconds: Double) {
    time.begin(now: time.now.advanced(bySeconds: seconds), wallClock: 0)
    time.runTimers()
  }

  @Test("arrives once, with its first report")
  func once() {
    var heard: [String] = []
    let awaited = Awaited<String>(time) { heard.append($0) }
    awaited.end(after: 10, as: "late")
    awaited.end(as: "first")
    awaited.end(as: "second")
    awaited.end(after: 1, as: "third")
    pass(20)
    #expect(heard == ["first"] && awaited.isOver)
  }

  @Test("ends at its deadline, which may change")
  func late() {
    var heard: [String] = []
    let awaited = Awaited<String>(time) { heard.append($0) }
    awaited.end(after: 10, as: "unconfirmed")
    pass(9)
    awaited.end(after: 5, as: "accepted")
    pass(4)
    #expect(heard.isEmpty)
    pass(1)
    awaited.end(as: "more")
    #expect(heard == ["accepted"])
  }
}
