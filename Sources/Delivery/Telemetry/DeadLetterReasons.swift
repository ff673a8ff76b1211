import PushCore

/// Counts dead letters by application, error and reason since the worker's start.
package struct DeadLetterReasons: Sendable {
  package private(set) var counts: [DeadLetterLog.Kind: Int] = [:]

  mutating func note(app: Int?, error: PushError, reason: String) {
    var kind = DeadLetterLog.Kind(app: app, error: error, reason: DeadLetterLog.words(of: reason))
    if counts[kind] == nil, counts.count >= DeadLetterLog.mostKinds {
      kind.reason = "other reasons"
      if counts[kind] == nil, counts.count >= 2 * DeadLetterLog.mostKinds { kind.app = nil }
    }
    counts[kind, default: 0] += 1
  }
}
