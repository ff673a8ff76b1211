import PushCore
import Wire

/// Buffers the lines of a shard's trace: all requests that failed or expired, and a limited number of others in each second.
package final class TraceRecorder {
  enum Outcome {
    /// Each device was reached at the first attempt.
    case success
    /// The request waits, moved to another queue, or needed several attempts.
    case other
    /// The request ended, and some device was not reached.
    case failure
  }

  /// The buffer's limit in bytes. The second half is for failures.
  private static let mostBytes = 1 << 20

  private let perSecond: Int
  private var windowEnd = MonotonicTime(nanoseconds: .min)
  private var noted = 0
  private(set) var lines: [UInt8] = []
  private var count = 0
  /// The number of requests left out since the last ``take()``.
  private var omitted = 0
  /// Since the shard's start.
  package private(set) var counters = Counters()
  /// False once tracing has stopped.
  var isOn = true

  init(perSecond: Int) { self.perSecond = perSecond }

  /// Whether a request is traced. If not, it counts as left out.
  func admits(_ outcome: Outcome, at now: MonotonicTime) -> Bool {
    guard isOn else {
      counters.untracedByBroker += 1
      return false
    }
    if now >= windowEnd {
      windowEnd = now.advanced(bySeconds: 1)
      noted = 0
    }
    let hasRoom =
      switch outcome {
      case .success: noted < max(perSecond * 3 / 4, 1) && lines.count < Self.mostBytes / 2
      case .other: noted < perSecond && lines.count < Self.mostBytes / 2
      case .failure: lines.count < Self.mostBytes
      }
    guard hasRoom else {
      omitted += 1
      counters.untracedByRate += 1
      return false
    }
    if outcome != .failure { noted += 1 }
    return true
  }

  func append(_ write: (inout [UInt8]) -> Void) {
    write(&lines)
    lines.append(UInt8(ascii: "\n"))
    count += 1
  }

  /// The broker has confirmed the lines of so many requests.
  func confirmed(_ requests: Int) { counters.traced += requests }

  /// The lines are lost, or their fate is unknown.
  func lost(_ requests: Int) {
    omitted += requests
    counters.untracedByBroker += requests
  }

  /// - Returns: the lines, with a last one for requests left out, and the number of requests; nil if there are none.
  func take() -> (body: [UInt8], requests: Int)? {
    guard count > 0 || omitted > 0 else { return nil }
    if omitted > 0 {
      var line = JSONObjectWriter(after: exchange(&lines, with: []))
      line.set("left_out", Int64(omitted))
      lines = line.closed()
      lines.append(UInt8(ascii: "\n"))
    }
    let taken = (lines, count)
    lines = []
    (count, omitted) = (0, 0)
    return taken
  }
}
