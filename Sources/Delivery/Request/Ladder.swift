import Broker

/// Chooses the ladder's step for a retry. All times are in milliseconds. Each step is a queue whose messages all wait equally
/// long, because the broker releases them in order. Other delays need several steps; the message has its due time.
struct Ladder {
  /// The shortest first; at least one.
  let steps: [RetryStep]
  /// The delay of the longest step. No planned wait for a provider is longer.
  var longest: Int64 { steps.last?.delay ?? 0 }

  /// How late a message may come back from the broker. A shorter wait is not worth a step.
  static let slack: Int64 = 500

  /// Whether a message on the step comes back before it is due. A delay longer than the longest step uses that step.
  func isTooShort(_ step: RetryStep, for delay: Int64) -> Bool {
    step.delay + Self.slack < delay && delay <= longest
  }

  /// The first step that is long enough, or the one below if little remains after it. The request must outlive the step, unless
  /// it outlives none.
  /// - Parameter life: the remaining lifetime.
  func step(for delay: Int64, within life: Int64 = .max) -> RetryStep {
    func fits(_ step: RetryStep) -> Bool { step.delay <= life - Self.slack }
    let below = steps.last { $0.delay <= delay && fits($0) }
    if let below, delay - below.delay <= delay / Self.part { return below }
    if let above = steps.first(where: { $0.delay >= delay }), fits(above) { return above }
    return below ?? steps[0]
  }

  /// The longest wait in repetitions of one step that leaves time for another attempt; nil if the lifetime is too short for any
  /// step.
  func longestWait(within life: Int64) -> Int64? {
    guard let step = steps.last(where: { $0.delay <= life - Self.slack }) else { return nil }
    return (life - Self.slack) / step.delay * step.delay
  }

  /// A random addition to a retry's delay: nothing or a shorter step. It spreads requests that failed together.
  func jitter(for delay: Int64, within life: Int64, by draw: UInt64) -> Int64 {
    let most = min(delay / Self.part, life - delay - Self.slack)
    let count = steps.count { $0.delay <= most }
    let choice = Int(draw % UInt64(count + 1))
    return choice == 0 ? 0 : steps[choice - 1].delay
  }

  private static let part: Int64 = 5
}
