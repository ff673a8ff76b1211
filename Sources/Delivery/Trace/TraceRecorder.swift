import PushCore
import Wire

/// The lines of a shard's trace until they are published: all requests that failed or expired, and of the others as many in a second as the
/// settings allow.
package final class TraceRecorder {
  enum Outcome {
    /// Each device was reached at the first attempt.
    case success
    /// It waits, went on elsewhere, or needed more attempts.
    case other
    /// It ended, and not every device was reached.
    case failure
  }

  /// Bytes that wait to be published. The second half is for failures.
  private static let mostBytes = 1 << 20

  private let perSecond: Int
  private var windowEnd = MonotonicTime(nanoseconds: .min)
  private var noted = 0
  private(set) var lines: [UInt8] = []
  private var count = 0
  /// Requests that were not noted since the last lines were taken.
  private var omitted = 0
  /// Since the shard began: noted, beyond what is noted in a second, and not taken by the broker.
  package private(set) var confirmedInAll = 0
  package private(set) var beyondRate = 0
  package private(set) var notTaken = 0
  /// False once the trace can't be kept.
  var isOn = true

  init(perSecond: Int) { self.perSecond = perSecond }

  /// Whether a request is noted. It counts as left out if it is not.
  func admits(_ outcome: Outcome, at now: MonotonicTime) -> Bool {
    guard isOn else {
      notTaken += 1
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
      beyondRate += 1
      return false
    }
    if outcome != .failure { noted += 1 }
    return true
  }

  /// Appends a line, which `write` makes.
  func append(_ write: (inout [UInt8]) -> Void) {
    write(&lines)
    lines.append(UInt8(ascii: "\n"))
    count += 1
  }

  /// The stream has the lines of so many requests.
  func confirmed(_ requests: Int) { confirmedInAll += requests }

  /// The stream hasn't, or nobody knows.
  func lost(_ requests: Int) {
    omitted += requests
    notTaken += requests
  }

  var omittedInAll: Int { beyondRate + notTaken }

  /// - Returns: the lines, one more for what was left out, and how many requests they are of; nil where there is nothing to say.
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
