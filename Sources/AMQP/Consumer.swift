import Wire

/// Told what a consumer's queues deliver. Called on the thread that drives the machine.
public protocol ConsumerHandler: AnyObject {
  /// All queues are being consumed; again after a channel was reopened.
  func ready(_ consumer: Consumer)
  /// One message, to be acknowledged or rejected by its token; handed over without a copy.
  func delivered(_ delivery: consuming Delivery)
  /// The broker ended the consumption of a queue (deleted, or its leader is lost); `consume(queue:)` tries again.
  func cancelled(queue: Int)
  /// Everything asked for by `cancelConsumers` is cancelled: no delivery follows.
  func consumersCancelled()
  /// The broker closed the channel, which is opened again at once. All earlier tokens are void and redeliveries follow.
  func channelLost(_ reason: ConnectionEnd)
  /// The transport is gone and all tokens are void. The machine may be opened on a new transport.
  func ended(_ consumer: Consumer, _ reason: ConnectionEnd)
}

/// A connection that consumes several queues on one channel, with a prefetch for each, and acknowledges in batches.
public final class Consumer: Connection {
  /// A queue and how many of its messages may be unacknowledged at once.
  public struct Subscription: Sendable {
    public var queue: String
    public var prefetch: UInt16

    public init(queue: String, prefetch: UInt16) {
      self.queue = queue
      self.prefetch = prefetch
    }
  }

  private enum State {
    /// `basic.consume` is out. Then `active`.
    case starting
    /// Then `cancelling` or `cancelled`.
    case active
    /// Our `basic.cancel` is out; deliveries may still come. Then `cancelled`.
    case cancelling
    /// Then `starting`, when asked to.
    case cancelled
  }

  private static let channel: UInt16 = 1
  /// Acknowledgements behind a delivery still in hand wait for it this long, in seconds …
  static let scatteredDelay = 0.02
  /// … unless there are more of them than this.
  static let scatteredLimit = 64

  private unowned let handler: any ConsumerHandler
  private let subscriptions: [Subscription]
  /// Bytes of a body that are kept.
  private let maximumBody: Int

  private var generation: UInt32 = 0
  private var states: [State]
  private var isDraining = false
  /// Whether the channel has worked since it was last opened.
  private var hasBeenReady = false
  private var window = AcknowledgementWindow()
  private var scatteredDeadline = MonotonicTime.distantFuture

  private var content = Content.none
  private var remaining: UInt64 = 0
  private var delivery: Delivery
  private var exchanges = RepeatedBytes()
  private var routingKeys = RepeatedBytes()
  private var cache = PropertyCache()

  private enum Content {
    /// A method may come. Then `header`.
    case none
    /// Then `body`, or `none` for an empty one.
    case header
    /// Then `none`.
    case body
    /// As `header` and `body`, of a delivery that nobody waits for.
    case formerHeader, formerBody
  }

  /// - Parameter maximumBody: bytes of a body that are kept; the rest is counted and dropped as it comes.
  public init(
    settings: ConnectionSettings, queues: [Subscription], maximumBody: Int = 1 << 20, handler: any ConsumerHandler
  ) {
    self.handler = handler
    self.subscriptions = queues
    self.maximumBody = maximumBody
    states = Array(repeating: .cancelled, count: queues.count)
    delivery = Delivery()
    super.init(settings: settings)
  }

  /// Deliveries handed over and neither acknowledged nor rejected.
  public var unacknowledged: Int { window.inHand }

  /// All queues are being consumed.
  public var isReady: Bool { isOpen && states.allSatisfy { if case .active = $0 { true } else { false } } }

  // MARK: - What the handler asks for

  /// Marks a delivery as done; the broker is told with the next output. A token that is void or settled is ignored.
  public func acknowledge(_ token: DeliveryToken) {
    guard isOpen, token.generation == generation, window.acknowledge(token.tag) else { return }
    announceOutput()
  }

  /// Gives a delivery back, or dead-letters it. Every return counts towards the queue's delivery limit.
  public func reject(_ token: DeliveryToken, requeue: Bool) {
    guard isOpen, token.generation == generation, window.reject(token.tag) else { return }
    send(.reject(tag: token.tag, requeue: requeue), channel: Self.channel)
  }

  /// Stops new deliveries and keeps the channel for the acknowledgements of what is in hand.
  public func cancelConsumers() {
    isDraining = true
    guard isOpen else { return reportCancelled() }
    for (queue, state) in states.enumerated() {
      switch state {
      case .active, .starting:
        states[queue] = .cancelling
        send(.cancel(consumerTag: tag(queue)), channel: Self.channel)
      case .cancelling, .cancelled: continue
      }
    }
    reportCancelled()
  }

  /// Consumes a cancelled queue again; if it doesn't exist the connection ends with `.notFound`.
  public func consume(queue: Int) {
    guard isOpen, !isDraining, case .cancelled = states[queue] else { return }
    start(queue)
  }

  private func start(_ queue: Int) {
    states[queue] = .starting
    send(.qos(prefetch: subscriptions[queue].prefetch), channel: Self.channel)
    send(.consume(queue: Array(subscriptions[queue].queue.utf8), consumerTag: tag(queue)), channel: Self.channel)
  }

  private func reportCancelled() {
    let isDone = states.allSatisfy { if case .cancelled = $0 { true } else { false } }
    if isDraining, isDone { handler.consumersCancelled() }
  }

  /// Names a consumer: its queue, and the opening of the channel that it belongs to. RabbitMQ may still write deliveries of a channel
  /// that it has closed, even after it has opened the next one of the same number.
  private func tag(_ queue: Int) -> [UInt8] { Array("\(queue).\(generation)".utf8) }

  private enum Addressee {
    case queue(Int)
    /// A consumer of an earlier opening of the channel.
    case former
    case unknown
  }

  private func addressee(_ tag: Range<Int>, _ payload: RawSpan) -> Addressee {
    var offset = tag.lowerBound
    guard let queue = Self.number(&offset, tag.upperBound, payload), queue < subscriptions.count, offset < tag.upperBound,
      payload.byte(at: offset) == UInt8(ascii: ".")
    else { return .unknown }
    offset += 1
    guard let opening = Self.number(&offset, tag.upperBound, payload), offset == tag.upperBound, opening <= generation else {
      return .unknown
    }
    return opening == generation ? .queue(queue) : .former
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

  // MARK: - Channel

  override func connectionOpened() {
    if isDraining { becameReady() } else { openChannel() }
  }

  private func openChannel() {
    generation &+= 1
    window.reset()
    scatteredDeadline = .distantFuture
    content = .none
    hasBeenReady = false
    send(.channelOpen, channel: Self.channel)
    for queue in subscriptions.indices { start(queue) }
  }

  override func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {
    guard channel == Self.channel else { return protocolError("a close of channel \(channel)") }
    guard hasBeenReady, !isDraining else { return closeConnection(because: end) }
    openChannel()
    handler.channelLost(end)
  }

  override func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {
    guard channel == Self.channel, content == .none else { return protocolError("a method in the middle of a content") }
    switch method {
    case .deliver(let tag, let number, let redelivered, let exchange, let routingKey):
      let addressee = addressee(tag, payload)
      if case .former = addressee {
        content = .formerHeader
        return
      }
      guard case .queue(let queue) = addressee, window.delivered(number) else {
        return protocolError("a delivery of an unknown consumer or out of order")
      }
      delivery.consumer = queue
      delivery.token = DeliveryToken(generation: generation, tag: number)
      delivery.redelivered = redelivered
      delivery.exchange = exchanges.read(exchange, in: payload)
      delivery.routingKey = routingKeys.read(routingKey, in: payload)
      content = .header
    case .channelOpenOK, .qosOK: break
    case .consumeOK(let tag):
      guard let queue = current(tag, payload) else { return }
      guard case .starting = states[queue] else { return }
      states[queue] = .active
      // A queue without a majority may be answered for late: what the others deliver is not given back for that.
      becameReady()
      guard isReady else { return }
      hasBeenReady = true
      handler.ready(self)
    case .cancel(let consumer, let nowait):
      guard let queue = current(consumer, payload) else { return }
      states[queue] = .cancelled
      if !nowait { send(.cancelOK(consumerTag: tag(queue)), channel: Self.channel) }
      handler.cancelled(queue: queue)
      reportCancelled()
    case .cancelOK(let tag):
      guard let queue = current(tag, payload) else { return }
      guard case .cancelling = states[queue] else { return }
      states[queue] = .cancelled
      reportCancelled()
    default: protocolError("an unexpected method on a consumer's channel")
    }
  }

  /// The queue of a consumer of this opening of the channel; nil for a former one's, or after a protocol error.
  private func current(_ tag: Range<Int>, _ payload: RawSpan) -> Int? {
    switch addressee(tag, payload) {
    case .queue(let queue): return queue
    case .former: return nil
    case .unknown:
      protocolError("a method for an unknown consumer")
      return nil
    }
  }

  override func connectionEnded(_ end: ConnectionEnd) {
    generation &+= 1
    window.reset()
    scatteredDeadline = .distantFuture
    content = .none
    delivery.body = []
    isDraining = false
    for queue in states.indices { states[queue] = .cancelled }
    handler.ended(self, end)
  }

  // MARK: - Content

  override func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {
    guard channel == Self.channel, content == .header || content == .formerHeader else {
      return protocolError("a content header out of turn")
    }
    var cursor = WireCursor(0..<payload.byteCount)
    let contentClass = cursor.uint16(in: payload)
    cursor.skip(2)
    remaining = cursor.uint64(in: payload)
    guard contentClass == Frame.basicClass, let properties = BasicProperties(&cursor, in: payload, cache: &cache) else {
      return protocolError("a malformed content header")
    }
    if content == .formerHeader {
      content = remaining == 0 ? .none : .formerBody
      return
    }
    delivery.properties = properties
    delivery.bodySize = remaining
    delivery.body = []
    if remaining == 0 { handOver() } else { content = .body }
  }

  override func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {
    guard channel == Self.channel, content == .body || content == .formerBody, UInt64(payload.byteCount) <= remaining else {
      return protocolError("a content body out of turn or too long")
    }
    remaining -= UInt64(payload.byteCount)
    if content == .formerBody {
      if remaining == 0 { content = .none }
      return
    }
    let kept = min(payload.byteCount, maximumBody - delivery.body.count)
    if delivery.body.isEmpty {
      if remaining > 0 { delivery.body.reserveCapacity(Int(min(delivery.bodySize, UInt64(maximumBody), 1 << 20))) }
      if delivery.body.capacity == 0 {
        delivery.body = payload.array(0..<kept)
      } else {
        payload.append(0..<kept, to: &delivery.body)
      }
    } else if kept > 0 {
      payload.append(0..<kept, to: &delivery.body)
    }
    if remaining == 0 { handOver() }
  }

  private func handOver() {
    content = .none
    var whole = Delivery()
    swap(&whole, &delivery)
    handler.delivered(consume whole)
  }

  // MARK: - Acknowledgements out

  override func willWrite(at now: MonotonicTime) {
    guard window.waiting > 0 else { return }
    if let (tag, multiple) = window.takePrefix() {
      codec.append(.ack(tag: tag, multiple: multiple), channel: Self.channel, to: &output)
    }
    if window.waiting == 0 {
      scatteredDeadline = .distantFuture
    } else if window.waiting > Self.scatteredLimit || now >= scatteredDeadline {
      writeScattered()
    } else if scatteredDeadline == .distantFuture {
      scatteredDeadline = now.advanced(bySeconds: Self.scatteredDelay)
    }
  }

  private func writeScattered() {
    scatteredDeadline = .distantFuture
    window.takeScattered { codec.append(.ack(tag: $0, multiple: false), channel: Self.channel, to: &output) }
  }

  override func willClose() {
    guard window.waiting > 0 else { return }
    if let (tag, multiple) = window.takePrefix() {
      codec.append(.ack(tag: tag, multiple: multiple), channel: Self.channel, to: &output)
    }
    writeScattered()
  }

  override var roleDeadline: MonotonicTime { scatteredDeadline }

  override func roleDeadlineReached(at now: MonotonicTime) { announceOutput() }
}
