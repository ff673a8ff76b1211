import Delivery
import PushCore
import Synchronization
import Wire

/// A few figures of the last quarter of an hour, for the page's charts.
final class WorkerHistory: Sendable {
  /// Milliseconds between two samples.
  private static let pause: Int64 = 5_000
  private static let most = 180

  private struct Sample {
    /// Unix milliseconds.
    var at: Int64
    /// Totals since the start: delivered, failed, retried, parked, dead letters.
    var counts: [Int]
    var cpuSeconds: Double
    /// Answers of all providers, by the bounds of ``PushTimes/answerBounds``.
    var answers: [Int]
  }

  private let samples = Mutex<[Sample]>([])

  /// Call about once a second.
  /// - Parameter report: called only if a sample is due.
  func note(at now: Int64, _ report: () -> WorkerReport) {
    guard samples.withLock({ $0.last.map { now - $0.at >= Self.pause } ?? true }) else { return }
    let report = report()
    let counters = report.whole.counters
    var answers = Histogram(bounds: PushTimes.answerBounds)
    for provider in Platform.allCases { answers += report.whole.times[answersOf: provider] }
    let sample = Sample(
      at: now,
      counts: [counters.delivered, counters.failures, counters.postponed, counters.parked, counters.deadLetters],
      cpuSeconds: report.usage.cpuSeconds, answers: answers.counts)
    samples.withLock {
      $0.append(sample)
      if $0.count > Self.most { $0.removeFirst() }
    }
  }

  /// Each sample is an array of time, counts, CPU seconds and answers.
  var json: String {
    let lines = samples.withLock { $0 }.map { sample in
      let numbers = ["\(sample.at)"] + sample.counts.map { "\($0)" } + ["\(sample.cpuSeconds)"] + sample.answers.map { "\($0)" }
      return "[\(numbers.joined(separator: ","))]"
    }
    return #"{"bounds":\#(PushTimes.answerBounds),"samples":[\#(lines.joined(separator: ","))]}"#
  }
}
