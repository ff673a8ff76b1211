import Wire

/// The commands of a publisher. They go out one at a time on a second channel. The broker closes that channel if a command
/// fails, and the next command opens it again.
struct CommandQueue {
  typealias Completion = (Result<CommandAnswer, ConnectionEnd>) -> Void

  enum State {
    /// Next: `opening`.
    case closed
    /// Next: `idle`.
    case opening
    /// Next: `waiting`.
    case idle
    /// A command waits for its answer. Next: `idle`, or `closed` if it fails.
    case waiting
  }

  static let channel: UInt16 = 2
  /// Seconds. The declaration of a quorum queue waits for its members.
  static let timeout = 30.0

  var state = State.closed { didSet { if !isUnanswered { deadline = .distantFuture } } }
  /// The deadline of the answer; reset when no command waits.
  var deadline = MonotonicTime.distantFuture
  private var pending = Ring<(command: Command, completion: Completion)>()

  var isUnanswered: Bool { state == .opening || state == .waiting }
  var first: Command? { pending.first?.command }

  mutating func append(_ command: Command, _ completion: @escaping Completion) { pending.append((command, completion)) }

  mutating func removeFirst() -> Completion? { pending.popFirst()?.completion }
}
