import Logging
import Providers
import PushCore
import Reactor
import Settings
import TLS
import Wire

/// Sends a shard's spans to a collector over OTLP/HTTP, one request at a time. If the collector is slow or gone, spans are
/// dropped and counted.
package final class SpanExporter {
  private static let mostBytes = 4 << 20
  private static let mostSpans = 4_096
  private static let batch = 512
  /// Seconds.
  private static let timeout = 10.0
  private static let closeTimeout = 2.0
  /// The limit of an answer in bytes; only the status matters.
  private static let longestAnswer = 64 * 1024

  private let settings: OTLPSettings
  private let target: DialTarget
  private let resource: [UInt8]
  private let time: Turn
  private let dialer: any Dialer
  private let log: Log
  private var spans: [[UInt8]] = []
  private var bytes = 0
  private var post: HTTPFetch?
  private var transport: (any Transport)?
  private var backoff = Backoff(base: 1, cap: 60)
  private var notBefore = MonotonicTime(nanoseconds: .min)
  /// Since the shard's start.
  package private(set) var counters = Counters()
  private var noticed = 0
  private var nextNotice = MonotonicTime(nanoseconds: .min)
  private var lastReason = "the buffer was full"
  private var onClosed: (() -> Void)?

  /// - Throws: if the certificate authorities can't be read.
  package init(_ settings: OTLPSettings, version: String, time: Turn, dialer: any Dialer, log: Log) throws(ConfigurationError) {
    self.settings = settings
    self.log = log
    self.time = time
    self.dialer = dialer
    target = DialTarget(
      settings.address.endpoint, tls: try settings.tls(), through: settings.proxy, timeout: Self.timeout)
    resource = Self.resource(settings.service, version)
  }

  func newSpanID() -> [UInt8] {
    var id = time.random.next()
    if id == 0 { id = 1 }
    return (0..<8).map { UInt8(truncatingIfNeeded: id >> (56 - 8 * UInt64($0))) }.hexText
  }

  /// - Parameter span: JSON of a ``SpanWriter``.
  func append(_ span: [UInt8]) {
    guard spans.count < Self.mostSpans, bytes < Self.mostBytes else {
      counters.spansBeyondBuffer += 1
      return
    }
    spans.append(span)
    bytes += span.count
  }

  /// To be called a few times a second.
  package func flush() {
    notice()
    guard post == nil, !spans.isEmpty, time.now >= notBefore else { return }
    let taken = spans.prefix(Self.batch)
    var body = Array(#"{"resourceSpans":[{"resource":"#.utf8) + resource
    body.append(contentsOf: #","scopeSpans":[{"scope":{"name":"pushfleet"},"spans":["#.utf8)
    for (place, span) in taken.enumerated() {
      if place > 0 { body.append(UInt8(ascii: ",")) }
      body.append(contentsOf: span)
      bytes -= span.count
    }
    body.append(contentsOf: "]}]}]}".utf8)
    spans.removeFirst(taken.count)
    let count = taken.count
    var request = HTTPFetch.Request(
      method: "POST", host: settings.address.authority, path: settings.address.path, timeout: Self.timeout,
      longestAnswer: Self.longestAnswer)
    request.headers = [("Content-Type", "application/json")] + settings.headers.fields
    request.body = body
    let post = HTTPFetch(request) { [weak self] in self?.answered($0, of: count) }
    self.post = post
    transport = dialer.dial(post, to: target)
  }

  /// Refused spans are not sent again, so that memory stays bounded.
  private func answered(_ answer: HTTPFetch.Answer, of count: Int) {
    post = nil
    transport = nil
    switch answer {
    case .answered(200..<300, _):
      counters.spansExported += count
      backoff.reset()
    case .answered(let status, _): failed(count, "the collector answers \(status)")
    case .failed(let reason): failed(count, reason)
    }
    if onClosed != nil { finish() }
  }

  private func failed(_ count: Int, _ reason: String) {
    counters.spansNotTaken += count
    lastReason = reason
    notBefore = time.now.advanced(bySeconds: backoff.next(using: &time.random))
  }

  private func notice() {
    let dropped = counters.spansBeyondBuffer + counters.spansNotTaken
    guard dropped > noticed, time.now >= nextNotice else { return }
    nextNotice = time.now.advanced(bySeconds: 60)
    log.warning(
      "spans reached no collector", ["spans": dropped - noticed, "collector": settings.address.authority, "reason": lastReason])
    noticed = dropped
  }

  /// Sends the remaining spans, for at most two seconds.
  package func close(_ completion: @escaping () -> Void) {
    onClosed = completion
    time.schedule(after: Self.closeTimeout) { [weak self] in self?.end() }
    finish()
  }

  private func finish() {
    flush()
    if post == nil { end() }
  }

  private func end() {
    guard let onClosed else { return }
    self.onClosed = nil
    counters.spansNotTaken += spans.count
    spans = []
    transport?.close()
    notice()
    onClosed()
  }

  private static func resource(_ service: String, _ version: String) -> [UInt8] {
    let texts = [
      ("service.name", service), ("service.version", version), ("service.instance.id", ThisProcess.name),
      ("host.name", ThisProcess.host),
    ]
    let attributes =
      texts.map { SpanWriter.attribute($0, .text(Array($1.utf8))) } + [
        SpanWriter.attribute("process.pid", .number(Int64(ThisProcess.pid)))
      ]
    return (["attributes": attributes] as JSONObject).line
  }
}
