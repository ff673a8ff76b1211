import Broker

/// An operator's order on the messages of a queue.
public struct LetterOrder: Sendable {
  public enum Action: Sendable, Equatable {
    /// Counts the messages by application, error, reason and origin, and shows the first ones.
    case look(shown: Int, withContent: Bool)
    case drop
    /// Sends letters back to where they came from.
    /// - Parameter rate: letters per second; nil for no limit.
    case replay(rate: Double?)
  }

  public var action: Action
  public var queue: LetterQueue
  public var filter: LetterFilter
}

/// The end of an order, or the answer to a question.
public struct LetterOutcome: Sendable {
  /// Messages that were removed from the queue or sent back.
  public var count: Int
  /// The details, as a JSON object.
  public var details: [UInt8]
  /// Why the order ended early; nil if it was carried out.
  public var failure: String?

  public init(count: Int = 0, details: [UInt8] = Array("{}".utf8), failure: String? = nil) {
    self.count = count
    self.details = details
    self.failure = failure
  }
}

/// Asks for the story of a request, or for the pushes to a device.
public struct TraceOrder: Sendable {
  public enum Kind: String, CaseIterable, Sendable { case id, token, user, installation }

  public let kind: Kind
  /// A message id, a provider's token or a registration, or a name.
  public let text: String
  /// Nil for all applications.
  public let app: String?
  /// The only broadcast to look at: its campaign id, or the beginning of the id.
  public let campaign: String?

  public init(_ kind: Kind, _ text: String, app: String? = nil, campaign: String? = nil) {
    (self.kind, self.text, self.app, self.campaign) = (kind, text, app, campaign)
  }
}

/// Carries out orders, each on a thread of its own.
public protocol LetterWorker: Sendable {
  /// - Parameters:
  ///   - progress: called on another thread, a few times a second, with the messages looked at and those in the queue at the
  ///     beginning.
  ///   - then: called once, on another thread.
  /// - Returns: ends the order soon. It undoes nothing. Any thread may call it.
  func begin(
    _ order: LetterOrder, progress: @escaping @Sendable (_ done: Int, _ expected: Int) -> Void,
    then: @escaping @Sendable (LetterOutcome) -> Void
  ) -> @Sendable () -> Void

  /// - Parameter then: called once, on another thread.
  func trace(_ order: TraceOrder, then: @escaping @Sendable (LetterOutcome) -> Void)
}
