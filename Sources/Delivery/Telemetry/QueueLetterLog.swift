import Logging
import PushCore
import Wire

/// Logs dead letters of the registry's and the acknowledgements' queues.
struct QueueLetterLog {
  /// The queue's name without prefix.
  let queue: String
  let log: Log
  private var letters = DeadLetterLog()

  init(queue: String, log: Log) {
    self.queue = queue
    self.log = log
  }

  mutating func note(_ letter: DeadLetter) {
    if let kind = letters.note(app: nil, error: letter.error, reason: letter.reason) { write(kind, 1) }
  }

  /// To be called about once a second.
  mutating func report(at now: MonotonicTime) {
    for (kind, count, _) in letters.due(at: now) { write(kind, count) }
  }

  private func write(_ kind: DeadLetterLog.Kind, _ count: Int) {
    log.warning("dead letters", ["queue": queue, "error": kind.error.rawValue, "reason": kind.reason, "count": count])
  }
}
