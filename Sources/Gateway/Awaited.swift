import Wire

/// An outcome that is reported once: by whoever knows it first, or when its time is over.
final class Awaited<Outcome> {
  private let time: Turn
  private var then: ((Outcome) -> Void)?
  private var limit: TimerToken?

  init(_ time: Turn, then: @escaping (Outcome) -> Void) {
    self.time = time
    self.then = then
  }

  var isOver: Bool { then == nil }

  /// Ends it after so many seconds, and not when an earlier call said.
  func end(after seconds: Double, as outcome: Outcome) {
    guard !isOver else { return }
    if let limit { time.cancel(limit) }
    limit = time.schedule(after: seconds) { [self] in end(as: outcome) }
  }

  /// What comes later is not heard.
  func end(as outcome: Outcome) {
    guard let then else { return }
    self.then = nil
    if let limit { time.cancel(limit) }
    then(outcome)
  }
}
