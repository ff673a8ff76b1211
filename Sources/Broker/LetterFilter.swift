import PushCore

/// Selects dead letters or held requests; all conditions must hold.
public struct LetterFilter: Sendable {
  public var app: String?
  /// The error code; `-` for letters without one.
  public var error: String?
  /// The queue, without prefix, to which a replay leads: for example `send.normal`; `-` for letters without one.
  public var origin: String?
  /// Part of the reason, in lower case.
  public var reason: String?
  /// Unix milliseconds.
  public var since: Int64?
  /// Message ids; empty for any.
  public var ids: Set<String> = []
  public var limit: Int?

  /// Selects all messages, or all of one application.
  public init(app: String? = nil) { self.app = app }

  private static let mostNamed = 20
  /// Bytes.
  private static let longestMember = 1_000

  /// The conditions other than the application, by their names; shortened, for records of operations.
  public var members: [(name: String, value: [UInt8])] {
    let texts: [(String, [UInt8]?)] = [
      ("error", error.map { Array($0.utf8) }), ("origin", origin.map { Array($0.utf8) }),
      ("reason", reason.map { Array($0.utf8) }), ("since", since.map(Timestamp.text)),
      ("ids", ids.isEmpty ? nil : Array(ids.sorted().prefix(Self.mostNamed).joined(separator: " ").utf8)),
      ("limit", limit.map { Array("\($0)".utf8) }),
    ]
    return texts.compactMap { name, text in text.map { (name, Array($0.prefix(Self.longestMember))) } }
  }
}
