/// What translation did to a request beyond copying it: for `explain`, dry runs and people who wonder. The delivery path passes
/// none (nil), and then nothing of it is computed.
public struct LossReport: Sendable, Equatable {
  public enum Action: String, Sendable, CaseIterable {
    /// Another form of the same.
    case converted
    /// Shortened to what the platform takes.
    case cut
    /// No counterpart; something near it is done instead.
    case emulated
    /// No counterpart; left out.
    case dropped
  }

  public struct Entry: Sendable, Equatable {
    /// `GS-072`, `Apple: push types`, …: where the rule stands.
    public let rule: String
    /// The request's field: `notification.badge`.
    public let field: String
    public let action: Action
    public let words: String
  }

  public private(set) var entries: [Entry] = []

  public init() {}

  /// A producer chooses how many names a request has.
  private static let mostEntries = 200
  /// Nothing more is taken in.
  var isFull: Bool { entries.count > Self.mostEntries }

  public mutating func add(_ rule: String, _ field: String, _ action: Action, _ words: String) {
    guard !isFull else { return }
    let isLast = entries.count == Self.mostEntries
    entries.append(
      Entry(rule: rule, field: isLast ? "…" : field, action: action, words: isLast ? "and more: the report ends here" : words))
  }

  /// As a JSON array of objects with `rule`, `field`, `action`, `words`.
  public func append(to body: inout [UInt8]) {
    body.append(0x5B)
    for (index, entry) in entries.enumerated() {
      if index > 0 { body.append(0x2C) }
      var object = JSONObjectWriter(after: exchange(&body, with: []))
      object.set("rule", entry.rule)
      object.set("field", entry.field)
      object.set("action", entry.action.rawValue)
      object.set("words", entry.words)
      body = object.closed()
    }
    body.append(0x5D)
  }
}
