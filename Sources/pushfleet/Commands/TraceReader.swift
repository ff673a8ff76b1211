import AMQP
import Settings

/// Reads the trace stream from its beginning to its end at the start, and keeps the subject's rounds. Removes nothing.
final class TraceReader: BrokerClient, ConsumerHandler {
  /// The two consumers of the stream: one finds its end, the other reads from its beginning.
  private enum Place: Int { case last, first }

  /// Seconds to wait for the last messages, and seconds after which the stream counts as empty: a busy broker delivers late.
  private static let endTime = 0.2
  private static let emptyTime = 4.0
  /// Seconds without a message, before the end, until reading fails.
  private static let longestSilence = 15.0
  /// The newest rounds that are kept at least; at most twice as many are. A token may have any number.
  private static let kept = 1_000
  private static let mostBody = 8 << 20
  private static let leftOutMark = Array(#"{"left_out":"#.utf8)

  private let subject: TraceSubject
  private var queue: String { topology.traceQueue }
  private var found: [TraceRound] = []
  private(set) var leftOut = 0
  private var consumer: Consumer?
  /// Offset of the last message; nil until known.
  private var end: Int64?
  private var isReading = false
  private var deliveries = 0

  /// - Parameter seconds: the time after which reading fails; nil for no limit.
  init(_ configuration: Configuration, subject: TraceSubject, within seconds: Double? = nil) throws {
    self.subject = subject
    try super.init(configuration, name: "pushfleet trace")
    if let seconds {
      loop.schedule(after: seconds) { [weak self] in
        self?.fail(.unavailable, "the trace can't be read within \(Int(seconds)) s: use `pushfleet trace`")
      }
    }
    connection.makeMachine = { [unowned self] settings in
      let consumer = Consumer(
        settings: settings,
        queues: [
          .init(queue: queue, prefetch: 200, arguments: ["x-stream-offset": .text("last")]),
          .init(queue: queue, prefetch: 200, isOptional: true, arguments: ["x-stream-offset": .text("first")]),
        ],
        maximumBody: Self.mostBody, handler: self)
      self.consumer = consumer
      return consumer
    }
  }

  var rounds: [TraceRound] {
    found.sorted { ($0.text("received_at"), $0.text("ended_at")) < ($1.text("received_at"), $1.text("ended_at")) }
  }

  func ready(_ consumer: Consumer) {
    if !isUp { watch() }
    up()
    if !isReading { findEnd(consumer, within: Self.emptyTime) }
  }

  private func findEnd(_ consumer: Consumer, within seconds: Double) {
    loop.schedule(after: Self.endTime) { [weak self] in
      guard let self, consumer === self.consumer, !isReading else { return }
      if end != nil { return read() }
      if seconds > 0 { findEnd(consumer, within: seconds - Self.endTime) } else { leave() }
    }
  }

  private func read() {
    isReading = true
    consumer?.want(false, queue: Place.last.rawValue)
    consumer?.want(true, queue: Place.first.rawValue)
  }

  private func watch() {
    let seen = deliveries
    loop.schedule(after: Self.longestSilence) { [weak self] in
      guard let self else { return }
      if seen == deliveries { fail(.unavailable, "the broker doesn't deliver the rest of \(queue)") } else { watch() }
    }
  }

  func delivered(_ delivery: Delivery) {
    deliveries += 1
    consumer?.acknowledge(delivery.token)
    guard case .integer(let offset)? = delivery.properties.headers["x-stream-offset"] else { return leave() }
    guard delivery.consumer == Place.first.rawValue else {
      if !isReading { end = offset }
      return
    }
    guard let end else { return }
    if offset <= end { note(delivery.body) }
    if offset >= end { leave() }
  }

  private func note(_ body: [UInt8]) {
    let mark = Self.leftOutMark
    if body.last == UInt8(ascii: "\n"), let last = body.dropLast().split(separator: UInt8(ascii: "\n")).last,
      last.starts(with: mark)
    {
      // Any client of the broker can write to the stream: sums must not overflow.
      leftOut += min(max(Int(String(decoding: last.dropFirst(mark.count).dropLast(), as: UTF8.self)) ?? 0, 0), 1 << 32)
    }
    guard subject.isNamed(in: body) else { return }
    for line in body.split(separator: UInt8(ascii: "\n")) where subject.isNamed(in: line) {
      if let round = TraceRound(Array(line)), let part = subject.part(of: round) { found.append(part) }
    }
    if found.count > 2 * Self.kept { found.removeFirst(found.count - Self.kept) }
  }

  private func leave() { consumer?.close() }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(self.queue) was deleted") }

  /// A new channel reads again from the beginning, up to the end that is known.
  func channelLost(_ reason: ConnectionEnd) {
    found = []
    leftOut = 0
  }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    if case .notFound = reason {
      return fail(
        .badInput,
        "requests are not traced: there is no queue \(queue), which workers declare unless trace.keep is \"none\"")
    }
    if reason == .closedHere { return finish() }
    if reason.isFatalConfiguration { return fail(.badInput, "requests are not traced: \(queue) is not a stream") }
    channelLost(reason)
    end = nil
    isReading = false
    lost(reason)
  }
}
