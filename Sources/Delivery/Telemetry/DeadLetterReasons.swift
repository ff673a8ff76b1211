import PushCore

/// Counts dead letters by application, error and reason since the worker's start.
package struct DeadLetterReasons: Sendable {
  /// The limit of separate kinds. Further ones count as other reasons.
  static let most = 50

  package private(set) var counts: [DeadLetterLog.Kind: Int] = [:]

  mutating func note(app: Int?, error: PushError, reason: String) {
    var kind = DeadLetterLog.Kind(app: app, error: error, reason: DeadLetterLog.words(of: reason))
    if counts[kind] == nil, counts.count >= Self.most {
      kind.reason = "other reasons"
      if counts[kind] == nil, counts.count >= 2 * Self.most { kind = .init(app: nil, error: error, reason: "other reasons") }
    }
    counts[kind, default: 0] += 1
  }
}
