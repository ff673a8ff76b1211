import Broker

/// Which step of the ladder a retry waits on. All times in milliseconds.
///
/// A queue of the broker's lets go of its messages in their order, so that all on a step wait equally long; what is to wait for another time
/// goes by several steps, its time noted on it.
struct Ladder {
  /// The shortest first; at least one.
  let steps: [RetryStep]

  /// What a message may come back too late by, on its way to the broker and back; a wait of no more than that is none.
  static let slack: Int64 = 500

  /// A message that waits on the step comes back before its time. What is to wait longer than the longest step waits that one.
  func isTooShort(_ step: RetryStep, for delay: Int64) -> Bool {
    step.delay + Self.slack < delay && delay <= (steps.last?.delay ?? 0)
  }

  /// The first that is long enough, or the one below where little is left to wait for after it. Never one that the request doesn't live
  /// through, unless it lives through none.
  /// - Parameter life: how long the request is worth anything.
  func step(for delay: Int64, within life: Int64 = .max) -> RetryStep {
    func fits(_ step: RetryStep) -> Bool { step.delay <= life - Self.slack }
    let below = steps.last { $0.delay <= delay && fits($0) }
    if let below, delay - below.delay <= delay / Self.part { return below }
    if let above = steps.first(where: { $0.delay >= delay }), fits(above) { return above }
    return below ?? steps[0]
  }

  /// As late as a request that lives so long can be tried once more, in waits of one step; nil where it lives through none.
  func longestWait(within life: Int64) -> Int64? {
    guard let step = steps.last(where: { $0.delay <= life - Self.slack }) else { return nil }
    return (life - Self.slack) / step.delay * step.delay
  }

  /// What the retry of one request waits for beyond its delay: nothing or one of the shorter steps, by a random number, so that those that
  /// have failed together aren't tried together.
  func jitter(for delay: Int64, within life: Int64, by draw: UInt64) -> Int64 {
    let most = min(delay / Self.part, life - delay - Self.slack)
    let count = steps.count { $0.delay <= most }
    let choice = Int(draw % UInt64(count + 1))
    return choice == 0 ? 0 : steps[choice - 1].delay
  }

  private static let part: Int64 = 5
}
