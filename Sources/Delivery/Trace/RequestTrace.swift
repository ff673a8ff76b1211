import PushCore
import Wire

/// What is noted of a request while it is in hand, so that it can be reported afterwards; reused with its request, so that it costs a steady
/// worker no allocation.
struct RequestTrace {
  /// One push, as far as it has come.
  struct Push {
    enum Answer {
      /// It is on its stream.
      case none
      case answered(status: Int)
      /// Certainly not processed.
      case notSent
      case unknown
    }

    var recipient: Int
    var sentAt: MonotonicTime
    var answeredAt = MonotonicTime(nanoseconds: 0)
    var answer = Answer.none
    var error: PushError?
    /// Without what may be a token.
    var reason = ""
    /// Which of its pool's connections it went by, counted from 1.
    var connection = 0
  }

  /// Where it went on to.
  enum Next {
    case ladder(step: [UInt8])
    case hold
    case pages
  }

  /// Pushes that are reported of one request; of a list or page those that failed come first.
  static let mostPushes = 32

  private(set) var pushes: [Push] = []
  var next: Next?
  var refusal: Rejection?
  var isDuplicate = false
  /// It came too late.
  var isExpired = false
  var deadLetters = 0
  var feedback = 0

  mutating func end() {
    pushes.removeAll(keepingCapacity: pushes.capacity <= 4)
    next = nil
    refusal = nil
    isDuplicate = false
    isExpired = false
    deadLetters = 0
    feedback = 0
  }

  mutating func sent(_ recipient: Int, at now: MonotonicTime) {
    if pushes.count < Self.mostPushes {
      pushes.append(Push(recipient: recipient, sentAt: now))
    } else if let place = pushes.lastIndex(where: { $0.recipient == recipient }) {
      pushes[place] = Push(recipient: recipient, sentAt: now)
    }
  }

  /// - Parameter isPlain: the device has it.
  mutating func answered(
    _ recipient: Int, _ answer: Push.Answer, _ error: PushError?, _ reason: String, connection: Int, isPlain: Bool,
    at now: MonotonicTime
  ) {
    guard let place = place(of: recipient, isPlain: isPlain) else { return }
    if pushes[place].recipient != recipient { pushes[place] = Push(recipient: recipient, sentAt: now) }
    pushes[place].answeredAt = now
    pushes[place].answer = answer
    pushes[place].error = error
    pushes[place].reason = reason
    pushes[place].connection = connection
  }

  /// Of a push that isn't reported yet and has failed: that of one which the device has.
  private func place(of recipient: Int, isPlain: Bool) -> Int? {
    if let place = pushes.lastIndex(where: { $0.recipient == recipient }) { return place }
    guard !isPlain else { return nil }
    return pushes.lastIndex { push in
      if case .answered = push.answer { push.error == nil } else { false }
    }
  }
}
