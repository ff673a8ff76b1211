/// An expression over topics: `'a' in topics && ('b' in topics || !('c' in topics))`.
///
/// Parentheses first, then strictly from left to right: `&&` doesn't bind tighter than `||`, as the service evaluates it (FCM: "Send
/// messages to topics"). `!` binds to what stands right after it.
public struct Condition: Equatable, Sendable {
  public indirect enum Expression: Equatable, Sendable {
    /// The device is subscribed to ``Condition/topics`` at this index.
    case topic(Int)
    case not(Expression)
    case and(Expression, Expression)
    case or(Expression, Expression)
  }

  /// The different topics, in the order of their first mention.
  public let topics: [[UInt8]]
  public let expression: Expression

  /// Whether a device is meant whose subscriptions are these: bit `i` for ``topics`` at `i`. A condition can be true for a device
  /// without any of the topics (`!('a' in topics)`): ``matches(_:)`` of 0 says so.
  public func matches(_ subscribed: UInt32) -> Bool { Self.evaluate(expression, subscribed) }

  private static func evaluate(_ expression: Expression, _ subscribed: UInt32) -> Bool {
    switch expression {
    case .topic(let index): subscribed >> UInt32(index) & 1 == 1
    case .not(let operand): !evaluate(operand, subscribed)
    case .and(let left, let right): evaluate(left, subscribed) && evaluate(right, subscribed)
    case .or(let left, let right): evaluate(left, subscribed) || evaluate(right, subscribed)
    }
  }
}

/// What is wrong with a condition, and at which byte of its text.
public struct ConditionError: Error, Equatable, Sendable {
  public let offset: Int
  public let reason: String
}
