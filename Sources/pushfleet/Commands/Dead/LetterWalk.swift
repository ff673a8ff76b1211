import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Visits, once and in order, the letters that a place's queues have at the start, one queue after the other. Letters that aren't
/// removed are held until the end and then return to their places. A quorum queue shows its messages only by delivering them. So
/// letters are fetched in portions, each by a consumer on its own channel. The next portion begins when the one before holds only
/// visited letters that stay.
/// The broker closes a channel that holds a message for longer than its `consumer_timeout`. So a long walk gives all letters
/// back from time to time and consumes again; the visited letters then come first.
class LetterWalk: PublisherClient, ConsumerHandler {
  enum Step {
    case keep, remove
    /// The visit has removed the letter itself.
    case removed
    /// The letters must go back before this one is settled; it is delivered again.
    case postpone
  }

  /// The most letters per consumer. Small, because the broker searches an acknowledged letter from the oldest on.
  private static let largestPortion = 2_000
  /// A connection has at most 2,047 channels.
  private static let mostPortions = 2_000
  /// Bytes of waiting letters above which reading pauses.
  private static let mostWaiting = 16 << 20
  /// Seconds without a delivery until the queue is asked whether another consumer took the rest.
  private static let quiet = 10.0
  /// Seconds without a delivery until the walk fails.
  private static let deliveryTimeout = 60.0
  /// Seconds within which the broker puts held letters back, and seconds between two checks.
  private static let returnTimeout = 2.0
  private static let returnPause = 0.02
  /// Seconds for which letters are held at most: well below RabbitMQ's default of 30 minutes.
  static let longestHold = 600.0
  /// Seconds between the return of the letters and the next consumer, because new letters can look like returned ones.
  private static let settlePause = 1.0

  let place: LetterPlace
  /// The visited queue: its letters ready at the start, and how many have arrived, were settled (removed or not), and were removed.
  private var current = (queue: "", ready: 0, delivered: 0, settled: 0, removed: 0)
  private let maximumBody: Int
  private let hold: Double
  /// nil while no letter is held.
  private var consumer: Consumer?

  /// Letters ready in all queues when the walk began.
  private(set) var expected = 0
  private(set) var hasCounted = false
  /// Letters that have been visited and settled, removed or not.
  private(set) var done = 0
  private var waiting = Ring<Delivery>()
  private var waitingBytes = 0
  /// Letters per consumer, and the letters that each consumer keeps.
  private var portions = (size: LetterWalk.largestPortion, kept: [Int]())
  /// Visited letters at the head of the queue, to be skipped after a return.
  private var known = 0
  private var lastSign = MonotonicTime(nanoseconds: 0)
  private var isRestGone = false
  private var isHeldTooLong = false
  /// True while the consumer is being closed.
  private var isGivingBack = false
  /// True when the walk is over and the held letters go back.
  private var isReturning = false
  /// True once no further letter is to be visited.
  private(set) var isStopped = false

  /// - Parameter maximumBody: bytes of a letter's body to keep.
  init(
    _ configuration: Configuration, _ place: LetterPlace, maximumBody: Int, hold: Double = LetterWalk.longestHold
  ) throws {
    self.place = place
    self.maximumBody = maximumBody
    self.hold = hold
    try super.init(configuration, name: place.connectionName, heartbeat: 0, window: 1)
    current.queue = place.queue(topology)
  }

  // MARK: for subclasses

  /// Visits a letter. May turn the loop by `wait`. Returns soon after ``mustReturn`` is true, unless a copy awaits its confirmation.
  func visit(_ delivery: Delivery) throws -> Step { .keep }

  /// Letters that were removed or sent back.
  var changed: Int { 0 }

  /// Letters to fetch at once. A slow walk fetches few: the broker ends a connection on which nothing is read for 30 seconds.
  var wantedPortion: Int { .max }

  /// True when no more letters are needed.
  var isEnough: Bool { false }

  /// True when the letters that are held must go back.
  var mustReturn: Bool { isStopped || isHeldTooLong }

  /// The progress at the loss of the connection, for error messages.
  var progress: String { "nothing has been changed" }

  /// Ends the walk on a signal; what has been done so far stays done.
  override func interrupt() {
    guard isReturning else { return fail(.interrupted, "interrupted: \(progress)") }
    stop()
    publisher?.close()
  }

  /// Ends the walk soon, without an error if possible; what has been done so far stays done.
  func stop() { isStopped = true }

  // MARK: the walk

  private var isOver: Bool { isStopped || isRestGone || isEnough || current.settled == current.ready }

  override func work() throws {
    try wait { publisher != nil || isStopped }
    let counts = try place.queues(topology).map { ($0, try count($0)) }
    expected = counts.reduce(0) { $0 + $1.1 }
    hasCounted = true
    for (name, count) in counts {
      current = (name, count, 0, 0, 0)
      (isRestGone, isReturning) = (false, false)
      while !isOver {
        try visitLetters()
        try giveBack()
      }
    }
    try close()
  }

  /// Ready letters of a queue.
  private func count(_ queue: String) throws -> Int {
    switch try perform(.queueInspect(name: queue), unless: { isStopped }) {
    case .success(.queue(let ready, let consumers)):
      if ready == 0, consumers > 0, !place.isOptional {
        complain("no message of \(queue) is ready, and it has consumers, such as another look: they may have some in hand")
      }
      return ready
    case .failure(.notFound) where place.isOptional: break
    case .failure(.notFound):
      throw CommandFailure(.unavailable, "there is no queue \(queue); `pushfleet topology` declares it")
    case .failure(let reason): throw CommandFailure(.unavailable, "queue \(queue): \(reason)")
    case .success, nil: break
    }
    return 0
  }

  /// Consumes the queue, and visits its letters until the walk is over or they must go back.
  private func visitLetters() throws {
    try consume()
    let limit = loop.schedule(after: hold) { [weak self] in self?.isHeldTooLong = true }
    defer { loop.cancel(limit) }
    while !isOver, let delivery = try next() {
      switch try visit(delivery) {
      case .keep:
        settle()
        keep(delivery.consumer)
      case .remove: remove(delivery)
      case .removed, .postpone: break
      }
    }
  }

  private func settle() {
    done += 1
    current.settled += 1
  }

  func remove(_ letter: Delivery) {
    settle()
    current.removed += 1
    consumer?.acknowledge(letter.token)
  }

  private func consume() throws {
    (known, current.delivered, isHeldTooLong) = (current.settled - current.removed, current.removed, false)
    let left = current.ready - current.removed
    let size = max(min(Self.largestPortion, wantedPortion), min(Self.largestPortion, left / Self.mostPortions + 1))
    let count = min(Self.mostPortions, left / size + 1)
    portions = (size, Array(repeating: 0, count: count))
    let broker = connection.brokers[.random(in: connection.brokers.indices)]
    let consumer = Consumer(
      // No heartbeat: reading pauses while many letters wait to be visited.
      settings: ConnectionSettings(broker: broker.uri, name: place.connectionName, heartbeat: 0),
      queues: (0..<count).map {
        .init(queue: current.queue, prefetch: UInt16(size), isOptional: $0 > 0, channel: UInt16($0 + 1))
      },
      maximumBody: maximumBody, handler: self)
    self.consumer = consumer
    _ = loop.dial(consumer, to: broker)
    try wait { consumer.isReady || isStopped }
  }

  /// Waits for the next letter.
  /// - Returns: nil if none comes, or if the letters must go back before.
  private func next() throws -> Delivery? {
    lastSign = loop.now
    while waiting.isEmpty, !mustReturn {
      try wait(upTo: 1) { !waiting.isEmpty || mustReturn }
      let silence = loop.now.seconds(since: lastSign)
      if silence >= Self.deliveryTimeout {
        throw CommandFailure(
          .unavailable, "the broker delivers nothing, though the queue \(current.queue) isn't empty; \(progress)")
      }
      if silence >= Self.quiet, try isTakenByOthers() { return nil }
    }
    guard !mustReturn, let delivery = waiting.popFirst() else { return nil }
    waitingBytes -= delivery.weight
    if waitingBytes < Self.mostWaiting / 4 { consumer?.transport?.isReadingPaused = false }
    return delivery
  }

  /// Asks whether the queue is empty, though letters are missing.
  private func isTakenByOthers() throws -> Bool {
    let answer = try perform(
      .queueInspect(name: current.queue), upTo: Self.deliveryTimeout, unless: { !waiting.isEmpty || mustReturn })
    guard case .success(.queue(0, _))? = answer, loop.now.seconds(since: lastSign) >= Self.quiet else { return false }
    complain(
      "\(current.ready - current.delivered) of the \(current.ready) letters of \(current.queue) went to another consumer")
    isRestGone = true
    return true
  }

  /// Keeps a letter, and starts the next portion when this one is full.
  private func keep(_ consumer: Int) {
    portions.kept[consumer] += 1
    guard portions.kept[consumer] == portions.size, consumer + 1 < portions.kept.count, current.settled < current.ready else {
      return
    }
    self.consumer?.want(true, queue: consumer + 1)
  }

  private func giveBack() throws {
    (waiting, waitingBytes) = (Ring(), 0)
    isGivingBack = true
    // Resumes reading, so that the broker's answers arrive.
    consumer?.transport?.isReadingPaused = false
    consumer?.closeInTurn()
    try wait { consumer == nil }
    isGivingBack = false
    if !isOver {
      // Another consumer may take some of the letters.
      try awaitReturn(upTo: Self.deliveryTimeout) { isStopped }
      try wait(upTo: Self.settlePause) { isStopped }
    }
    if isOver {
      isReturning = true
      // A broker that blocks publishing doesn't answer either.
      try awaitReturn(upTo: Self.returnTimeout) { false }
    }
  }

  /// Waits until the broker has put the letters back, which happens a moment after it has closed the channels.
  private func awaitReturn(upTo seconds: Double, unless isTrue: () -> Bool) throws {
    let left = current.ready - current.removed
    let end = loop.now.advanced(bySeconds: seconds)
    while left > 0, loop.now < end, !isTrue() {
      let answer = try perform(.queueInspect(name: current.queue), upTo: end.seconds(since: loop.now), unless: isTrue)
      guard case .success(.queue(let ready, _))? = answer, ready < left else { return }
      try wait(upTo: Self.returnPause) { isTrue() }
    }
  }

  // MARK: connections

  func ready(_ consumer: Consumer) {}

  func delivered(_ delivery: consuming Delivery) {
    lastSign = loop.now
    // The broker may send letters for long before it answers.
    if isGivingBack { return consumer?.closeInTurn() ?? () }
    // Letters that arrived after the walk began are not visited.
    guard current.delivered < current.ready else { return }
    current.delivered += 1
    if known > 0 {
      known -= 1
      return keep(delivery.consumer)
    }
    waitingBytes += delivery.weight
    waiting.append(delivery)
    if waitingBytes > Self.mostWaiting { consumer?.transport?.isReadingPaused = true }
  }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(current.queue) was deleted; \(progress)") }

  // Acknowledgements under way are lost, too, so nobody knows which letters are left.
  func channelLost(_ reason: ConnectionEnd) { give(up: reason) }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    self.consumer = nil
    if reason != .closedHere { give(up: reason) }
  }

  override func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    if isReturning {
      self.publisher = nil
      if reason != .closedHere { stop() }
    } else if hasCounted, reason != .closedHere {
      give(up: reason)
    } else {
      super.ended(publisher, reason)
    }
  }

  private func give(up reason: ConnectionEnd) {
    fail(.unavailable, (reason.isRefusal ? "\(reason)" : "the connection to the broker was lost (\(reason))") + "; \(progress)")
  }
}

/// Shows or removes letters; letters that aren't removed return to their places in the queue.
final class LetterLook: LetterWalk {
  private let filter: LetterFilter
  private let isRemoving: Bool
  private let see: (Letter) -> Void
  private(set) var matched = 0
  private var mostReturns: Int64 = 0

  /// - Parameter see: called with each letter that the filter selects.
  init(
    _ configuration: Configuration, _ filter: LetterFilter, _ place: LetterPlace, maximumBody: Int = 0,
    isRemoving: Bool = false,
    see: @escaping (Letter) -> Void = { _ in }
  ) throws {
    self.filter = filter
    self.isRemoving = isRemoving
    self.see = see
    try super.init(configuration, place, maximumBody: maximumBody)
  }

  override var isEnough: Bool { done >= place.mostVisited || filter.limit.map { matched >= $0 } ?? false }

  override func visit(_ delivery: Delivery) -> Step {
    let letter = Letter(delivery, topology)
    if case .integer(let returns)? = delivery.properties.headers["x-delivery-count"] { mostReturns = max(mostReturns, returns) }
    guard filter.matches(letter) else { return .keep }
    matched += 1
    see(letter)
    return isRemoving ? .remove : .keep
  }

  override func work() throws {
    try super.work()
    if mostReturns >= place.mostReturns, !isRemoving {
      complain(
        "a request has returned to its queue \(mostReturns) times. After \(Topology.deliveryLimit) returns the broker makes it a "
          + "dead letter. Each look counts as a return.")
    }
  }

  override var changed: Int { isRemoving ? matched : 0 }

  override var progress: String { isRemoving ? "\(matched) dropped" : super.progress }
}
