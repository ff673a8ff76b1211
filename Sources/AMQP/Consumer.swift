import Wire

/// Receives a consumer's deliveries and events, on the thread that drives the machine.
public protocol ConsumerHandler: AnyObject {
  /// All queues are being consumed. Called again after a channel was reopened.
  func ready(_ consumer: Consumer)
  /// A message to acknowledge or reject by its token. It is handed over without a copy.
  func delivered(_ delivery: consuming Delivery)
  /// The broker ended the consumption of a queue (it was deleted or lost its leader). `consume(queue:)` tries again.
  func cancelled(queue: Int)
  /// The broker closed the channel. All tokens are void; the channel is reopened at once and redeliveries follow.
  func channelLost(_ reason: ConnectionEnd)
  /// The transport is gone and all tokens are void. The machine can be opened on a new transport.
  func ended(_ consumer: Consumer, _ reason: ConnectionEnd)
}

/// A connection that consumes several queues, each with its own prefetch, and acknowledges in batches.
///
/// Required subscriptions use channel 1. Optional ones may use further channels, which are opened on first use. RabbitMQ does
/// one thing at a time on a channel: while it starts a consumer, the channel delivers nothing. For each acknowledgement it
/// searches all unacknowledged deliveries of the channel.
public final class Consumer: ConnectionRole {
  /// A queue and the maximum number of its unacknowledged messages.
  public struct Subscription: Sendable {
    public var queue: String
    public var prefetch: UInt16
    /// True if the queue is consumed only on request.
    public var isOptional: Bool
    /// Only an optional subscription may use another channel than 1.
    public var channel: UInt16
    /// Arguments of `basic.consume`, such as the start offset in a stream.
    public var arguments: FieldTable
    /// True for a queue with a single active consumer. ``Consumer/close()`` then doesn't cancel this consumer, so the next
    /// consumer receives nothing before all deliveries in hand are returned.
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
    /// `basic.consume` is sent. Next: `active`.
    case starting
    /// Next: `cancelling` or `cancelled`.
    case active
    /// Our `basic.cancel` is sent; deliveries may still arrive. Next: `cancelled`.
    case cancelling
    /// Next: `starting`, on request.
    case cancelled
  }

  /// Larger than the number of subscriptions can be.
  private static let mostSubscriptions = 100_000
  let connection: Connection
  private unowned let handler: any ConsumerHandler
  private var subscriptions: [Subscription]
  private let maximumBody: Int

  private var generation: UInt32 = 0
  private(set) var states: [State]
  /// True for each subscription that should be consumed. The values survive the channel.
  private var isWanted: [Bool]
  /// How often each subscription was already consumed on this channel.
  private var earlier: [Int]
  private var isDraining = false
  /// `close` was called and the last commits are sent.
  private var isClosing = false
  private var isClosingInTurn = false
  private var endedUnanswered = false
  /// True if all wanted queues have been consumed at least once since the channel was opened.
  private var hasBeenReady = false
  /// True if `ready` must be reported: the channel is new, or the broker has ended a consumption.
  private var isInterrupted = true
  /// In the order of their numbers, beginning with 1.
  private let channels: [ConsumerChannel]
  private var exchanges = RepeatedBytes()
  private var routingKeys = RepeatedBytes()
  private var cache = PropertyCache()

  /// - Parameter maximumBody: number of bytes of a body to keep; further bytes are counted and dropped.
  public init(
    settings: ConnectionSettings, queues: [Subscription], maximumBody: Int = 1 << 20, handler: any ConsumerHandler
  ) {
    connection = Connection(settings: settings)
    self.handler = handler
    self.subscriptions = queues
    self.maximumBody = maximumBody
    states = Array(repeating: .cancelled, count: queues.count)
    isWanted = queues.map { !$0.isOptional }
    earlier = Array(repeating: -1, count: queues.count)
    channels = (1...max(1, queues.map(\.channel).max() ?? 1)).map { ConsumerChannel($0) }
  }

  public var unacknowledged: Int { channels.reduce(0) { $0 + $1.window.inHand } }

  public var server: BrokerServer? { connection.server }

  public var isReady: Bool { connection.isOpen && !isInterrupted }

  // MARK: - Requests of the handler

  /// Acknowledges a delivery with the next connection.output. A void or settled token is ignored.
  public func acknowledge(_ token: DeliveryToken) {
    guard connection.isOpen, token.generation == generation, channel(of: token).window.acknowledge(token.tag) else { return }
    connection.announceOutput()
  }

  /// Returns a delivery to its queue or dead-letters it. Every return counts towards the queue's delivery limit.
  public func reject(_ token: DeliveryToken, requeue: Bool) {
    guard connection.isOpen, token.generation == generation, channel(of: token).window.settle(token.tag) else { return }
    channel(of: token).appendRejection(of: token.tag, requeue: requeue, to: &connection.output)
    connection.announceOutput()
  }

  private func channel(of token: DeliveryToken) -> ConsumerChannel { channels[Int(token.channel) - 1] }

  /// Stops new deliveries. The channel stays open to acknowledge the deliveries in hand.
  public func cancelConsumers() {
    isDraining = true
    if connection.isOpen { cancelActive() }
  }

  /// Closes in order: all acknowledgements reach their queues before the connection ends.
  ///
  /// RabbitMQ buffers acknowledgements while many of a channel are being written to a quorum queue's log. It drops the buffer
  /// when the channel ends. After a cancel, it continues only once the pending ones are in the log. It sends the buffered ones
  /// before it reads anything that follows its answer to a commit.
  public func close() { close(because: .closedHere) }

  private func close(because end: ConnectionEnd) {
    guard connection.isOpen else { return connection.close() }
    if !isClosing {
      isClosing = true
      connection.startClosing(because: end)
      cancelActive { !$0.isOrdered }
      for channel in channels where channel.isOpen {
        channel.appendLastAcknowledgements(to: &connection.output)
      }
      connection.announceOutput()
    }
    if isCommitted { connection.close() }
  }

  private var isCommitted: Bool { channels.allSatisfy { !$0.isOpen || $0.commits == 0 && $0.window.waiting == 0 } }

  /// True if the broker hasn't answered the last acknowledgements of a closed consumer. It may deliver their messages again.
  public var isUnanswered: Bool { endedUnanswered || isClosing && !isCommitted }

  /// True if nothing is consumed, so no delivery follows.
  package var isCancelled: Bool { states.allSatisfy { $0 == .cancelled } }

  /// Cancels active consumers only; those that are still starting follow when they are active, except during `close`. RabbitMQ
  /// 3.10 crashes a channel if a consumer that is still starting is cancelled.
  private func cancelActive(_ isMeant: (Subscription) -> Bool = { _ in true }) {
    isDraining = true
    for queue in states.indices where channels[Int(channel(of: queue)) - 1].isOpen && isMeant(subscriptions[queue]) {
      if case .active = states[queue] { cancel(queue) }
    }
  }

  /// Closes like `close`, and returns the deliveries in hand in order: it closes one channel after the other, the first one
  /// first. When a connection ends, a queue takes its deliveries back in no defined order of the channels. The broker has the
  /// time of a close for each answer. A further call gives it that time again.
  public func closeInTurn() {
    guard connection.isOpen else { return close() }
    isClosingInTurn = true
    cancelActive()
    closeNextChannel()
  }

  /// Waits until all consumers are cancelled; otherwise the returned messages would be delivered again.
  private func closeNextChannel() {
    guard isClosingInTurn else { return }
    connection.limitAnswer()
    guard isCancelled else { return }
    guard let channel = channels.first(where: \.isOpen) else { return close() }
    channel.appendLastAcknowledgements(to: &connection.output)
    connection.announceOutput()
  }

  private func committed(_ channel: ConsumerChannel) {
    guard channel.commits > 0 else { return connection.protocolError("an unexpected answer") }
    channel.commits -= 1
    if isClosing {
      close()
    } else if isClosingInTurn, isCancelled, channel.commits == 0, channel === channels.first(where: \.isOpen) {
      connection.limitAnswer()
      connection.send(.channelClose, channel: channel.number)
    }
  }

  /// Consumes a queue that isn't consumed. If the queue doesn't exist, the connection ends with `.notFound`.
  public func consume(queue: Int) {
    guard connection.isOpen, !isDraining, isWanted[queue], case .cancelled = states[queue] else { return }
    states[queue] = .starting
    earlier[queue] += 1
    let channel = channel(of: queue)
    if !channels[Int(channel) - 1].isOpen { open(channel) }
    connection.send(.qos(prefetch: subscriptions[queue].prefetch), channel: channel)
    let subscription = subscriptions[queue]
    connection.send(
      .consume(queue: subscription.queue, consumerTag: tag(queue), arguments: subscription.arguments), channel: channel)
  }

  /// Asks how many consumers a queue has, on the channel that consumes it. An answer proves that this channel existed after the
  /// question. RabbitMQ answers 0 if it can't reach the queue's leader.
  /// - Parameter then: never called if the channel is lost first, or if the queue isn't consumed.
  public func inspect(queue: Int, then: @escaping (_ consumers: Int) -> Void) {
    guard connection.isOpen, case .active = states[queue] else { return }
    let channel = channel(of: queue)
    channels[Int(channel) - 1].inspections.append(then)
    connection.send(.command(.queueInspect(name: subscriptions[queue].queue)), channel: channel)
  }

  public func add(queue: String, prefetch: UInt16) -> Int {
    subscriptions.append(Subscription(queue: queue, prefetch: prefetch, isOptional: true))
    states.append(.cancelled)
    isWanted.append(false)
    earlier.append(-1)
    return subscriptions.count - 1
  }

  /// Starts or stops an optional subscription. Don't do this often: on a cancel, RabbitMQ returns some messages that it is
  /// sending, and counts that as a delivery.
  public func want(_ isWanted: Bool, queue: Int) {
    let wasWanted = self.isWanted[queue]
    self.isWanted[queue] = isWanted
    if isWanted { return consume(queue: queue) }
    guard wasWanted, connection.isOpen else { return }
    switch states[queue] {
    case .active: cancel(queue)
    // The others may have waited for this queue only, after the broker cancelled it.
    case .cancelling, .cancelled: if !isDraining { reportReady() }
    case .starting: return
    }
  }

  private func cancel(_ queue: Int) {
    states[queue] = .cancelling
    connection.send(.cancel(consumerTag: tag(queue)), channel: channel(of: queue))
  }

  /// The tag of a consumer: `<subscription + 100,000 × its earlier consumptions on this channel>.<generation>`. RabbitMQ may
  /// still write deliveries of a closed channel after the next channel with the same number was opened. RabbitMQ 3.10 crashes a
  /// channel that reuses the tag of a cancelled consumer while messages of that consumer are in hand.
  private func tag(_ queue: Int) -> [UInt8] {
    Array("\(queue + earlier[queue] * Self.mostSubscriptions).\(generation)".utf8)
  }

  private enum Addressee {
    /// A subscription, and whether it currently uses this tag.
    case queue(Int, isPresent: Bool)
    /// A consumer of a channel opened earlier.
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

  var mostChannels: UInt16 { UInt16(channels.count) }

  /// The subscription's channel, or the highest one that the broker allows.
  private func channel(of queue: Int) -> UInt16 { min(subscriptions[queue].channel, connection.channelMax) }

  func connectionOpened() {
    if isDraining { connection.becameReady() } else { openChannels() }
  }

  private func open(_ channel: UInt16) {
    channels[Int(channel) - 1].isOpen = true
    connection.send(.channelOpen, channel: channel)
  }

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

  func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {
    guard Int(channel) <= channels.count, channels[Int(channel) - 1].isOpen else {
      return connection.protocolError("a close of channel \(channel)")
    }
    // All tokens become void together. If several channels are open, that needs a new connection.
    let isOnly = channels.allSatisfy { $0.isOpen == ($0.number == channel) }
    guard hasBeenReady, !isDraining, isOnly else {
      channels[Int(channel) - 1].reset()
      return close(because: end)
    }
    openChannels()
    handler.channelLost(end)
  }

  func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {
    guard let channel = opened(channel), channel.content.state == .none else {
      return connection.protocolError("a method in the middle of a content")
    }
    switch method {
    case .deliver(let tag, let number, let redelivered, let exchange, let routingKey):
      let addressee = addressee(tag, payload)
      if case .former = addressee {
        channel.content.state = .formerHeader
        return
      }
      guard case .queue(let queue, _) = addressee, self.channel(of: queue) == channel.number,
        channel.window.delivered(number)
      else { return connection.protocolError("a delivery of an unknown consumer or out of order") }
      channel.content.delivery.consumer = queue
      channel.content.delivery.token = DeliveryToken(generation: generation, channel: channel.number, tag: number)
      channel.content.delivery.redelivered = redelivered
      channel.content.delivery.exchange = exchanges.read(exchange, in: payload)
      channel.content.delivery.routingKey = routingKeys.read(routingKey, in: payload)
      channel.content.state = .header
    case .channelOpenOK:
      if !isWanted.contains(true) {
        connection.becameReady()
        reportReady()
      }
    case .qosOK, .transactionOK: break
    case .commitOK: committed(channel)
    case .queueDeclareOK(_, let consumers):
      guard let then = channel.inspections.popFirst() else { return connection.protocolError("an unexpected answer") }
      then(Int(consumers))
    case .consumeOK(let tag):
      guard let queue = current(tag, payload), case .starting = states[queue] else { return }
      states[queue] = .active
      if !isWanted[queue] || isDraining && !isClosing { cancel(queue) }
      // A queue without a majority may answer late. The deliveries of other queues must not be returned because of that.
      connection.becameReady()
      closeNextChannel()
      reportReady()
    case .cancel(let consumer, let nowait):
      guard let queue = current(consumer, payload) else { return }
      states[queue] = .cancelled
      isInterrupted = isInterrupted || isWanted[queue]
      if !nowait { connection.send(.cancelOK(consumerTag: tag(queue)), channel: channel.number) }
      handler.cancelled(queue: queue)
      closeNextChannel()
    case .cancelOK(let tag):
      guard let queue = current(tag, payload), case .cancelling = states[queue] else { return }
      states[queue] = .cancelled
      // The queue may be wanted again by now.
      consume(queue: queue)
      closeNextChannel()
    case .channelCloseOK where isClosingInTurn:
      channel.reset()
      closeNextChannel()
    default: connection.protocolError("an unexpected method on a consumer's channel")
    }
  }

  private func opened(_ number: UInt16) -> ConsumerChannel? {
    let index = Int(number) - 1
    return channels.indices.contains(index) && channels[index].isOpen ? channels[index] : nil
  }

  /// The queue of a current consumer. Returns nil for a former consumer, or after a protocol error.
  private func current(_ tag: Range<Int>, _ payload: RawSpan) -> Int? {
    switch addressee(tag, payload) {
    case .queue(let queue, let isPresent): return isPresent ? queue : nil
    case .former: return nil
    case .unknown:
      connection.protocolError("a method for an unknown consumer")
      return nil
    }
  }

  private func reportReady() {
    let isConsuming = states.indices.allSatisfy { queue in
      if case .active = states[queue] { true } else { !isWanted[queue] }
    }
    guard isInterrupted, isConsuming else { return }
    isInterrupted = false
    hasBeenReady = true
    handler.ready(self)
  }

  func connectionEnded(_ end: ConnectionEnd) {
    generation &+= 1
    isInterrupted = true
    endedUnanswered = isUnanswered
    for channel in channels { channel.reset() }
    isDraining = false
    isClosing = false
    isClosingInTurn = false
    for queue in states.indices { states[queue] = .cancelled }
    handler.ended(self, end)
  }

  // MARK: - Content

  func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {
    guard let channel = opened(channel), channel.content.state == .header || channel.content.state == .formerHeader else {
      return connection.protocolError("a content header out of turn")
    }
    guard let isWhole = channel.content.header(payload, cache: &cache) else {
      return connection.protocolError("a malformed content header")
    }
    if isWhole { hand(channel.content.take()) }
  }

  func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {
    guard let channel = opened(channel), let isWhole = channel.content.body(payload, keeping: maximumBody) else {
      return connection.protocolError("a content body out of turn or too long")
    }
    if isWhole { hand(channel.content.take()) }
  }

  private func hand(_ delivery: consuming Delivery) { if !isClosing { handler.delivered(delivery) } }

  // An alarm of the broker stops only publishing.
  func blocked(reason: String) {}
  func unblocked() {}

  // MARK: - Sending acknowledgements

  func willWrite(at now: MonotonicTime) {
    for channel in channels {
      channel.appendAcknowledgements(to: &connection.output, at: now, isDraining: isDraining)
    }
  }

  var roleDeadline: MonotonicTime { channels.reduce(.distantFuture) { min($0, $1.acknowledgementDeadline) } }

  func roleDeadlineReached(at now: MonotonicTime) { connection.announceOutput() }
}
