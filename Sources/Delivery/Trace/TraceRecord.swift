import AMQP
import Broker
import PushCore
import Reactor
import Wire

/// A JSON line with the outcome of one attempt of a request. It has no payload and no whole token: a token is shown by its ends
/// and identified by a derived name.
struct TraceRecord {
  let entry: InFlight
  let apps: Applications
  let pools: [PoolLanes]
  let shard: Int
  let time: Turn

  func append(to line: inout [UInt8]) {
    var object = JSONObjectWriter(after: exchange(&line, with: []))
    object.set("message_id", entry.identity.messageID)
    object.set("app", ifKnown: entry.identity.app.map { apps[$0].id })
    object.set("worker", "\(ThisProcess.name)/\(shard)")
    if let app = entry.source.hold {
      object.set("queue", "hold.\(String(decoding: apps[app].id, as: UTF8.self))")
    } else {
      object.set("queue", entry.source.queue.origin)
    }
    if let waited {
      object.set("published_at", time: entry.identity.published)
      object.set("waited_ms", waited)
    }
    object.set("received_at", time: wall(entry.source.takenAt))
    object.set("redelivered", flag: entry.delivery.redelivered)
    object.set("attempt", Int64(entry.attempt.earlier + 1))
    if entry.attempt.round > 0 { object.set("round", Int64(entry.attempt.round)) }
    if let page = entry.broadcast.page {
      if !page.campaign.isEmpty { object.set("campaign", page.campaign) }
      object.set("page", Int64(page.number))
    }
    object.set("devices", Int64(entry.recipients.count))
    object.set("registered", flag: entry.registry.rows != nil)
    let pushes = entry.trace.pushes.filter { entry.recipients.indices.contains($0.recipient) }
    object.set("pushes", objects: pushes.count) { set(pushes[$0], entry.recipients[pushes[$0].recipient], in: &$1) }
    setTargets(in: &object)
    if entry.recipients.count > 1 {
      object.set("outcomes") {
        for (outcome, count) in entry.outcomeCounts(open: Self.open) { $0.set(outcome, Int64(count)) }
      }
    }
    if let refusal = entry.trace.refusal {
      object.set("error", refusal.code.rawValue)
      object.set("reason", DeadLetterLog.words(of: refusal.reason))
    }
    if entry.trace.deadLetters > 0 { object.set("dead_letters", Int64(entry.trace.deadLetters)) }
    if entry.trace.feedback > 0 { object.set("feedback", Int64(entry.trace.feedback)) }
    setNext(in: &object)
    object.set("outcome", entry.traceOutcome)
    object.set("acknowledged", flag: !entry.ledger.isOrphan)
    object.set("ended_at", time: wall(time.now))
    line = object.closed()
  }

  // MARK: parts

  /// The outcome of a device whose push is open.
  private static let open = "not sent"

  /// Milliseconds that the request waited; nil if its time of publishing is unknown.
  private var waited: Int64? {
    let isKnown = entry.delivery.properties.timestamp != nil || entry.attempt.round > 0
    return isKnown && entry.identity.published > 0 ? max(wall(entry.source.takenAt) - entry.identity.published, 0) : nil
  }

  /// Without a push, the round is found by these.
  private func setTargets(in object: inout JSONObjectWriter) {
    guard entry.trace.pushes.isEmpty, let targets = entry.request?.targets.named.prefix(RequestTrace.mostPushes) else { return }
    object.set("target_names", targets.compactMap { RequestTraceName.of($0, app: apps.id(of: entry.identity.app)) })
  }

  private func set(_ push: RequestTrace.Push, _ recipient: Recipient, in object: inout JSONObjectWriter) {
    object.set("platform", recipient.platform.word)
    setToken(of: push.recipient, recipient, in: &object)
    if pools.indices.contains(recipient.pool) { object.set("pool", pools[recipient.pool].account.name) }
    if push.connection > 0 { object.set("connection", Int64(push.connection)) }
    object.set("sent_at", time: wall(push.sentAt))
    switch push.answer {
    case .none: break
    case .answered(let status):
      object.set("round_trip_ms", milliseconds(from: push.sentAt, to: push.answeredAt))
      object.set("status", Int64(status))
    case .notSent: object.set("sent", flag: false)
    case .unknown: object.set("silent_ms", milliseconds(from: push.sentAt, to: push.answeredAt))
    }
    if let error = push.error { object.set("error", error.rawValue) }
    if !push.reason.isEmpty { object.set("reason", push.reason) }
    if recipient.platform == .apns, recipient.kind != .channel { object.set("apns_id", entry.apnsID(of: recipient)) }
    if case .delivered(let name) = recipient.state, !name.isEmpty { object.set("provider_name", name) }
    object.set("outcome", recipient.state.outcome ?? Self.open)
  }

  private func setToken(of index: Int, _ recipient: Recipient, in object: inout JSONObjectWriter) {
    let token = recipient.token
    if recipient.platform == .webpush {
      for name in ["token", "token_name"] { object.set(name, WebPushSubscription.name(of: token)) }
    } else {
      object.set("token", token.count < 24 ? [] : Array(token.prefix(4)) + Array("…".utf8) + Array(token.suffix(4)))
      object.set("token_name", RequestTraceName.of(token))
    }
    object.set("registration_name", ifKnown: entry.registration(of: index).map { RequestTraceName.of($0[...]) })
  }

  private func setNext(in object: inout JSONObjectWriter) {
    switch entry.trace.next {
    case nil: return
    case .ladder(let step): object.set("waits_in", Array("retry.".utf8) + step)
    case .hold: object.set("waits_in", Array("hold.".utf8) + apps.id(of: entry.identity.app))
    case .pages: return object.set("waits_in", entry.source.queue.fanOut.origin)
    }
    if let last = entry.attempt.lastFailure { object.set("waits_because", DeadLetterLog.words(of: last.reason)) }
    if let due = entry.earliestRetry { object.set("due_at", time: due) }
  }

  // MARK: times

  /// Unix milliseconds of a monotonic time.
  private func wall(_ moment: MonotonicTime) -> Int64 { time.wallClock - milliseconds(from: moment, to: time.now) }

  private func milliseconds(from start: MonotonicTime, to end: MonotonicTime) -> Int64 {
    Int64((end.seconds(since: start) * 1000).rounded())
  }
}

extension InFlight {
  private func isEverywhere(_ code: PushError) -> Bool {
    self.recipients.allSatisfy { if case .failed(code) = $0.state { true } else { false } }
  }

  var traceOutcome: String {
    if self.trace.isDuplicate { return "duplicate" }
    switch self.trace.next {
    case .ladder, .hold: return "waits"
    case .pages: return "goes on in pages"
    case nil: break
    }
    if self.recipients.isEmpty { return self.trace.refusal != nil ? "refused" : self.trace.isExpired ? "expired" : "done" }
    if self.attempt.dryRun != nil || self.request?.isDryRun == true { return "dry run" }
    if isDelivered { return "delivered" }
    if hasReachedDevice { return "delivered in part" }
    return isEverywhere(.expired) ? "expired" : isEverywhere(.collapsed) ? "collapsed" : "failed"
  }
}
