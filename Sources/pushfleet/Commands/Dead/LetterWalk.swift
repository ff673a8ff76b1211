import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Visits, once and in order, the letters that a queue has at the start. Letters that aren't removed are held until the
/// end and then return to their places.
///
/// A quorum queue shows its messages only by delivering them. So letters are fetched in portions, each by a consumer on its own
/// channel. The next portion begins when the one before holds only visited letters that stay.
///
/// The broker closes a channel that holds a message for longer than its `consumer_timeout`. So a long walk gives all letters
/// back from time to time and consumes again; the visited letters then come first.
class LetterWalk: PublisherClient, ConsumerHandler {
  enum Step {
    case keep, remove
    /// A later call of `settle` decides.
    case wait
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
  private var queue: String { place.queue(topology) }
  private let maximumBody: Int
  private let hold: Double
  /// The connection of the consumer; nil until the letters are counted.
  private var consuming: BrokerConnection?
  private weak var consumer: Consumer?

  /// Letters ready in the queue when the walk began.
  private(set) var expected = 0
  private(set) var hasCounted = false
  /// Letters that have been visited and settled, removed or not.
  private(set) var done = 0
  private var delivered = 0
  private var removed = 0
  private var waiting = Ring<Delivery>()
  private var waitingBytes = 0
  /// The letter whose `settle` is awaited.
  private var current: Delivery?
  /// Letters per consumer, and the letters that each consumer keeps.
  private var portions = (size: LetterWalk.largestPortion, kept: [Int]())
  private var heldSince = MonotonicTime(nanoseconds: 0)
  /// True while all held letters go back, before the walk continues.
  private var isGivingBack = false
  /// Visited letters at the head of the queue, to be skipped after a return.
  private var known = 0
  private var isProceeding = false
  private(set) var isEnding = false
  /// True when the walk is over and the held letters go back.
  private var isReturning = false
  private var lastSign = MonotonicTime(nanoseconds: 0)
  private var isAsking = false
  private var isWatched = false

  /// - Parameter maximumBody: bytes of a letter's body to keep.
  init(
    _ configuration: Configuration, _ place: LetterPlace, maximumBody: Int, hold: Double = LetterWalk.longestHold
  ) throws {
    self.place = place
    self.maximumBody = maximumBody
    self.hold = hold
    try super.init(configuration, window: 1) {
      ConnectionSettings(broker: $0, name: place.connectionName, heartbeat: 0)
    }
  }

  private func consume() {
    guard failure == nil else { return }
    heldSince = loop.now
    let consuming = BrokerConnection(loop: loop, brokers: connection.brokers)
    consuming.makeMachine = { [unowned self] broker in makeConsumer(broker) }
    consuming.start()
    self.consuming = consuming
  }

  private func makeConsumer(_ broker: BrokerURI) -> Consumer {
    let left = expected - removed
    let size = max(min(Self.largestPortion, wantedPortion), min(Self.largestPortion, left / Self.mostPortions + 1))
    let count = min(Self.mostPortions, left / size + 1)
    portions = (size, Array(repeating: 0, count: count))
    let consumer = Consumer(
      // No heartbeat: reading pauses while many letters wait to be visited.
      settings: ConnectionSettings(broker: broker, name: place.connectionName, heartbeat: 0),
      queues: (0..<count).map {
        .init(queue: queue, prefetch: UInt16(size), isOptional: $0 > 0, channel: UInt16($0 + 1))
      },
      maximumBody: maximumBody, handler: self)
    self.consumer = consumer
    return consumer
  }

  // MARK: for subclasses

  func visit(_ delivery: Delivery) -> Step { .keep }

  /// Letters that were removed or sent back.
  var changed: Int { 0 }

  /// Letters to fetch at once. A walk that is slow on purpose fetches few, because the broker ends a connection on which nothing is
  /// read for 30 seconds.
  var wantedPortion: Int { .max }

  /// Ends the walk on a signal; what has been done so far stays done.
  override func interrupt() {
    if isReturning { leave() } else { fail(.interrupted, "interrupted: \(progress)") }
  }

  /// Ends the walk soon, without an error if possible; what has been done so far stays done.
  func stop() { interrupt() }

  /// True when no more letters are needed.
  var isEnough: Bool { false }

  /// Reports the outcome of the awaited letter.
  func settle(_ step: Step) {
    guard let delivery = current else { return }
    current = nil
    finish(delivery, step)
    // With one letter at a time, this is the only moment at which no letter is being published.
    if !givesBackWhenDue() { proceed() }
  }

  /// True if all held letters, the awaited one included, may go back now.
  var canGiveBack: Bool { true }
  /// Called when all held letters go back; the awaited letter will be delivered again.
  func givesBack() {}

  /// The progress at the loss of the connection, for error messages.
  var progress: String { "nothing has been changed" }

  func publisherReady(_ publisher: Publisher) {}
  override func unblocked(_ publisher: Publisher) { publisherReady(publisher) }

  /// Ends the walk; held letters go back.
  func end() {
    guard !isEnding else { return }
    isEnding = true
    if isGivingBack {
      if consumer == nil { leaveInTime() }
      return
    }
    if let consumer { return close(consumer) }
    consuming?.stop()
    leave()
  }

  /// Resumes reading, so that the broker's answers arrive.
  private func close(_ consumer: Consumer) {
    consumer.transport?.isReadingPaused = false
    consumer.closeInTurn()
  }

  // MARK: the walk

  private func proceed() {
    guard !isProceeding else { return }
    isProceeding = true
    while current == nil, !isEnding, !isEnough, let delivery = waiting.popFirst() {
      waitingBytes -= delivery.weight
      let step = visit(delivery)
      if case .wait = step { current = delivery } else { finish(delivery, step) }
    }
    isProceeding = false
    if waitingBytes < Self.mostWaiting / 4 { consumer?.transport?.isReadingPaused = false }
    if current == nil, isEnough || done == expected { end() }
  }

  private func finish(_ delivery: Delivery, _ step: Step) {
    done += 1
    if case .remove = step {
      removed += 1
      return consumer?.acknowledge(delivery.token) ?? ()
    }
    keep(delivery.consumer)
  }

  /// Keeps a letter, and starts the next portion when this one is full.
  private func keep(_ consumer: Int) {
    portions.kept[consumer] += 1
    guard portions.kept[consumer] == portions.size, consumer + 1 < portions.kept.count, done < expected else { return }
    self.consumer?.want(true, queue: consumer + 1)
  }

  private func watch() {
    loop.schedule(after: 1) { [weak self] in
      guard let self, !isEnding else { return }
      if current != nil || !waiting.isEmpty { lastSign = loop.now }
      let silence = loop.now.seconds(since: lastSign)
      if silence >= Self.deliveryTimeout {
        // Another consumer has taken some of the returned letters.
        guard isGivingBack, consumer == nil else {
          return fail(
            .unavailable, "the broker delivers nothing, though the queue \(queue) isn't empty; \(progress)")
        }
        takeAgain()
      } else if !isGivingBack {
        if silence >= Self.quiet { askForRest() }
        _ = givesBackWhenDue()
      }
      watch()
    }
  }

  /// - Returns: whether all that is held has begun to go back.
  private func givesBackWhenDue() -> Bool {
    guard let consumer, loop.now.seconds(since: heldSince) >= hold, canGiveBack, !isGivingBack, !isEnding, !isEnough,
      done < expected
    else { return false }
    giveBack(consumer)
    return true
  }

  private func giveBack(_ consumer: Consumer) {
    isGivingBack = true
    lastSign = loop.now
    current = nil
    waiting = Ring()
    waitingBytes = 0
    givesBack()
    close(consumer)
  }

  private func takeAgain() {
    guard isGivingBack, consumer == nil, !isEnding else { return }
    isGivingBack = false
    lastSign = loop.now
    known = done - removed
    delivered = removed
    consume()
  }

  /// Ends the walk if the queue is empty: the missing letters went to another consumer.
  private func askForRest() {
    guard !isAsking else { return }
    isAsking = true
    publisher?.perform(.queueInspect(name: queue)) { [weak self] answer in
      guard let self else { return }
      isAsking = false
      guard case .success(.queue(0, _)) = answer, loop.now.seconds(since: lastSign) >= Self.quiet, !isEnding else { return }
      complain("\(expected - delivered) of the queue's \(expected) letters went to another consumer")
      end()
    }
  }

  /// Waits until the broker has put the letters back, which happens a moment after it has closed the channel.
  private func awaitReturn() {
    let left = expected - removed
    guard left > 0, let publisher else { return returned() }
    publisher.perform(.queueInspect(name: queue)) { [weak self] answer in
      guard let self else { return }
      guard case .success(.queue(let ready, _)) = answer, ready < left else { return returned() }
      loop.schedule(after: Self.returnPause) { [weak self] in self?.awaitReturn() }
    }
  }

  private func returned() {
    if isEnding { return leave() }
    loop.schedule(after: Self.settlePause) { [weak self] in self?.takeAgain() }
  }

  private func leaveInTime() {
    isReturning = true
    // A broker that blocks publishing doesn't answer either.
    loop.schedule(after: Self.returnTimeout) { [weak self] in self?.leave() }
  }

  func leave() {
    if let publisher { publisher.close() } else { finish() }
  }

  // MARK: connections

  override func ready(_ publisher: Publisher) {
    up()
    self.publisher = publisher
    guard !hasCounted else { return publisherReady(publisher) }
    publisher.perform(.queueInspect(name: queue)) { [unowned self] answer in
      switch answer {
      case .success(.queue(let ready, let consumers)):
        expected = ready
        hasCounted = true
        if ready == 0, consumers > 0, !place.isOptional {
          complain("no message of \(queue) is ready, and it has consumers, such as another look: they may have some in hand")
        }
        if ready == 0 || isEnough { end() } else { consume() }
      case .success: break
      case .failure(.notFound) where place.isOptional: end()
      case .failure(.notFound): fail(.unavailable, "there is no queue \(queue); `pushfleet topology` declares it")
      case .failure(let reason): fail(.unavailable, "queue \(queue): \(reason)")
      }
    }
  }

  func ready(_ consumer: Consumer) {
    consuming?.established(at: loop.now)
    lastSign = loop.now
    if !isWatched { watch() }
    isWatched = true
  }

  func delivered(_ delivery: consuming Delivery) {
    lastSign = loop.now
    // The broker may send letters for long before it answers.
    if isEnding || isGivingBack { return consumer?.closeInTurn() ?? () }
    // Letters that arrived after the walk began are not visited.
    guard delivered < expected else { return }
    delivered += 1
    if known > 0 {
      known -= 1
      return keep(delivery.consumer)
    }
    waitingBytes += delivery.weight
    waiting.append(delivery)
    if waitingBytes > Self.mostWaiting { consumer?.transport?.isReadingPaused = true }
    proceed()
  }

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(queue) was deleted; \(progress)") }

  // Acknowledgements under way are lost, too, so nobody knows which letters are left.
  func channelLost(_ reason: ConnectionEnd) { give(up: reason) }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    self.consumer = nil
    guard reason == .closedHere, isEnding || isGivingBack else { return give(up: reason) }
    consuming?.stop()
    if isEnding { leaveInTime() }
    awaitReturn()
  }

  override func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    if reason == .closedHere || isReturning { return finish() }
    if hasCounted { give(up: reason) } else { lost(reason) }
  }

  private func give(up reason: ConnectionEnd) {
    fail(.unavailable, "the connection to the broker was lost (\(reason)); \(progress)")
  }

  override func finish() {
    consuming?.stop()
    super.finish()
  }
}
