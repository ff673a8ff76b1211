/// An expression over topics: `'a' in topics && ('b' in topics || !('c' in topics))`.
///
/// Evaluated from left to right, parentheses first: as in FCM, `&&` doesn't bind tighter than `||` (FCM: "Send messages to
/// topics"). `!` applies to the next term.
public struct Condition: Equatable, Sendable {
  public indirect enum Expression: Equatable, Sendable {
    /// The device is subscribed to ``Condition/topics`` at this index.
    case topic(Int)
    case not(Expression)
    case and(Expression, Expression)
    case or(Expression, Expression)
  }

  /// The distinct topics, in the order of their first mention.
  public let topics: [[UInt8]]
  public let expression: Expression

  /// - Parameter subscribed: the device's subscriptions, bit `i` for ``topics`` at `i`. `!('a' in topics)` matches 0.
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

/// `offset` is the byte of the condition's text.
public struct ConditionError: Error, Equatable, Sendable {
  public let offset: Int
  public let reason: String
}
