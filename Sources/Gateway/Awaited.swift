import Wire

/// An outcome that is reported once: by the first call of `end(as:)`, or at the time limit.
final class Awaited<Outcome> {
  private let time: Turn
  private var then: ((Outcome) -> Void)?
  private var limit: TimerToken?

  init(_ time: Turn, then: @escaping (Outcome) -> Void) {
    self.time = time
    self.then = then
  }

  var isOver: Bool { then == nil }

  /// Sets the time limit, in seconds from now, and the outcome to report then. Replaces an earlier limit.
  func end(after seconds: Double, as outcome: Outcome) {
    guard !isOver else { return }
    if let limit { time.cancel(limit) }
    limit = time.schedule(after: seconds) { [self] in end(as: outcome) }
  }

  /// Reports the outcome. Later calls do nothing.
  func end(as outcome: Outcome) {
    guard let then else { return }
    self.then = nil
    if let limit { time.cancel(limit) }
    then(outcome)
  }
}
