import DeviceRegistry
import Logging
import PushCore
import Wire

/// Makes and logs dead letters of the registry's and the acknowledgements' queues.
package final class QueueLetterLog {
  /// The queue's name without prefix.
  let queue: String
  let log: Log
  private var letters = DeadLetterLog()

  init(queue: String, log: Log) {
    self.queue = queue
    self.log = log
  }

  /// The dead letter of a refused message.
  func letter(_ refusal: ChangeRefusal, failedAt: Int64) -> DeadLetter {
    let code = PushError(rawValue: refusal.code.rawValue)
    let reason = code == nil ? refusal.description : refusal.reason
    let letter = DeadLetter(error: code ?? .invalidParameters, reason: reason, attempts: 0, failedAt: failedAt)
    if let kind = letters.note(app: nil, error: letter.error, reason: letter.reason) { write(kind, 1) }
    return letter
  }

  /// To be called about once a second.
  package func report(at now: MonotonicTime) {
    for (kind, count, _) in letters.due(at: now) { write(kind, count) }
  }

  private func write(_ kind: DeadLetterLog.Kind, _ count: Int) {
    log.warning("dead letters", ["queue": queue, "error": kind.error.rawValue, "reason": kind.reason, "count": count])
  }
}
