import Wire

/// Commands of a publisher, sent one after the other on a channel of their own: the broker closes the channel when one
/// fails, and then the next one opens it again.
struct CommandQueue {
  typealias Completion = (Result<CommandAnswer, ConnectionEnd>) -> Void

  enum State {
    /// Then `opening`.
    case closed
    /// Then `idle`.
    case opening
    /// Then `waiting`.
    case idle
    /// A command is out. Then `idle`, or `closed` when it fails.
    case waiting
  }

  static let channel: UInt16 = 2
  /// Seconds; a quorum queue's declaration waits for its members.
  static let timeout = 30.0

  var state = State.closed
  var deadline = MonotonicTime.distantFuture
  private var pending = Ring<(command: Command, completion: Completion)>()

  var isEmpty: Bool { pending.isEmpty }
  /// The broker owes an answer.
  var isUnanswered: Bool { state == .opening || state == .waiting }
  var first: Command? { pending.first?.command }

  mutating func append(_ command: Command, _ completion: @escaping Completion) { pending.append((command, completion)) }

  mutating func removeFirst() -> Completion? { pending.popFirst()?.completion }
}
