import Wire

/// Detects by PING whether the server still answers: after a silence, and after a request timed out. A server that sends bytes
/// without completing a frame counts as silent.
struct Liveness {
  enum Verdict {
    case alive
    case ping(UInt64)
    case dead(String)
  }

  let interval: Double
  let timeout: Double
  private var lastHeard = MonotonicTime.distantFuture
  private var settingsDue = MonotonicTime.distantFuture
  private var pongDue = MonotonicTime.distantFuture
  private var isSuspected = false
  private var number: UInt64 = 0

  init(interval: Double, timeout: Double) {
    self.interval = interval
    self.timeout = timeout
  }

  /// Before this call, no PING is sent. HTTP/1.1 has none.
  mutating func opened(at now: MonotonicTime) {
    lastHeard = now
    settingsDue = now.advanced(bySeconds: timeout)
  }

  mutating func ready() { settingsDue = .distantFuture }

  mutating func heard(at now: MonotonicTime) { lastHeard = now }

  /// Records the answer to a PING. An answer with another number is ignored.
  mutating func answered(_ number: UInt64) {
    guard number == self.number else { return }
    pongDue = .distantFuture
    isSuspected = false
  }

  /// The next check sends a PING, even if the server was heard.
  mutating func suspect() { isSuspected = true }

  var isAwaitingPong: Bool { pongDue != .distantFuture }

  var deadline: MonotonicTime {
    min(settingsDue, isAwaitingPong ? pongDue : lastHeard.advanced(bySeconds: interval))
  }

  mutating func check(at now: MonotonicTime) -> Verdict {
    if settingsDue <= now { return .dead("the server sent no SETTINGS within \(timeout) s") }
    if pongDue <= now { return .dead("the server did not answer a PING within \(timeout) s") }
    guard !isAwaitingPong, lastHeard != .distantFuture else { return .alive }
    guard isSuspected || lastHeard.advanced(bySeconds: interval) <= now else { return .alive }
    number += 1
    pongDue = now.advanced(bySeconds: timeout)
    return .ping(number)
  }
}
