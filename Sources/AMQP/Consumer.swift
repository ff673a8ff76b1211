import Wire

/// Told what a consumer's queues deliver. Called on the thread that drives the machine.
public protocol ConsumerHandler: AnyObject {
  /// All queues are being consumed; again after a channel was reopened.
  func ready(_ consumer: Consumer)
  /// One message, to be acknowledged or rejected by its token; handed over without a copy.
  func delivered(_ delivery: consuming Delivery)
  /// The broker ended the consumption of a queue (deleted, or its leader is lost); `consume(queue:)` tries again.
  func cancelled(queue: Int)
  /// The broker closed the channel, which is opened again at once. All earlier tokens are void and redeliveries follow.
  func channelLost(_ reason: ConnectionEnd)
  /// The transport is gone and all tokens are void. The machine may be opened on a new transport.
  func ended(_ consumer: Consumer, _ reason: ConnectionEnd)
}

/// A connection that consumes several queues, with a prefetch for each, and acknowledges in batches.
///
/// What is consumed at any time is so on one channel; there may be others, each opened when something of it is first wanted. A channel of the broker's
/// does one thing after the other: while it begins a consumption, none of its deliveries go out, and it looks for an acknowledged delivery
/// among all that it has in hand.
public final class Consumer: Connection {
  /// A queue and how many of its messages may be unacknowledged at once.
  public struct Subscription: Sendable {
    public var queue: String
    public var prefetch: UInt16
    /// Not consumed before it is asked for.
    public var isOptional: Bool
    /// Only what is optional is consumed on another one than 1.
    public var channel: UInt16
    /// Where in a stream to begin, and the like.
    public var arguments: FieldTable
    /// Of a queue with one active consumer at a time: the next one gets nothing before all that is in hand here is given back, so that
    /// ``Consumer/close()`` doesn't cancel it.
    public var isOrdered: Bool

    public init(
      queue: String, prefetch: UInt16, isOptional: Bool = false, channel: UInt16 = 1, arguments: FieldTable = FieldTable(),
      isOrdered: Bool = false
    ) {
      precondition(channel == 1 || channel > 1 && isOptional)
      self.queue = queue
      self.prefetch = prefetch
      self.isOptional = isOptional
      self.channel = channel
      self.arguments = arguments
      self.isOrdered = isOrdered
    }
  }

  enum State {
    /// `basic.consume` is out. Then `active`.
    case starting
    /// Then `cancelling` or `cancelled`.
    case active
    /// Our `basic.cancel` is out; deliveries may still come. Then `cancelled`.
    case cancelling
    /// Then `starting`, when asked to.
    case cancelled
  }

  /// More than a channel has.
  private static let mostSubscriptions = 100_000
  private unowned let handler: any ConsumerHandler
  private var subscriptions: [Subscription]
  /// Bytes of a body that are kept.
  private let maximumBody: Int

  private var generation: UInt32 = 0
  private(set) var states: [State]
  /// Which subscriptions are to be consumed; outlives the channel.
  private var isWanted: [Bool]
  /// How often each was consumed on this channel before.
  private var earlier: [Int]
  private var isDraining = false
  /// `close` was called: the last commits are out.
  private var isClosing = false
  /// `closeInTurn` was called.
  private var isClosingInTurn = false
  /// Whether the channel has worked since it was last opened.
  private var hasBeenReady = false
  /// The channel is new, or the broker has ended a consumption: `ready` is owed.
  private var isInterrupted = true
  /// By their numbers, from 1.
  private let channels: [ConsumerChannel]
  private var exchanges = RepeatedBytes()
  private var routingKeys = RepeatedBytes()
  private var cache = PropertyCache()

  /// - Parameter maximumBody: bytes of a body that are kept; the rest is counted and dropped as it comes.
  public init(
    settings: ConnectionSettings, queues: [Subscription], maximumBody: Int = 1 << 20, handler: any ConsumerHandler
  ) {
    self.handler = handler
    self.subscriptions = queues
    self.maximumBody = maximumBody
    states = Array(repeating: .cancelled, count: queues.count)
    isWanted = queues.map { !$0.isOptional }
    earlier = Array(repeating: -1, count: queues.count)
    channels = (1...max(1, queues.map(\.channel).max() ?? 1)).map { ConsumerChannel($0) }
    super.init(settings: settings)
  }

  /// Deliveries handed over and neither acknowledged nor rejected.
  public var unacknowledged: Int { channels.reduce(0) { $0 + $1.window.inHand } }

  /// All that is to be consumed is.
  public var isReady: Bool { isOpen && !isInterrupted }

  // MARK: - What the handler asks for

  /// Marks a delivery as done; the broker is told with the next output. A token that is void or settled is ignored.
  public func acknowledge(_ token: DeliveryToken) {
    guard isOpen, token.generation == generation, channel(of: token).window.acknowledge(token.tag) else { return }
    announceOutput()
  }

  /// Gives a delivery back, or dead-letters it. Every return counts towards the queue's delivery limit.
  public func reject(_ token: DeliveryToken, requeue: Bool) {
    guard isOpen, token.generation == generation, channel(of: token).window.reject(token.tag) else { return }
    channel(of: token).appendRejection(of: token.tag, requeue: requeue, of: codec, to: &output)
    announceOutput()
  }

  private func channel(of token: DeliveryToken) -> ConsumerChannel { channels[Int(token.channel) - 1] }

  /// Stops new deliveries and keeps the channel for the acknowledgements of what is in hand.
  public func cancelConsumers() {
    isDraining = true
    guard isOpen else { return }
    for (queue, state) in states.enumerated() {
      switch state {
      case .active, .starting: cancel(queue)
      case .cancelling, .cancelled: continue
      }
    }
  }

  /// Orderly: acknowledgements have reached their queues before the connection ends.
  ///
  /// RabbitMQ keeps acknowledgements back while many of a channel's are on their way to a quorum queue's log, and forgets them when the
  /// channel ends. But it goes on after a cancel only when those on their way are in the log, and sends the rest before it reads
  /// anything that follows its answer to a commit.
  public override func close() {
    guard isOpen else { return super.close() }
    if !isClosing {
      isClosing = true
      startClosing()
      cancelActive { !$0.isOrdered }
      for channel in channels where channel.isOpen {
        channel.appendLastAcknowledgements(of: codec, to: &output)
      }
      announceOutput()
    }
    let isCommitted = channels.allSatisfy { !$0.isOpen || $0.commits == 0 && $0.window.waiting == 0 }
    if isCommitted { super.close() }
  }

  /// No subscription is consumed: no delivery follows.
  package var isCancelled: Bool { states.allSatisfy { if case .cancelled = $0 { true } else { false } } }

  /// One that is just beginning is cancelled when it has begun: before, RabbitMQ 3.10 would crash its channel.
  private func cancelActive(_ isMeant: (Subscription) -> Bool = { _ in true }) {
    isDraining = true
    for queue in states.indices where channels[Int(channel(of: queue)) - 1].isOpen && isMeant(subscriptions[queue]) {
      if case .active = states[queue] { cancel(queue) }
    }
  }

  /// Ends as `close` does, and gives what is in hand back in order: the channels are closed one after the other, the first one first. A queue takes
  /// back what a connection held in no order of its channels.
  public func closeInTurn() {
    guard isOpen else { return close() }
    isClosingInTurn = true
    cancelActive()
    closeNextChannel()
  }

  /// What is given back would be delivered anew while something is consumed.
  private func closeNextChannel() {
    guard isClosingInTurn, isCancelled else { return }
    guard let channel = channels.first(where: \.isOpen) else { return close() }
    channel.appendLastAcknowledgements(of: codec, to: &output)
    announceOutput()
  }

  private func committed(_ channel: ConsumerChannel) {
    guard channel.commits > 0 else { return protocolError("an answer that was not asked for") }
    channel.commits -= 1
    if isClosing {
      close()
    } else if isClosingInTurn, isCancelled, channel.commits == 0, channel === channels.first(where: \.isOpen) {
      send(.channelClose, channel: channel.number)
    }
  }

  /// Consumes again what the broker has cancelled; if the queue doesn't exist the connection ends with `.notFound`.
  public func consume(queue: Int) {
    guard isOpen, !isDraining, isWanted[queue], case .cancelled = states[queue] else { return }
    states[queue] = .starting
    earlier[queue] += 1
    let channel = channel(of: queue)
    if !channels[Int(channel) - 1].isOpen { open(channel) }
    send(.qos(prefetch: subscriptions[queue].prefetch), channel: channel)
    let subscription = subscriptions[queue]
    send(
      .consume(queue: Array(subscription.queue.utf8), consumerTag: tag(queue), arguments: subscription.arguments),
      channel: channel)
  }

  /// Asks the broker of a queue that is consumed, on the channel that consumes it, how many consume it: an answer shows that this channel was
  /// there after the question. RabbitMQ says 0 where it can't reach the queue's leader.
  /// - Parameter then: never called where the channel is lost before, or the queue isn't consumed.
  public func inspect(queue: Int, then: @escaping (_ consumers: Int) -> Void) {
    guard isOpen, case .active = states[queue] else { return }
    let channel = channel(of: queue)
    channels[Int(channel) - 1].inspections.append(then)
    send(
      .queueDeclare(name: Array(subscriptions[queue].queue.utf8), passive: true, arguments: FieldTable()), channel: channel)
  }

  /// Adds an optional subscription; returns its number.
  public func add(queue: String, prefetch: UInt16) -> Int {
    subscriptions.append(Subscription(queue: queue, prefetch: prefetch, isOptional: true))
    states.append(.cancelled)
    isWanted.append(false)
    earlier.append(-1)
    return subscriptions.count - 1
  }

  /// Whether an optional subscription is to be consumed. RabbitMQ returns some of the messages that it is sending to a consumer that
  /// is cancelled, and counts that as a delivery: not to be done often.
  public func want(_ isWanted: Bool, queue: Int) {
    self.isWanted[queue] = isWanted
    if isWanted { consume(queue: queue) } else if isOpen, case .active = states[queue] { cancel(queue) }
  }

  private func cancel(_ queue: Int) {
    states[queue] = .cancelling
    send(.cancel(consumerTag: tag(queue)), channel: channel(of: queue))
  }

  /// Names a consumer: its subscription, plus the most that there are for each time that it was consumed before, and the opening of the channel
  /// that it belongs to. RabbitMQ may still write deliveries of a channel that it has closed, even after it has opened the next one of the
  /// same number; and 3.10 crashes a channel that uses the tag of a cancelled consumer again while messages of that one are in hand.
  private func tag(_ queue: Int) -> [UInt8] {
    Array("\(queue + earlier[queue] * Self.mostSubscriptions).\(generation)".utf8)
  }

  private enum Addressee {
    /// The subscription, and whether it is consumed under that tag at present.
    case queue(Int, isPresent: Bool)
    /// A consumer of an earlier opening of the channel.
    case former
    case unknown
  }

  private func addressee(_ tag: Range<Int>, _ payload: RawSpan) -> Addressee {
    var offset = tag.lowerBound
    guard let number = Self.number(&offset, tag.upperBound, payload), offset < tag.upperBound,
      payload.byte(at: offset) == UInt8(ascii: ".")
    else { return .unknown }
    offset += 1
    guard let opening = Self.number(&offset, tag.upperBound, payload), offset == tag.upperBound, opening <= generation else {
      return .unknown
    }
    guard opening == generation else { return .former }
    let (times, queue) = number.quotientAndRemainder(dividingBy: Self.mostSubscriptions)
    guard queue < subscriptions.count else { return .unknown }
    return times <= earlier[queue] ? .queue(queue, isPresent: times == earlier[queue]) : .unknown
  }

  private static func number(_ offset: inout Int, _ end: Int, _ payload: RawSpan) -> Int? {
    let start = offset
    var number = 0
    while offset < end, offset - start < 10 {
      let digit = payload.byte(at: offset) &- UInt8(ascii: "0")
      guard digit <= 9 else { break }
      number = number * 10 + Int(digit)
      offset += 1
    }
    return offset == start ? nil : number
  }

  // MARK: - Channels

  override var mostChannels: UInt16 { UInt16(channels.count) }

  /// The one that was meant, where the broker allows so many.
  private func channel(of queue: Int) -> UInt16 { min(subscriptions[queue].channel, channelMax) }

  override func connectionOpened() {
    if isDraining { becameReady() } else { openChannels() }
  }

  private func open(_ channel: UInt16) {
    channels[Int(channel) - 1].isOpen = true
    send(.channelOpen, channel: channel)
  }

  /// The first one, and those of what is wanted.
  private func openChannels() {
    generation &+= 1
    for channel in channels { channel.reset() }
    hasBeenReady = false
    isInterrupted = true
    open(1)
    for queue in subscriptions.indices {
      states[queue] = .cancelled
      earlier[queue] = -1
      consume(queue: queue)
    }
  }

  override func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {
    guard Int(channel) <= channels.count, channels[Int(channel) - 1].isOpen else {
      return protocolError("a close of channel \(channel)")
    }
    // All tokens are void together: with several channels that takes another connection.
    let isOnly = channels.allSatisfy { $0.isOpen == ($0.number == channel) }
    guard hasBeenReady, !isDraining, isOnly else {
      // Nothing is acknowledged on it any more.
      channels[Int(channel) - 1].reset()
      return closeConnection(because: end)
    }
    openChannels()
    handler.channelLost(end)
  }

  override func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {
    guard let channel = opened(channel), channel.content == .none else {
      return protocolError("a method in the middle of a content")
    }
    switch method {
    case .deliver(let tag, let number, let redelivered, let exchange, let routingKey):
      let addressee = addressee(tag, payload)
      if case .former = addressee {
        channel.content = .formerHeader
        return
      }
      guard case .queue(let queue, _) = addressee, self.channel(of: queue) == channel.number,
        channel.window.delivered(number)
      else { return protocolError("a delivery of an unknown consumer or out of order") }
      channel.delivery.consumer = queue
      channel.delivery.token = DeliveryToken(generation: generation, channel: channel.number, tag: number)
      channel.delivery.redelivered = redelivered
      channel.delivery.exchange = exchanges.read(exchange, in: payload)
      channel.delivery.routingKey = routingKeys.read(routingKey, in: payload)
      channel.content = .header
    case .channelOpenOK:
      if !isWanted.contains(true) {
        becameReady()
        reportReady()
      }
    case .qosOK, .transactionOK: break
    case .commitOK: committed(channel)
    case .queueDeclareOK(_, let consumers):
      guard let then = channel.inspections.popFirst() else { return protocolError("an answer that was not asked for") }
      then(Int(consumers))
    case .consumeOK(let tag):
      guard let queue = current(tag, payload), case .starting = states[queue] else { return }
      states[queue] = .active
      if !isWanted[queue] || isClosingInTurn { cancel(queue) }
      // A queue without a majority may be answered for late: what the others deliver is not given back for that.
      becameReady()
      reportReady()
    case .cancel(let consumer, let nowait):
      guard let queue = current(consumer, payload) else { return }
      states[queue] = .cancelled
      isInterrupted = isInterrupted || isWanted[queue]
      if !nowait { send(.cancelOK(consumerTag: tag(queue)), channel: channel.number) }
      handler.cancelled(queue: queue)
      closeNextChannel()
    case .cancelOK(let tag):
      guard let queue = current(tag, payload), case .cancelling = states[queue] else { return }
      states[queue] = .cancelled
      // Wanted again meanwhile.
      consume(queue: queue)
      closeNextChannel()
    case .channelCloseOK where isClosingInTurn:
      channel.reset()
      closeNextChannel()
    default: protocolError("an unexpected method on a consumer's channel")
    }
  }

  private func opened(_ number: UInt16) -> ConsumerChannel? {
    let index = Int(number) - 1
    return channels.indices.contains(index) && channels[index].isOpen ? channels[index] : nil
  }

  /// The queue of a consumer of this opening of the channel; nil for a former one's, or after a protocol error.
  private func current(_ tag: Range<Int>, _ payload: RawSpan) -> Int? {
    switch addressee(tag, payload) {
    case .queue(let queue, let isPresent): return isPresent ? queue : nil
    case .former: return nil
    case .unknown:
      protocolError("a method for an unknown consumer")
      return nil
    }
  }

  /// Once after each interruption, when all that is wanted is consumed.
  private func reportReady() {
    let isConsuming = states.indices.allSatisfy { queue in
      if case .active = states[queue] { true } else { !isWanted[queue] }
    }
    guard isInterrupted, isConsuming else { return }
    isInterrupted = false
    hasBeenReady = true
    handler.ready(self)
  }

  override func connectionEnded(_ end: ConnectionEnd) {
    generation &+= 1
    isInterrupted = true
    for channel in channels { channel.reset() }
    isDraining = false
    isClosing = false
    isClosingInTurn = false
    for queue in states.indices { states[queue] = .cancelled }
    handler.ended(self, end)
  }

  // MARK: - Content

  override func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {
    guard let channel = opened(channel), channel.content == .header || channel.content == .formerHeader else {
      return protocolError("a content header out of turn")
    }
    guard let isWhole = channel.header(payload, cache: &cache) else { return protocolError("a malformed content header") }
    if isWhole { hand(channel.take()) }
  }

  override func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {
    guard let channel = opened(channel), let isWhole = channel.body(payload, keeping: maximumBody) else {
      return protocolError("a content body out of turn or too long")
    }
    if isWhole { hand(channel.take()) }
  }

  private func hand(_ delivery: consuming Delivery) { if !isClosing { handler.delivered(delivery) } }

  // MARK: - Acknowledgements out

  override func willWrite(at now: MonotonicTime) {
    for channel in channels {
      channel.appendAcknowledgements(of: codec, to: &output, at: now, isDraining: isDraining)
    }
  }

  override var roleDeadline: MonotonicTime { channels.reduce(.distantFuture) { min($0, $1.acknowledgementDeadline) } }

  override func roleDeadlineReached(at now: MonotonicTime) { announceOutput() }
}
