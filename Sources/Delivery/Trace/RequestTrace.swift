import PushCore
import Wire

/// Collects the facts about a request for its trace line and spans. It is reused with the request to avoid allocations.
struct RequestTrace {
  struct Push {
    enum Answer {
      case none
      case answered(status: Int)
      case notSent
      case unknown
    }

    var recipient: Int
    var sentAt: MonotonicTime
    var answeredAt = MonotonicTime(nanoseconds: 0)
    var answer = Answer.none
    var error: PushError?
    /// Without words that may be tokens.
    var reason = ""
    /// The number of the connection in its pool, counted from 1; 0 if unknown.
    var connection = 0
  }

  /// The queue that the request goes on to.
  enum Next {
    case ladder(step: [UInt8])
    case hold
    case pages
  }

  /// The limit of pushes of one request. Failed pushes replace successful ones.
  static let mostPushes = 32

  private(set) var pushes: [Push] = []
  /// No recipient after this one is among ``pushes``. Most devices of a page come after it, and need no search.
  private var last = -1
  var next: Next?
  var refusal: Rejection?
  var isDuplicate = false
  var isExpired = false
  var deadLetters = 0
  var feedback = 0

  /// A trace for the next request, which takes over the storage.
  mutating func emptied() -> RequestTrace {
    pushes.removeAll(keepingCapacity: pushes.capacity <= 4)
    return RequestTrace(pushes: exchange(&pushes, with: []))
  }

  mutating func sent(_ recipient: Int, at now: MonotonicTime) {
    if pushes.count < Self.mostPushes {
      pushes.append(Push(recipient: recipient, sentAt: now))
      last = max(last, recipient)
    } else if let place = place(of: recipient, isPlain: true) {
      pushes[place] = Push(recipient: recipient, sentAt: now)
    }
  }

  /// - Parameter error: nil if the provider accepted the push.
  mutating func answered(
    _ recipient: Int, _ answer: Push.Answer, _ error: PushError?, _ reason: String, connection: Int, at now: MonotonicTime
  ) {
    guard let place = place(of: recipient, isPlain: error == nil) else { return }
    pushes[place] = Push(
      recipient: recipient, sentAt: pushes[place].recipient == recipient ? pushes[place].sentAt : now, answeredAt: now,
      answer: answer, error: error, reason: error == nil ? "" : DeadLetterLog.words(of: reason), connection: connection)
    last = max(last, recipient)
  }

  /// The push's place. A failed push without a place gets that of a successful one.
  private func place(of recipient: Int, isPlain: Bool) -> Int? {
    if recipient <= last, let place = pushes.lastIndex(where: { $0.recipient == recipient }) { return place }
    guard !isPlain else { return nil }
    return pushes.lastIndex { push in
      if case .answered = push.answer { push.error == nil } else { false }
    }
  }
}
