import Wire

/// One of the queues that the outbox publishes to: what waits for it, and what of it is on its way.
///
/// Each has a window and pauses of its own, so that one that confirms nothing, because it is full or has no leader, holds up no other.
struct OutcomeQueue {
  /// What tells it from the others.
  struct Name: Hashable {
    var kind: Publication.Kind
    /// Empty where all publications of the kind go to one queue, or are treated as if they did.
    var exchange: [UInt8] = []
    var routingKey: [UInt8] = []
  }

  /// Publications on their way at most: to a hold queue fewer, as there may be many of these queues, and more receipts, of which many come
  /// together and which are small.
  static let window = 1_000
  private static let holdWindow = 250
  private static let receiptWindow = 4_000
  /// Seconds without a confirm, while one is waited for, after which it counts as stuck.
  static let longestSilence = 5.0

  let name: Name
  /// By their slots in the outbox.
  var waiting = Ring<Int>()
  /// The broker has refused them; they are offered again after a pause.
  var refused: [Int] = []
  var pause = Backoff(base: 1, cap: 30)
  var isPauseScheduled = false
  /// It is among those that have something to publish.
  var isQueued = false
  /// It confirms nothing at present.
  var isStuck = false
  /// It has been stuck, and counts as stuck on the next connection as well until it has caught up.
  var wasStuck = false
  private(set) var unconfirmed = 0
  /// On their way, waiting and refused.
  var backlog = 0
  private var confirmedAt = MonotonicTime(nanoseconds: 0)

  init(_ name: Name) { self.name = name }

  var canPublish: Bool { !waiting.isEmpty && unconfirmed < largestWindow }

  private var largestWindow: Int {
    switch name.kind {
    case .hold: Self.holdWindow
    case .receipt: Self.receiptWindow
    case .feedback, .deadLetter, .result, .reply, .retry, .page: Self.window
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

  /// The broker takes publications from now on, and may have been kept from it for long.
  mutating func startWaiting(at now: MonotonicTime) { confirmedAt = now }

  /// Seconds since the broker should have confirmed something.
  func silence(at now: MonotonicTime) -> Double { unconfirmed == 0 ? 0 : now.seconds(since: confirmedAt) }
}

extension Publication {
  var queueName: OutcomeQueue.Name {
    switch kind {
    case .feedback, .deadLetter, .result, .receipt, .reply: .init(kind: kind)
    case .retry, .hold, .page: .init(kind: kind, exchange: exchange, routingKey: routingKey)
    }
  }
}
