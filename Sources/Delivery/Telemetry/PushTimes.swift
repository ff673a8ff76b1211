import Broker
import PushCore
import Wire

/// Measures the durations of a shard's pushes.
package struct PushTimes: Sendable {
  /// Upper bounds in seconds. Most producers' timestamps are whole seconds, and a request may wait for days.
  static let publishBounds = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400]
  package static let answerBounds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

  private static let lanes = PushCounts.Lane.allCases.count

  /// From the producer's timestamp to the provider's final answer, by provider and lane, without broadcasts.
  private var toAnswer = Array(
    repeating: Histogram(bounds: publishBounds), count: Platform.allCases.count * lanes)
  /// How many of these begin with a timestamp in whole seconds, and may be up to a second too long.
  private var wholeSeconds = Array(repeating: 0, count: Platform.allCases.count * lanes)
  /// From handing a push to its pool to the provider's answer, by provider.
  private var answers = Array(repeating: Histogram(bounds: answerBounds), count: Platform.allCases.count)
  /// From a publication to the broker's confirm.
  package var confirms = Histogram(bounds: Outbox.confirmBounds)

  package init() {}

  private static func place(_ provider: Platform, _ lane: PushCounts.Lane) -> Int {
    Int(provider.rawValue) * lanes + lane.rawValue
  }

  mutating func answered(
    _ provider: Platform, _ lane: PushCounts.Lane, after seconds: Double, isExact: Bool
  ) {
    let place = Self.place(provider, lane)
    toAnswer[place].record(seconds: seconds)
    if !isExact { wholeSeconds[place] += 1 }
  }

  package func wholeSeconds(_ provider: Platform, _ lane: PushCounts.Lane) -> Int {
    wholeSeconds[Self.place(provider, lane)]
  }

  package func publishToAnswer(_ provider: Platform, _ lane: PushCounts.Lane) -> Histogram {
    toAnswer[Self.place(provider, lane)]
  }

  package subscript(answersOf provider: Platform) -> Histogram {
    get { answers[Int(provider.rawValue)] }
    set { answers[Int(provider.rawValue)] = newValue }
  }

  /// The difference from an earlier state.
  package func since(_ earlier: PushTimes) -> PushTimes {
    var recent = self
    for index in toAnswer.indices {
      recent.toAnswer[index] = toAnswer[index].since(earlier.toAnswer[index])
      recent.wholeSeconds[index] -= earlier.wholeSeconds[index]
    }
    for index in answers.indices { recent.answers[index] = answers[index].since(earlier.answers[index]) }
    recent.confirms = confirms.since(earlier.confirms)
    return recent
  }

  package static func += (a: inout PushTimes, b: PushTimes) {
    for index in a.toAnswer.indices {
      a.toAnswer[index] += b.toAnswer[index]
      a.wholeSeconds[index] += b.wholeSeconds[index]
    }
    for index in a.answers.indices { a.answers[index] += b.answers[index] }
    a.confirms += b.confirms
  }
}
