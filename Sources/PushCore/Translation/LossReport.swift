/// The changes that translation made to a request, for `explain` and dry runs. The delivery path computes none.
public struct LossReport: Sendable, Equatable {
  public enum Action: String, Sendable, CaseIterable {
    /// Same content in another form.
    case converted
    /// Shortened to the platform's limits.
    case cut
    /// No counterpart; replaced by something similar.
    case emulated
    /// No counterpart; left out.
    case dropped
  }

  public struct Entry: Sendable, Equatable {
    /// The source of the rule: `GS-072`, `Apple: push types`, ….
    public let rule: String
    public let field: String
    public let action: Action
    public let words: String
  }

  public private(set) var entries: [Entry] = []

  public init() {}

  /// Limits the report: a request may have any number of names.
  private static let mostEntries = 200
  var isFull: Bool { entries.count > Self.mostEntries }

  public mutating func add(_ rule: String, _ field: String, _ action: Action, _ words: String) {
    guard !isFull else { return }
    let isLast = entries.count == Self.mostEntries
    entries.append(
      Entry(rule: rule, field: isLast ? "…" : field, action: action, words: isLast ? "and more: the report ends here" : words))
  }

  /// A JSON array of objects with `rule`, `field`, `action`, `words`.
  public var json: [UInt8] {
    JSONObjectWriter.array(
      entries.map {
        (["rule": $0.rule, "field": $0.field, "action": $0.action.rawValue, "words": $0.words] as JSONObject).line
      })
  }
}
