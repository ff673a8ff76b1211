import Logging
import PushCore
import Wire

/// Logs the main steps of each request at level debug, and dead letters at every level.
package struct StepLog {
  private let apps: Applications
  private let time: Turn
  private let log: Log
  private var letters = DeadLetterLog()

  init(apps: Applications, time: Turn, log: Log) { (self.apps, self.time, self.log) = (apps, time, log) }

  var isOn: Bool { log.isDetailed }

  func note(_ event: PushEvent, _ entry: InFlight, _ recipient: Int) {
    func debug(_ step: String, _ fields: Log.Fields = [:]) {
      log.debug(step, ["message_id": entry.identity.messageID, "recipient": recipient] + fields)
    }
    switch event {
    case .sent(let pool):
      debug(
        "sent",
        [
          "platform": entry.recipients[recipient].platform.word, "connections": pool.openConnections,
          "waited_ms": time.wallClock - entry.identity.admittedAt,
        ])
    case .answered(let meaning, _):
      let (error, reason) = (meaning.reaction.code?.rawValue ?? "none", DeadLetterLog.words(of: meaning.reason))
      debug("answer", ["status": meaning.status, "error": error, "reason": reason])
    case .notSent(let reason, _): debug("not sent", ["reason": reason])
    case .unknown(let reason, _): debug("outcome unknown", ["reason": DeadLetterLog.words(of: reason)])
    case .postponed(_, let delay): debug("put off", ["seconds": Double(delay) / 1000])
    case .collapsed: debug("replaced by a newer request")
    case .parked, .failed, .refused, .expired: return
    }
  }

  mutating func note(_ event: RequestEvent, _ entry: InFlight) {
    if case .deadLetter(let letter, _) = event { return noteLetter(letter, entry) }
    guard isOn else { return }
    func debug(_ step: String, _ fields: Log.Fields) {
      log.debug(step, ["message_id": entry.identity.messageID] + fields)
    }
    switch event {
    case .taken:
      let (queue, attempts) = (entry.source.queue.origin, entry.attempt.earlier)
      debug("request taken", ["queue": queue, "redelivered": entry.delivery.redelivered, "attempts": attempts])
    case .resolved:
      debug("resolved", ["devices": entry.recipients.count, "registered": entry.registry.rows != nil])
    case .translated(let platform): debug("translated", ["platform": platform.word])
    case .acknowledged:
      let outcomes = entry.outcomeCounts(open: "open").map { "\($0.value) \($0.key)" }
      debug("request acknowledged", ["outcomes": outcomes.joined(separator: ", ")])
    default: return
    }
  }

  // MARK: dead letters

  private mutating func noteLetter(_ letter: DeadLetter, _ entry: InFlight) {
    log.debug(
      "dead letter",
      [
        "message_id": entry.identity.messageID, "error": letter.error.rawValue,
        "reason": DeadLetterLog.words(of: letter.reason),
      ])
    let kind = letters.note(
      app: entry.identity.app, error: letter.error, reason: letter.reason, messageID: entry.identity.messageID)
    if let kind { write(kind, 1, entry.identity.messageID) }
  }

  /// To be called about once a second.
  package mutating func reportDeadLetters() {
    for (kind, count, last) in letters.due(at: time.now) { write(kind, count, last) }
  }

  /// - Parameter last: the message id of the last dead letter.
  private func write(_ kind: DeadLetterLog.Kind, _ count: Int, _ last: [UInt8]) {
    let app = kind.app.map { String(decoding: apps[$0].id, as: UTF8.self) } ?? "unknown"
    log.warning(
      "dead letters",
      ["app": app, "error": kind.error.rawValue, "reason": kind.reason, "count": count, "last_message_id": last])
  }
}
