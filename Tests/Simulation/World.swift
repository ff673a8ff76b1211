import Wire

/// The simulated world: one process, one thread, one order of events. Everything follows from the seed.
public final class World {
  let seed: UInt64
  var random: RandomSource
  private(set) var trace: Trace
  private(set) var participants: [Participant] = []
  private(set) lazy var network = Network(self)
  /// The world's clock and timers.
  private var time: Turn

  init(seed: UInt64, keepsTrace: Bool) {
    self.seed = seed
    random = RandomSource(seed: seed)
    trace = Trace(keepsLines: keepsTrace)
    // 2027-01-15. Any time would do, but in 20 s a half hour ends, and with it the period of a provider token.
    time = Turn(now: Self.start, wallClock: 1_800_000_000_000 - 20_000)
  }

  var now: MonotonicTime { time.now }
  /// Seconds since the beginning.
  var elapsed: Double { time.now.seconds(since: Self.start) }
  private static let start = MonotonicTime(nanoseconds: 1_000_000_000_000)
  /// Unix milliseconds.
  var wallClock: Int64 { time.wallClock }

  func add(_ participant: Participant) { participants.append(participant) }

  func schedule(at deadline: MonotonicTime, _ body: @escaping () -> Void) { time.schedule(at: deadline, body) }
  func schedule(after seconds: Double, _ body: @escaping () -> Void) { time.schedule(after: seconds, body) }

  func note(_ line: @autoclosure () -> String) { trace.note(line(), at: now) }

  func mix(_ value: Int) { trace.mix(value) }

  /// A separate random source for a part whose number of draws must not affect others.
  func fork() -> RandomSource { RandomSource(seed: random.next()) }

  private(set) var failures: [String] = []
  var hasFailed: Bool { !failures.isEmpty }

  func fail(_ words: String) {
    note("FAILED: \(words)")
    if failures.count < 20 { failures.append(words) }
  }

  // MARK: running

  /// Runs until the time is over or the condition holds. Returns true if it holds.
  @discardableResult
  func run(seconds: Double, until isDone: () -> Bool = { false }) -> Bool {
    let end = now.advanced(bySeconds: seconds)
    for participant in participants { participant.forgetDeadline() }
    var turnsAtOnce = 0
    while !isDone() {
      var next = time.nextTimer
      for participant in participants { next = min(next, participant.deadline) }
      guard next <= end else {
        move(to: end)
        return isDone()
      }
      turnsAtOnce = next > now ? 0 : turnsAtOnce + 1
      if turnsAtOnce > Self.mostTurnsAtOnce {
        let due = participants.filter { $0.deadline <= now }.map(\.name)
        fail(
          "time stands still: \(due.isEmpty ? "a timer" : due.joined(separator: ", ")) has something to do at once, again and again"
        )
        turnsAtOnce = 0
        continue
      }
      move(to: max(next, now))
      if time.nextTimer <= now {
        time.runTimers()
        for participant in participants { participant.forgetDeadline() }
      }
      for participant in participants { participant.turn(at: now) }
    }
    return true
  }

  /// Most turns without a change of time; more indicate an endless loop.
  private static let mostTurnsAtOnce = 100_000

  /// Drops all pending events and the objects they refer to.
  func end() { time = Turn(now: now, wallClock: wallClock) }

  private func move(to next: MonotonicTime) {
    let milliseconds = next.nanoseconds / 1_000_000 - now.nanoseconds / 1_000_000
    time.begin(now: next, wallClock: wallClock + milliseconds)
  }
}
