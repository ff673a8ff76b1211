import AMQP
import Broker
import Reactor
import Settings
import Wire

/// Goes through the dead letters once, in order: those that the queue has when it begins. What isn't removed is held until the end and then
/// goes back to its place.
///
/// A quorum queue shows what it has only by delivering it. So letters are taken by portions, each by a consumer of its own on a channel of its
/// own: the next one begins when the one before holds nothing but letters that stay. Here none is kept that has been looked at.
///
/// The broker closes the channel of who holds a message for longer than its `consumer_timeout`. So in a walk that lasts, all that is held goes
/// back from time to time and is taken anew; what has been looked at stands first then.
class LetterWalk: PublisherClient, ConsumerHandler {
  enum Step {
    case keep, remove
    /// `settle` says later.
    case wait
  }

  /// Letters that a portion's consumer may hold: the broker looks for an acknowledged one among them, from the oldest on.
  private static let portion: UInt16 = 2_000
  /// A connection has 2,047 channels.
  private static let mostPortions = 2_000
  /// Bytes of letters that wait here above which nothing more is read.
  private static let mostWaiting = 16 << 20
  /// Seconds without a delivery after which the queue is asked whether the rest has gone to somebody else.
  private static let quiet = 10.0
  /// Seconds without a delivery after which the broker is given up.
  private static let deliveryTimeout = 60.0
  /// Seconds within which the broker puts back what was held, and those between two looks at it.
  private static let returnTimeout = 2.0
  private static let returnPause = 0.02
  /// Seconds for which letters are held: well below RabbitMQ's half hour.
  static let longestHold = 600.0
  /// Seconds between the sight of what was put back and the next consumer: letters that came meanwhile can look like it.
  private static let settlePause = 1.0

  let topology: Topology
  private let name: String
  private let maximumBody: Int
  private let hold: Double
  private var consuming: BrokerConnection
  private weak var consumer: Consumer?

  /// What the queue had ready when the walk began.
  private(set) var expected = 0
  private(set) var hasCounted = false
  /// Letters done with, removed or not.
  private(set) var done = 0
  private var delivered = 0
  private var removed = 0
  private var waiting = Ring<Delivery>()
  private var waitingBytes = 0
  /// The letter that is waited for.
  private var current: Delivery?
  private var kept: [Int] = []
  private var heldSince = MonotonicTime(nanoseconds: 0)
  /// All that is held goes back, and the walk goes on then.
  private var isGivingBack = false
  /// Letters at the head of the queue that stay, and have been looked at before they were given back.
  private var known = 0
  private var isProceeding = false
  private(set) var isEnding = false
  /// Everything is done with; what was held goes back.
  private var isReturning = false
  private var lastSign = MonotonicTime(nanoseconds: 0)
  private var isAsking = false
  private var isWatched = false

  /// - Parameters:
  ///   - maximumBody: bytes of a letter's body that are wanted.
  ///   - hold: seconds for which letters are held.
  init(_ configuration: Configuration, name: String, maximumBody: Int, hold: Double = LetterWalk.longestHold) throws {
    topology = configuration.topology
    self.name = name
    self.maximumBody = maximumBody
    self.hold = hold
    let loop = try EventLoop()
    consuming = BrokerConnection(loop: loop, brokers: try configuration.brokerAddresses())
    try super.init(configuration, loop: loop, window: 1) { ConnectionSettings(broker: $0, name: name, heartbeat: 0) }
    consuming.makeMachine = { [unowned self] broker in makeConsumer(broker) }
  }

  private func makeConsumer(_ broker: BrokerURI) -> Consumer {
    let portions = min(Self.mostPortions, (expected - removed) / Int(Self.portion) + 1)
    kept = Array(repeating: 0, count: portions)
    let consumer = Consumer(
      // Who pages through letters takes his time, and nothing is heard meanwhile: as rarely as the broker asks for it.
      settings: ConnectionSettings(broker: broker, name: name, heartbeat: 0),
      queues: (0..<portions).map {
        .init(queue: topology.deadQueue, prefetch: Self.portion, isOptional: $0 > 0, channel: UInt16($0 + 1))
      },
      maximumBody: maximumBody, handler: self)
    self.consumer = consumer
    return consumer
  }

  // MARK: for those who walk

  func visit(_ delivery: Delivery) -> Step { .keep }

  /// Somebody wants it to end: what has been found out by then counts, where it is done.
  override func interrupt() {
    if isReturning { leave() } else { fail(.interrupted, "interrupted: \(progress)") }
  }

  /// Nothing more is wanted.
  var isEnough: Bool { false }

  /// What became of the letter that was waited for.
  func settle(_ step: Step) {
    guard let delivery = current else { return }
    current = nil
    finish(delivery, step)
    // Where one letter follows the other, this is the only moment at which none is on its way.
    if !givesBackWhenDue() { proceed() }
  }

  /// Whether what is held may go back now, the letter that is waited for as well.
  var canGiveBack: Bool { true }
  /// It goes back: the letter that is waited for comes again.
  func givesBack() {}

  /// What had been done when the connection was lost, for the error.
  var progress: String { "nothing has been changed" }

  /// Publishing may go on.
  func publisherReady(_ publisher: Publisher) {}
  override func unblocked(_ publisher: Publisher) { publisherReady(publisher) }

  /// Ends the walk: what is held goes back.
  func end() {
    guard !isEnding else { return }
    isEnding = true
    if isGivingBack {
      if consumer == nil { leaveInTime() }
      return
    }
    if let consumer { return close(consumer) }
    consuming.stop()
    leave()
  }

  /// Its answers are read also where deliveries were not.
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

  /// A letter stays that the consumer of a portion has.
  private func keep(_ portion: Int) {
    kept[portion] += 1
    guard kept[portion] == Int(Self.portion), portion + 1 < kept.count, done < expected else { return }
    consumer?.want(true, queue: portion + 1)
  }

  private func watch() {
    loop.schedule(after: 1) { [weak self] in
      guard let self, !isEnding else { return }
      if current != nil || !waiting.isEmpty { lastSign = loop.now }
      let silence = loop.now.seconds(since: lastSign)
      if silence >= Self.deliveryTimeout {
        // Somebody else has taken of what was put back.
        guard isGivingBack, consumer == nil else {
          return fail(
            .unavailable, "the broker delivers nothing, though the queue \(topology.deadQueue) isn't empty; \(progress)")
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
    consuming = BrokerConnection(loop: loop, brokers: consuming.brokers)
    consuming.makeMachine = { [unowned self] broker in makeConsumer(broker) }
    consuming.start()
  }

  /// What is neither ready nor here has gone to somebody else.
  private func askForRest() {
    guard !isAsking else { return }
    isAsking = true
    publisher?.perform(.queueInspect(name: topology.deadQueue)) { [weak self] answer in
      guard let self else { return }
      isAsking = false
      guard case .success(.queue(0, _)) = answer, loop.now.seconds(since: lastSign) >= Self.quiet, !isEnding else { return }
      Terminal.complain("\(expected - delivered) of the queue's \(expected) letters didn't come: somebody else has taken them")
      end()
    }
  }

  /// The broker puts back what a channel held a moment after it has closed it: whoever looks next is to find it there.
  private func awaitReturn() {
    let left = expected - removed
    guard left > 0, let publisher else { return returned() }
    publisher.perform(.queueInspect(name: topology.deadQueue)) { [weak self] answer in
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
    // A broker that takes nothing at present doesn't answer either.
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
    publisher.perform(.queueInspect(name: topology.deadQueue)) { [unowned self] answer in
      switch answer {
      case .success(.queue(let ready, _)):
        expected = ready
        hasCounted = true
        if ready == 0 { end() } else { consuming.start() }
      case .success: break
      case .failure(.notFound): fail(.unavailable, "there is no queue \(topology.deadQueue); `pushfleet topology` declares it")
      case .failure(let reason): fail(.unavailable, "queue \(topology.deadQueue): \(reason)")
      }
    }
  }

  func ready(_ consumer: Consumer) {
    consuming.established(at: loop.now)
    lastSign = loop.now
    heldSince = loop.now
    if !isWatched { watch() }
    isWatched = true
  }

  func delivered(_ delivery: consuming Delivery) {
    lastSign = loop.now
    // What came since the walk began stays where it is.
    guard delivered < expected, !isEnding, !isGivingBack else { return }
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

  func cancelled(queue: Int) { fail(.unavailable, "the queue \(topology.deadQueue) was deleted; \(progress)") }

  func channelLost(_ reason: ConnectionEnd) { give(up: reason) }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    self.consumer = nil
    guard reason == .closedHere, isEnding || isGivingBack else { return give(up: reason) }
    consuming.stop()
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
    consuming.stop()
    super.finish()
  }
}
