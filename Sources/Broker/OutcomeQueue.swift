import Wire

/// A queue that the outbox publishes to: its waiting and its unconfirmed messages. Each queue has its own window and pauses, so
/// a queue that is full or has no leader doesn't delay others.
struct OutcomeQueue {
  struct Name: Hashable {
    var kind: Publication.Kind
    /// Empty if all publications of the kind share one queue or are treated that way.
    var exchange: [UInt8] = []
    var routingKey: [UInt8] = []
  }

  /// Maximum unconfirmed publications. Hold queues have a smaller window, because there may be many of them. Receipts have a
  /// larger one, because they are small and arrive in large numbers.
  static let window = 1_000
  private static let holdWindow = 250
  private static let receiptWindow = 4_000
  /// Seconds without a confirm, while one is outstanding, after which the queue counts as stuck.
  static let longestSilence = 5.0

  let name: Name
  var waiting = Ring<Int>()
  /// Slots that the broker has refused. They are published again after a pause.
  var refused: [Int] = []
  var pause = Backoff(base: 1, cap: 30)
  var isPauseScheduled = false
  var isQueued = false
  /// True if the queue currently confirms nothing.
  var isStuck = false
  /// True if the queue was stuck and hasn't caught up yet. It then also counts as stuck on the next connection.
  var wasStuck = false
  private(set) var unconfirmed = 0
  var backlog = 0
  private var confirmedAt = MonotonicTime(nanoseconds: 0)

  init(_ name: Name) { self.name = name }

  var canPublish: Bool { !waiting.isEmpty && unconfirmed < largestWindow }

  private var largestWindow: Int {
    switch name.kind {
    case .hold: Self.holdWindow
    case .receipt: Self.receiptWindow
    case .feedback, .deadLetter, .result, .reply, .retry, .page, .audit: Self.window
    }
  }

  mutating func published(at now: MonotonicTime) {
    if unconfirmed == 0 { confirmedAt = now }
    unconfirmed += 1
  }

  mutating func confirmed(at now: MonotonicTime) {
    unconfirmed -= 1
    confirmedAt = now
    pause.reset()
  }

  mutating func failed() { unconfirmed -= 1 }

  /// Restarts the silence timer for a new connection.
  mutating func startWaiting(at now: MonotonicTime) { confirmedAt = now }

  /// Seconds since a confirm was due.
  func silence(at now: MonotonicTime) -> Double { unconfirmed == 0 ? 0 : now.seconds(since: confirmedAt) }
}

extension Publication {
  var queueName: OutcomeQueue.Name {
    switch kind {
    case .feedback, .deadLetter, .result, .receipt, .reply, .audit: .init(kind: kind)
    case .retry, .hold, .page: .init(kind: kind, exchange: exchange, routingKey: routingKey)
    }
  }
}
