import AMQP
import Broker
import PushCore
import Reactor
import Wire

/// A JSON line with the outcome of one attempt of a request. It has no payload and no whole token: a token is shown by its ends
/// and identified by a derived name.
struct TraceRecord {
  private let entry: InFlight
  private let apps: Applications
  private let pools: [PoolLanes]
  private let shard: Int
  private let now: MonotonicTime
  private let wallClock: Int64

  init(_ entry: InFlight, _ apps: Applications, _ pools: [PoolLanes], shard: Int, _ time: Turn) {
    self.entry = entry
    self.apps = apps
    self.pools = pools
    self.shard = shard
    now = time.now
    wallClock = time.wallClock
  }

  func append(to line: inout [UInt8]) {
    line.append(UInt8(ascii: "{"))
    text("message_id", entry.identity.messageID, &line, isFirst: true)
    if let app = entry.identity.app { text("app", apps[app].id, &line) }
    text("worker", "\(ThisProcess.name)/\(shard)", &line)
    if let app = entry.source.hold {
      text("queue", "hold.\(String(decoding: apps[app].id, as: UTF8.self))", &line)
    } else {
      text("queue", entry.source.queue.origin, &line)
    }
    if let waited { appendPublished(waited, &line) }
    time("received_at", entry.source.takenAt, &line)
    flag("redelivered", entry.delivery.redelivered, &line)
    number("attempt", Int64(entry.attempt.earlier + 1), &line)
    if entry.attempt.round > 0 { number("round", Int64(entry.attempt.round), &line) }
    if let page = entry.broadcast.page {
      if !page.campaign.isEmpty { text("campaign", page.campaign, &line) }
      number("page", Int64(page.number), &line)
    }
    number("devices", Int64(entry.recipients.count), &line)
    flag("registered", entry.registry.rows != nil, &line)
    appendPushes(&line)
    appendTargets(&line)
    appendOutcomes(&line)
    if let refusal = entry.trace.refusal {
      text("error", refusal.code.rawValue, &line)
      text("reason", DeadLetterLog.words(of: refusal.reason), &line)
    }
    if entry.trace.deadLetters > 0 { number("dead_letters", Int64(entry.trace.deadLetters), &line) }
    if entry.trace.feedback > 0 { number("feedback", Int64(entry.trace.feedback), &line) }
    appendNext(&line)
    text("outcome", entry.traceOutcome, &line)
    flag("acknowledged", !entry.ledger.isOrphan, &line)
    time("ended_at", now, &line)
    line.append(UInt8(ascii: "}"))
  }

  // MARK: parts

  /// Milliseconds that the request waited; nil if its time of publishing is unknown.
  private var waited: Int64? {
    let isKnown = entry.delivery.properties.timestamp != nil || entry.attempt.round > 0
    return isKnown && entry.identity.published > 0 ? max(wall(entry.source.takenAt) - entry.identity.published, 0) : nil
  }

  private func appendPublished(_ waited: Int64, _ line: inout [UInt8]) {
    key("published_at", &line)
    line.append(UInt8(ascii: "\""))
    Timestamp.append(entry.identity.published, to: &line)
    line.append(UInt8(ascii: "\""))
    number("waited_ms", waited, &line)
  }

  private func appendPushes(_ line: inout [UInt8]) {
    key("pushes", &line)
    line.append(UInt8(ascii: "["))
    for (place, push) in entry.trace.pushes.enumerated() where entry.recipients.indices.contains(push.recipient) {
      if place > 0 { line.append(UInt8(ascii: ",")) }
      line.append(UInt8(ascii: "{"))
      append(push, entry.recipients[push.recipient], &line)
      line.append(UInt8(ascii: "}"))
    }
    line.append(UInt8(ascii: "]"))
  }

  /// Without a push, the round is found by these.
  private func appendTargets(_ line: inout [UInt8]) {
    guard entry.trace.pushes.isEmpty, let targets = entry.request?.targets.named.prefix(RequestTrace.mostPushes) else { return }
    let names = targets.compactMap { RequestTraceName.of($0, app: apps.id(of: entry.identity.app)) }
    key("target_names", &line)
    line += JSONObjectWriter.array(names.map { [0x22] + $0 + [0x22] })
  }

  private func append(_ push: RequestTrace.Push, _ recipient: Recipient, _ line: inout [UInt8]) {
    let isAPNs = recipient.platform == .apns
    text("platform", recipient.platform.word, &line, isFirst: true)
    appendToken(of: push.recipient, recipient, &line)
    if pools.indices.contains(recipient.pool) {
      text("pool", pools[recipient.pool].account.name, &line)
    }
    if push.connection > 0 { number("connection", Int64(push.connection), &line) }
    time("sent_at", push.sentAt, &line)
    switch push.answer {
    case .none: break
    case .answered(let status):
      number("round_trip_ms", milliseconds(from: push.sentAt, to: push.answeredAt), &line)
      number("status", Int64(status), &line)
    case .notSent: flag("sent", false, &line)
    case .unknown: number("silent_ms", milliseconds(from: push.sentAt, to: push.answeredAt), &line)
    }
    if let error = push.error { text("error", error.rawValue, &line) }
    if !push.reason.isEmpty { text("reason", push.reason, &line) }
    if isAPNs, recipient.kind != .channel {
      text("apns_id", entry.apnsID(of: recipient), &line)
    }
    if case .delivered(let name) = recipient.state, !name.isEmpty { text("provider_name", name, &line) }
    text("outcome", Self.outcome(of: recipient.state), &line)
  }

  private func appendToken(of index: Int, _ recipient: Recipient, _ line: inout [UInt8]) {
    let token = recipient.token
    if recipient.platform == .webpush {
      for name in ["token", "token_name"] { text(name, WebPushSubscription.name(of: token), &line) }
    } else {
      text("token", token.count < 24 ? [] : Array(token.prefix(4)) + Array("…".utf8) + Array(token.suffix(4)), &line)
      text("token_name", RequestTraceName.of(Array(token)), &line)
    }
    if let registration = entry.registration(of: index) {
      text("registration_name", RequestTraceName.of(registration), &line)
    }
  }

  private func appendOutcomes(_ line: inout [UInt8]) {
    guard entry.recipients.count > 1 else { return }
    var counts: [String: Int] = [:]
    for recipient in entry.recipients { counts[Self.outcome(of: recipient.state), default: 0] += 1 }
    key("outcomes", &line)
    line.append(UInt8(ascii: "{"))
    for (place, count) in counts.sorted(by: { $0.key < $1.key }).enumerated() {
      if place > 0 { line.append(UInt8(ascii: ",")) }
      line.appendSafeJSONString(count.key)
      line.append(UInt8(ascii: ":"))
      line.appendDecimal(count.value)
    }
    line.append(UInt8(ascii: "}"))
  }

  private func appendNext(_ line: inout [UInt8]) {
    switch entry.trace.next {
    case nil: return
    case .ladder(let step): text("waits_in", Array("retry.".utf8) + step, &line)
    case .hold: text("waits_in", Array("hold.".utf8) + apps.id(of: entry.identity.app), &line)
    case .pages: return text("waits_in", entry.source.queue.fanOut.origin, &line)
    }
    if let last = entry.attempt.lastFailure { text("waits_because", DeadLetterLog.words(of: last.reason), &line) }
    guard let due = entry.earliestRetry else { return }
    key("due_at", &line)
    line.append(UInt8(ascii: "\""))
    Timestamp.append(due, to: &line)
    line.append(UInt8(ascii: "\""))
  }

  static func outcome(of state: Recipient.State) -> String {
    switch state {
    case .delivered: "delivered"
    case .failed(let code): code.rawValue
    case .postponed: "put off"
    case .sameAs: "repeated"
    case .waiting, .unresolved, .gone, .refused, .sent: "not sent"
    }
  }

  // MARK: values

  private func wall(_ time: MonotonicTime) -> Int64 { wallClock - Int64((now.seconds(since: time) * 1000).rounded()) }

  private func milliseconds(from start: MonotonicTime, to end: MonotonicTime) -> Int64 {
    Int64((end.seconds(since: start) * 1000).rounded())
  }

  private func key(_ name: String, _ line: inout [UInt8], isFirst: Bool = false) {
    if !isFirst { line.append(UInt8(ascii: ",")) }
    line.append(UInt8(ascii: "\""))
    line.append(contentsOf: name.utf8)
    line.append(contentsOf: "\":".utf8)
  }

  private func text(_ name: String, _ value: [UInt8], _ line: inout [UInt8], isFirst: Bool = false) {
    key(name, &line, isFirst: isFirst)
    line.appendSafeJSONString(value)
  }

  private func text(_ name: String, _ value: String, _ line: inout [UInt8], isFirst: Bool = false) {
    key(name, &line, isFirst: isFirst)
    line.appendSafeJSONString(value)
  }

  private func number(_ name: String, _ value: Int64, _ line: inout [UInt8]) {
    key(name, &line)
    line.appendDecimal(value)
  }

  private func flag(_ name: String, _ value: Bool, _ line: inout [UInt8]) {
    key(name, &line)
    line.append(contentsOf: (value ? "true" : "false").utf8)
  }

  private func time(_ name: String, _ value: MonotonicTime, _ line: inout [UInt8]) {
    key(name, &line)
    line.append(UInt8(ascii: "\""))
    Timestamp.append(wall(value), to: &line)
    line.append(UInt8(ascii: "\""))
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
    if self.attempt.dryRun != nil || self.parsed?.isDryRun == true { return "dry run" }
    if isDelivered { return "delivered" }
    if hasReachedDevice { return "delivered in part" }
    return isEverywhere(.expired) ? "expired" : isEverywhere(.collapsed) ? "collapsed" : "failed"
  }
}
