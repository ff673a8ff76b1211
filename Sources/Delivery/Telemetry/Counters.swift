import PushCore

public struct Counters: Sendable {
  package var pushes = PushCounts()
  package var ledger = RequestLedger()
  package var pages = 0
  public internal(set) var received = 0
  public internal(set) var redelivered = 0
  public internal(set) var duplicatesSuppressed = 0
  public internal(set) var delivered = 0
  public internal(set) var postponed = 0
  public internal(set) var expired = 0
  public internal(set) var collapsed = 0
  public internal(set) var unknownOutcomes = 0
  public internal(set) var feedback = 0
  public internal(set) var deadLetters = 0
  public internal(set) var results = 0
  public internal(set) var retries = 0
  public internal(set) var repliesUnroutable = 0
  public internal(set) var parked = 0
  public internal(set) var putToHold = 0
  public internal(set) var quarantined = 0
  public internal(set) var acknowledged = 0
  /// Acknowledgements of devices: new, repeated, of unknown devices; and messages that were refused.
  public internal(set) var acknowledgementsNoted = 0
  public internal(set) var acknowledgementsRepeated = 0
  public internal(set) var acknowledgementsUnknown = 0
  public internal(set) var acknowledgementsRefused = 0
  package internal(set) var traced = 0
  /// Requests without trace lines because of `trace.perSecond` or a full buffer.
  package internal(set) var untracedByRate = 0
  /// Requests whose trace lines the broker has not confirmed.
  package internal(set) var untracedByBroker = 0
  package internal(set) var spansExported = 0
  package internal(set) var spansBeyondBuffer = 0
  /// Spans that the collector did not accept.
  package internal(set) var spansNotTaken = 0

  package init() {}

  /// Devices whose push failed, without withdrawn ones.
  public var failures: Int { PushError.allCases.reduce(0) { $1.isWithdrawn ? $0 : $0 + pushes.total(.failed($1)) } }

  /// Devices whose push failed or was withdrawn, by the code's name.
  public var failuresByCode: [(code: String, count: Int)] {
    PushError.allCases.map { ($0.rawValue, pushes.total(.failed($0))) }.filter { $0.count > 0 }
  }

  package var untraced: Int { untracedByRate + untracedByBroker }

  package static func += (a: inout Counters, b: Counters) {
    for index in all.indices {
      if let path = all[index].path { a[keyPath: path] += b[keyPath: path] }
    }
    a.pushes += b.pushes
    a.ledger += b.ledger
  }

  /// A plain counter and its names.
  package struct Counter: Sendable {
    private let sum: KeyPath<Counters, Int> & Sendable
    /// Nil for a sum of other counters.
    fileprivate private(set) var path: (WritableKeyPath<Counters, Int> & Sendable)?
    /// The metric without `pushfleet_`, and its help; nil if a labelled family has the number.
    package var metric: (name: String, help: String)?
    package var status: String?
    /// The key in the worker's last log line and in its JSON summary.
    package var summary: String?

    fileprivate init(sum: KeyPath<Counters, Int> & Sendable, status: String, summary: String? = nil) {
      (self.sum, self.status, self.summary) = (sum, status, summary)
    }

    fileprivate init(
      path: WritableKeyPath<Counters, Int> & Sendable, metric: (String, String)? = nil, status: String? = nil,
      summary: String? = nil
    ) {
      (self.sum, self.path, self.metric, self.status, self.summary) = (path, path, metric, status, summary)
    }

    package func amount(in counters: Counters) -> Int { counters[keyPath: sum] }
  }

  /// Every counter. Sums, metrics, status, log and summary are made from this list.
  package static let all: [Counter] = [
    Counter(
      path: \.received,
      metric: ("requests_received_total", "Messages delivered by the broker: requests, pages, registry changes."),
      status: "received", summary: "received"),
    Counter(
      path: \.redelivered,
      metric: (
        "requests_redelivered_total", "Messages that the broker had delivered before, to this worker or another."
      ), status: "redelivered", summary: "redelivered"),
    Counter(
      path: \.acknowledged,
      metric: (
        "requests_acknowledged_total", "Messages acknowledged to the broker after all their consequences were confirmed."
      ),
      status: "acknowledged"),
    Counter(path: \.delivered, status: "delivered", summary: "delivered"),
    Counter(sum: \.failures, status: "failed", summary: "failed"),
    Counter(
      path: \.expired, metric: ("pushes_expired_total", "Pushes that expired before they were sent."),
      status: "expired", summary: "expired"),
    Counter(
      path: \.collapsed,
      metric: ("requests_collapsed_total", "Requests replaced by a newer one while they waited."),
      status: "collapsed", summary: "collapsed"),
    Counter(path: \.postponed, status: "retried"),
    Counter(path: \.retries, metric: ("retries_total", "Requests moved to the retry ladder."), summary: "retries"),
    Counter(path: \.parked, status: "parked", summary: "parked"),
    Counter(
      path: \.putToHold, metric: ("hold_queue_requests_total", "Requests moved to hold queues."),
      status: "put_to_hold", summary: "held"),
    Counter(
      path: \.unknownOutcomes, metric: ("pushes_unknown_total", "Pushes that were sent and never answered."),
      status: "unknown", summary: "unknown"),
    Counter(
      path: \.duplicatesSuppressed, metric: ("duplicates_suppressed_total", "Requests recognised as already sent."),
      status: "duplicates_suppressed", summary: "duplicates_suppressed"),
    Counter(
      path: \.quarantined,
      metric: (
        "requests_quarantined_total", "Requests that were redelivered twice and set aside to be processed alone."
      ), status: "quarantined"),
    Counter(
      path: \.feedback, metric: ("feedback_total", "Feedback events published."), status: "feedback", summary: "feedback"),
    Counter(path: \.deadLetters, status: "dead_letters", summary: "dead_letters"),
    Counter(path: \.results, metric: ("results_total", "Results published."), status: "results", summary: "results"),
    Counter(
      path: \.repliesUnroutable, metric: ("replies_unroutable_total", "Results whose reply_to queue no longer existed.")),
    Counter(
      path: \.pages, metric: ("broadcast_pages_total", "Pages of broadcasts that were started."), status: "pages"),
    Counter(path: \.acknowledgementsNoted, status: "acknowledgements"),
    Counter(path: \.acknowledgementsRepeated), Counter(path: \.acknowledgementsUnknown),
    Counter(path: \.acknowledgementsRefused),
    Counter(path: \.untracedByRate), Counter(path: \.untracedByBroker), Counter(path: \.spansExported),
    Counter(path: \.spansBeyondBuffer), Counter(path: \.spansNotTaken),
    Counter(path: \.traced, status: "trace_noted"), Counter(sum: \.untraced, status: "trace_left_out"),
  ]

  /// The totals that a worker reports when it ends.
  package var summary: [(key: String, count: Int)] {
    Self.all.compactMap { counter in counter.summary.map { ($0, counter.amount(in: self)) } }
  }
}
