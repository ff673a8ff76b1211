import Wire

/// The answers to several requests of one call, in the order of the requests.
final class Gathering<Answer> {
  private let then: ([Answer]) -> Void
  private var answers: [Answer?]
  private var missing: Int

  /// - Parameters:
  ///   - count: number of requests, at least 1.
  ///   - then: called once, by the last answer.
  init(_ count: Int, then: @escaping ([Answer]) -> Void) {
    self.then = then
    answers = Array(repeating: nil, count: count)
    missing = count
  }

  /// - Parameter index: of the request; each is answered once.
  func set(_ index: Int, _ answer: Answer) {
    answers[index] = answer
    missing -= 1
    if missing == 0 { then(answers.compactMap(\.self)) }
  }
}

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
