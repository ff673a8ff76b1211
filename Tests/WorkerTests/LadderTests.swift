import Broker
import Logging
import Testing
import Wire

@testable import Delivery

@Suite("The ladder")
struct LadderTests {
  /// The default one.
  static let ladder = Ladder(
    steps: [("1s", 1), ("10s", 10), ("1m", 60), ("5m", 300), ("15m", 900), ("1h", 3_600)].map {
      RetryStep(name: $0, delay: $1 * 1_000)
    })

  @Test(
    "chooses the first step that is long enough, or the one before if little remains after it",
    arguments: [
      (0, "1s"), (1, "1s"), (2, "10s"), (10, "10s"), (12, "10s"), (13, "1m"), (20, "1m"), (61, "1m"), (80, "5m"), (900, "15m"),
      (960, "15m"), (1_200, "1h"), (3_600, "1h"), (7_200, "1h"),
    ] as [(Int64, String)])
  func step(seconds: Int64, name: String) { #expect(Self.ladder.step(for: seconds * 1_000).name == name) }

  @Test("never chooses a step beyond the request's life, and all steps together are at least the requested delay")
  func life() {
    for life in [1_600, 5_000, 15_000, 30_000, 59_000, 61_000, 400_000, 3_000_000] as [Int64] {
      for delay in [0, 500, 1_000, 5_000, 20_000, 29_000, 61_000, 900_000] as [Int64] where delay <= life - Ladder.slack {
        var (waited, rounds): (Int64, Int) = (0, 0)
        repeat {
          let step = Self.ladder.step(for: delay - waited, within: life - waited)
          waited += step.delay
          rounds += 1
          #expect(waited < life || delay - waited > -1_000 && delay > life - 1_600, "\(life) \(delay) \(waited)")
        } while delay - waited > Ladder.slack && rounds < 40
        #expect(waited + Ladder.slack >= delay && rounds < 25, "\(life) \(delay)")
      }
    }
  }

  @Test("retries a request that lives shorter than an outage's delay once before its end, if a step is short enough")
  func shortLife() {
    #expect(Self.ladder.longestWait(within: 30_000) == 20_000)
    #expect(Self.ladder.longestWait(within: 59_000) == 50_000)
    #expect(Self.ladder.longestWait(within: 840_000) == 600_000)
    #expect(Self.ladder.longestWait(within: 1_400) == nil)
  }

  @Test("spreads requests that failed together over the shorter steps, at random, and never past their end")
  func jitter() {
    func all(_ delay: Int64, _ life: Int64) -> Set<Int64> {
      Set((0..<100).map { Self.ladder.jitter(for: delay, within: life, by: $0) })
    }
    #expect(all(1_000, .max) == [0])
    #expect(all(10_000, .max) == [0, 1_000])
    #expect(all(60_000, .max) == [0, 1_000, 10_000])
    #expect(all(900_000, .max) == [0, 1_000, 10_000, 60_000])
    #expect(all(900_000, 930_000) == [0, 1_000, 10_000])
    #expect(all(60_000, 60_000) == [0])
  }

  @Test("a provider's wait is cut to the longest step, for a list as for a single device")
  func cut() throws {
    let time = Turn(now: MonotonicTime(nanoseconds: 1), wallClock: 1_000_000)
    let steps = [RetryStep(name: "1s", delay: 1_000), RetryStep(name: "5s", delay: 5_000)]
    let pipeline = Pipeline(
      apps: Applications(Array("a".utf8)), outbox: Outbox(time: time, log: Log(level: .error)), time: time, steps: steps)
    let entry = InFlight(index: 0)
    entry.identity.deadline = time.wallClock + 3_600_000
    let due = try #require(pipeline.publisher.nextAttempt(of: entry, after: 900_000))
    #expect((5_000...6_000).contains(due - time.wallClock), "\(due)")
    entry.identity.deadline = time.wallClock + 5_000
    #expect(pipeline.publisher.nextAttempt(of: entry, after: 900_000) == time.wallClock + 5_000)
    entry.identity.deadline -= 1
    #expect(pipeline.publisher.nextAttempt(of: entry, after: 900_000) == nil)
  }
}
