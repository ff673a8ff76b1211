import Wire

/// Judges by PING whether the server still answers: after a silence, and after a request has run out of time.
/// A server that trickles bytes without ever completing a frame counts as silent.
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

  mutating func opened(at now: MonotonicTime) {
    lastHeard = now
    settingsDue = now.advanced(bySeconds: timeout)
  }

  mutating func ready() { settingsDue = .distantFuture }

  mutating func heard(at now: MonotonicTime) { lastHeard = now }

  /// The answer to a PING; one that was never asked for says nothing.
  mutating func answered(_ number: UInt64) {
    guard number == self.number else { return }
    pongDue = .distantFuture
    isSuspected = false
  }

  /// The next check asks, whatever has been heard.
  mutating func suspect() { isSuspected = true }

  var isAwaitingPong: Bool { pongDue != .distantFuture }

  var deadline: MonotonicTime {
    min(settingsDue, isAwaitingPong ? pongDue : lastHeard.advanced(bySeconds: interval))
  }

  mutating func check(at now: MonotonicTime) -> Verdict {
    if settingsDue <= now { return .dead("the server sent no SETTINGS within \(timeout) s") }
    if pongDue <= now { return .dead("the server did not answer a PING within \(timeout) s") }
    guard !isAwaitingPong, isSuspected || lastHeard.advanced(bySeconds: interval) <= now else { return .alive }
    number += 1
    pongDue = now.advanced(bySeconds: timeout)
    return .ping(number)
  }
}
