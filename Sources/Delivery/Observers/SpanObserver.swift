import PushCore
import Wire

/// Exports spans of requests whose `traceparent` is sampled, by OpenTelemetry's conventions for messaging and HTTP.
package struct SpanObserver {
  let apps: Applications
  let prefix: String
  let time: Turn
  package var exporter: SpanExporter?

  var isOn: Bool { exporter != nil }

  func ended(_ entry: InFlight, _ pools: [PoolLanes]) {
    guard let spans = exporter,
      let text = entry.delivery.properties.headers.string("traceparent"), let context = TraceContext(text),
      context.isSampled
    else { return }
    let id = spans.newSpanID()
    let (exchange, key) = entry.source.queue.route
    let queue = "\(prefix).\(entry.source.queue.origin)"
    var process = SpanWriter(
      name: "process \(queue)", kind: .consumer, trace: context.traceID, span: id, parent: context.spanID,
      start: nanoseconds(of: entry.source.takenAt), end: nanoseconds(of: time.now))
    process.attribute("messaging.system", "rabbitmq")
    process.attribute("messaging.operation.name", "process")
    process.attribute("messaging.operation.type", "process")
    process.attribute("messaging.destination.name", "\(prefix).\(exchange):\(key):\(queue)")
    process.attribute("messaging.rabbitmq.destination.routing_key", key)
    process.attribute("messaging.message.id", .text(entry.identity.messageID))
    process.attribute("messaging.message.body.size", .number(Int64(clamping: entry.delivery.bodySize)))
    if let app = entry.identity.app { process.attribute("pushfleet.app", .text(apps[app].id)) }
    let outcome = entry.traceOutcome
    process.attribute("pushfleet.outcome", outcome)
    process.attribute("pushfleet.attempt", .number(Int64(entry.attempt.earlier + 1)))
    process.attribute("pushfleet.devices", .number(Int64(entry.recipients.count)))
    if let refusal = entry.trace.refusal { process.attribute("error.type", refusal.code.rawValue) }
    spans.append(process.ended(error: ["failed", "refused", "expired"].contains(outcome) ? outcome : nil))
    for push in entry.trace.pushes { export(push, of: entry, context, parent: id, pools, spans) }
  }

  private func export(
    _ push: RequestTrace.Push, of entry: InFlight, _ context: TraceContext, parent: [UInt8], _ pools: [PoolLanes],
    _ spans: SpanExporter
  ) {
    guard entry.recipients.indices.contains(push.recipient) else { return }
    let recipient = entry.recipients[push.recipient]
    let isAPNs = recipient.platform == .apns
    let isAnswered = push.answeredAt > push.sentAt
    var span = SpanWriter(
      name: "send \(recipient.platform.word)", kind: .client, trace: context.traceID, span: spans.newSpanID(), parent: parent,
      start: nanoseconds(of: push.sentAt), end: nanoseconds(of: isAnswered ? push.answeredAt : push.sentAt))
    span.attribute("http.request.method", "POST")
    span.attribute("network.protocol.name", "http")
    // A push service may have HTTP/1.1 alone.
    if recipient.platform != .webpush { span.attribute("network.protocol.version", "2") }
    if pools.indices.contains(recipient.pool) {
      let account = pools[recipient.pool].account
      span.attribute("server.address", account.pool.server.host)
      span.attribute("server.port", .number(Int64(account.pool.server.port)))
      span.attribute("pushfleet.pool", account.name)
    }
    if case .answered(let status) = push.answer { span.attribute("http.response.status_code", .number(Int64(status))) }
    if isAPNs, recipient.kind != .channel {
      span.attribute("pushfleet.apns_id", .text(entry.apnsID(of: recipient)))
    }
    if let error = push.error { span.attribute("error.type", push.reason.isEmpty ? error.rawValue : push.reason) }
    spans.append(span.ended(error: push.error?.rawValue))
  }

  /// Unix time of a monotonic time.
  private func nanoseconds(of moment: MonotonicTime) -> Int64 {
    time.wallClock * 1_000_000 - Int64(time.now.seconds(since: moment) * 1_000_000_000)
  }
}
