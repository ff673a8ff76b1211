import TestSupport
import Testing

@testable import Wire

@Suite struct TimerHeapTests {
  private func at(_ seconds: Int) -> MonotonicTime { MonotonicTime(nanoseconds: Int64(seconds) * 1_000_000_000) }

  @Test("timers fire by deadline, and in the order of scheduling where that is equal")
  func order() {
    var heap = TimerHeap()
    var fired: [Int] = []
    for (name, seconds) in [(1, 5), (2, 1), (3, 5), (4, 3), (5, 1)] {
      _ = heap.schedule(at: at(seconds)) { fired.append(name) }
    }
    while let body = heap.popDue(at: at(4), before: heap.horizon) { body() }
    #expect(fired == [2, 5, 4])
    #expect(heap.nextDeadline == at(5))
    while let body = heap.popDue(at: at(5), before: heap.horizon) { body() }
    #expect(fired == [2, 5, 4, 1, 3])
    #expect(heap.nextDeadline == .distantFuture)
  }

  @Test("ten thousand timers, half of them cancelled at random, fire in order and leave nothing", arguments: [UInt64(1), 2, 3])
  func many(seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var heap = TimerHeap()
    var fired: [(Int, Int)] = []
    var tokens: [(token: TimerToken, seconds: Int, number: Int)] = []
    for number in 0..<10_000 {
      let seconds = Int.random(in: 0..<1000, using: &generator)
      tokens.append((heap.schedule(at: at(seconds)) { fired.append((seconds, number)) }, seconds, number))
    }
    tokens.shuffle(using: &generator)
    let cancelled = tokens[..<5000].count { heap.cancel($0.token) }
    #expect(cancelled == 5000)
    let cancelledAgain = tokens[..<5000].count { heap.cancel($0.token) }
    #expect(cancelledAgain == 0)
    #expect(heap.count == 5000)
    while let body = heap.popDue(at: at(1000), before: heap.horizon) { body() }
    #expect(fired.map(\.1) == tokens[5000...].sorted { ($0.seconds, $0.number) < ($1.seconds, $1.number) }.map(\.number))
    #expect(heap.count == 0)
  }

  @Test("a cancelled timer's closure is released at once, and its token stays harmless")
  func release() {
    final class Held {}
    var heap = TimerHeap()
    weak var weakHeld: Held?
    let token: TimerToken
    do {
      let held = Held()
      weakHeld = held
      token = heap.schedule(at: at(1)) { _ = held }
    }
    #expect(weakHeld != nil)
    heap.cancel(token)
    #expect(weakHeld == nil)
    let next = heap.schedule(at: at(2)) {}
    let isOldCancelled = heap.cancel(token)
    #expect(!isOldCancelled, "the slot has a new owner")
    let isNextCancelled = heap.cancel(next)
    #expect(isNextCancelled)
  }

  @Test("a timer that schedules itself without delay waits for the next turn")
  func horizon() {
    var heap = TimerHeap()
    _ = heap.schedule(at: at(1)) {}
    let horizon = heap.horizon
    func isDue(before horizon: UInt64) -> Bool { heap.popDue(at: at(1), before: horizon) != nil }
    #expect(isDue(before: horizon))
    _ = heap.schedule(at: at(1)) {}
    #expect(!isDue(before: horizon))
    #expect(isDue(before: heap.horizon))
  }
}
