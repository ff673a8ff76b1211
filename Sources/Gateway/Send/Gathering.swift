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
