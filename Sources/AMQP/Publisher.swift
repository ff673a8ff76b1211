import Wire

/// Told what became of each publish. Called on the thread that drives the machine.
public protocol PublisherHandler: AnyObject {
  /// Publishing may begin; again after a channel was reopened.
  func ready(_ publisher: Publisher)
  /// The broker has taken responsibility for the message (on a quorum queue: a majority holds it), and it was routed.
  func confirmed(_ tag: Int)
  func failed(_ tag: Int, _ failure: PublishFailure)
  /// An alarm on the broker: nothing more is taken until `unblocked`. What is outstanding stays so.
  func blocked(_ publisher: Publisher, reason: String)
  func unblocked(_ publisher: Publisher)
  /// What somebody has answered to a message that was published with ``Publisher/replyTo``.
  func replied(_ publisher: Publisher, _ reply: consuming Delivery)
  /// Follows the failure of everything outstanding. The machine may be opened on a new transport.
  func ended(_ publisher: Publisher, _ reason: ConnectionEnd)
}

extension PublisherHandler {
  public func replied(_ publisher: Publisher, _ reply: consuming Delivery) {}
}

/// Why a publish was not confirmed.
public enum PublishFailure: Error, Equatable, Sendable {
  /// No queue took it (`mandatory`); code 312. Publishing again helps once the queue exists.
  case returned(code: UInt16)
  /// The queue is full (`overflow: reject-publish`) or the broker failed: publish again later.
  case nacked
  /// No confirm in time: whether it was taken is unknown.
  case timedOut
  /// The connection ended before the confirm: whether it was taken is unknown.
  case connectionLost
  /// The broker closed the channel or the connection for a cause (the exchange doesn't exist, a property is not acceptable);
  /// whether this very message was to blame, or was taken, is unknown.
  case channelClosed(ConnectionEnd)
  /// A name or property exceeds 255 bytes, or the properties exceed a frame; never sent.
  case unencodable

  /// What the end of a connection means for what is outstanding. An error of the connection (541, say) can be the work of one
  /// message as a channel's can.
  init(_ end: ConnectionEnd) {
    switch end {
    case .confirmTimedOut: self = .timedOut
    case .closedByBroker: self = .channelClosed(end)
    default: self = .connectionLost
    }
  }
}

/// A connection that publishes with confirms, and declares topology on a second channel.
///
/// No message is kept beyond its encoding: whoever publishes keeps what is needed to try again, under its tag.
public final class Publisher: Connection {
  private static let channel: UInt16 = 1

  private unowned let handler: any PublisherHandler
  /// How many publishes may be outstanding.
  public let window: Int
  /// Seconds that may pass without any confirm, while one is waited for and the broker isn't blocked. A message that a queue doesn't take,
  /// having no leader, is confirmed as late as it has one: others' confirms show that the connection is whole.
  private let confirmTimeout: Double

  private var confirms = ConfirmWindow()
  /// `confirm.select` is answered.
  public private(set) var isReady = false
  /// The broker holds an alarm and takes nothing.
  public private(set) var isBlocked = false
  private var unencodable: [Int] = []

  private var confirmDeadline = MonotonicTime.distantFuture

  private var commands = CommandQueue()

  private var returned = Returned.none
  private var returnCode: UInt16 = 0
  private var returnFingerprint = Fingerprint()
  private var returnRemaining: UInt64 = 0
  private var cache = PropertyCache()
  /// Takes answers; nil where none are asked for.
  private let replies: ConsumerChannel?
  private let maximumReply: Int
  private let calls: Calls?

  /// What everybody hears who listens to an exchange, by a queue that ends with the connection.
  public struct Calls: Sendable {
    /// A fanout exchange; it is declared.
    public var exchange: String
    public var queue: String

    public init(exchange: String, queue: String) {
      self.exchange = exchange
      self.queue = queue
    }
  }

  private enum Returned {
    /// Then `header`.
    case none
    /// Then `body`, or `none` for an empty one.
    case header
    /// Then `none`.
    case body
  }

  /// - Parameters:
  ///   - maximumReply: bytes of an answer that are kept; nil where no answers are taken.
  ///   - calls: taken in the place of answers.
  public init(
    settings: ConnectionSettings, window: Int = 1000, confirmTimeout: Double = 30, maximumReply: Int? = nil,
    calls: Calls? = nil, handler: any PublisherHandler
  ) {
    self.calls = calls
    replies = maximumReply.map { _ in ConsumerChannel(Self.channel) }
    self.maximumReply = maximumReply ?? 0
    self.handler = handler
    self.window = window
    self.confirmTimeout = confirmTimeout
    super.init(settings: settings)
  }

  /// The `reply_to` of a message whose answer is to come back on this connection.
  public static let replyTo = Array("amq.rabbitmq.reply-to".utf8)

  /// Publishes without a confirm.
  public var unconfirmed: Int { confirms.unconfirmed }

  /// Bytes that may wait to be written, less one message.
  private static let outputMark = 4 << 20

  /// Ready, not blocked, and the window has room. Where it hasn't, a confirm will follow.
  public var canPublish: Bool {
    isReady && !isBlocked && confirms.unconfirmed < window && unwritten < Self.outputMark
  }

  // MARK: - Publishing

  /// Encodes a message into the output; `confirmed` or `failed` follows with `tag`, never during this call.
  ///
  /// - Precondition: `isReady`.
  public func publish(
    exchange: [UInt8], routingKey: [UInt8], properties: BasicProperties, body: [UInt8], tag: Int
  ) {
    precondition(isReady, "published on a connection that is not ready")
    announceOutput()
    guard exchange.count <= 255, routingKey.count <= 255, properties.isEncodable else {
      unencodable.append(tag)
      return
    }
    let start = output.count
    codec.appendPublish(
      exchange: exchange, routingKey: routingKey, channel: Self.channel, to: &output)
    guard appendHeader(properties, bodySize: body.count) else {
      output.removeSubrange(start...)
      unencodable.append(tag)
      return
    }
    appendBody(body)
    var fingerprint = Fingerprint()
    fingerprint.add(exchange)
    fingerprint.add(routingKey)
    Self.add(properties, bodySize: UInt64(body.count), to: &fingerprint)
    confirms.published(tag: tag, fingerprint: fingerprint.value)
  }

  private static func add(_ properties: BasicProperties, bodySize: UInt64, to fingerprint: inout Fingerprint) {
    fingerprint.add(bodySize)
    if let messageID = properties.messageID { fingerprint.add(messageID) }
    if let correlationID = properties.correlationID { fingerprint.add(correlationID) }
  }

  private func appendHeader(_ properties: BasicProperties, bodySize: Int) -> Bool {
    output.append(Frame.contentHeader)
    output.appendBigEndian(Self.channel)
    let sizeAt = output.count
    output.appendBigEndian(UInt32(0))
    output.appendBigEndian(UInt32(Frame.basicClass) << 16)
    output.appendBigEndian(UInt64(bodySize))
    properties.append(to: &output)
    let size = output.count - sizeAt - 4
    output.setBigEndian(UInt32(size), at: sizeAt)
    output.append(Frame.end)
    return size <= frameMax - Frame.overhead - min(Self.headerReserve, frameMax / 4)
  }

  /// Bytes of a frame that stay free for headers that the broker adds: other clients may take no larger frame than was agreed on.
  private static let headerReserve = 4 * 1024

  private func appendBody(_ body: [UInt8]) {
    let limit = frameMax - Frame.overhead
    var offset = 0
    while offset < body.count {
      let count = min(limit, body.count - offset)
      output.append(Frame.contentBody)
      output.appendBigEndian(Self.channel)
      output.appendBigEndian(UInt32(count))
      if count == body.count {
        output.append(contentsOf: body)
      } else {
        output.append(contentsOf: body[offset..<offset + count])
      }
      output.append(Frame.end)
      offset += count
    }
  }

  // MARK: - Channels

  override func connectionOpened() {
    openChannel()
    sendNextCommand()
  }

  private func openChannel() {
    confirms.reset()
    confirmDeadline = .distantFuture
    returned = .none
    send(.channelOpen, channel: Self.channel)
    send(.select, channel: Self.channel)
    guard let replies else { return }
    replies.reset()
    guard let calls else {
      return send(.listen(queue: Self.replyTo, consumerTag: Array("replies".utf8)), channel: Self.channel)
    }
    let (exchange, queue) = (Array(calls.exchange.utf8), Array(calls.queue.utf8))
    send(.exchangeDeclare(name: exchange, type: Array("fanout".utf8), arguments: FieldTable()), channel: Self.channel)
    send(.ownQueueDeclare(name: queue), channel: Self.channel)
    send(.queueBind(queue: queue, exchange: exchange, routingKey: [], arguments: FieldTable()), channel: Self.channel)
    send(.listen(queue: queue, consumerTag: Array("calls".utf8)), channel: Self.channel)
  }

  override func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {
    switch channel {
    case Self.channel:
      guard isReady else { return closeConnection(because: end) }
      isReady = false
      failOutstanding(.channelClosed(end))
      openChannel()
    case CommandQueue.channel where commands.state == .waiting:
      commands.state = .closed
      commands.deadline = .distantFuture
      commands.removeFirst()?(.failure(end))
      sendNextCommand()
    default: closeConnection(because: end)
    }
  }

  override func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {
    guard returned == .none, replies == nil || replies?.content == ConsumerChannel.Content.none else {
      return protocolError("a method in the middle of a content")
    }
    switch channel {
    case Self.channel: confirmReceived(method, payload)
    case CommandQueue.channel: answerReceived(method)
    default: protocolError("a method on channel \(channel)")
    }
  }

  private func confirmReceived(_ method: InboundMethod, _ payload: RawSpan) {
    switch method {
    case .ack(let sequence, let multiple): settle(sequence, multiple: multiple, isAck: true)
    case .nack(let sequence, let multiple): settle(sequence, multiple: multiple, isAck: false)
    case .returned(let code, let exchange, let routingKey):
      returned = .header
      returnCode = code
      returnFingerprint = Fingerprint()
      returnFingerprint.add(payload, exchange)
      returnFingerprint.add(payload, routingKey)
    case .channelOpenOK: break
    case .exchangeDeclareOK where calls != nil: break
    case .queueDeclareOK where calls != nil: break
    case .queueBindOK where calls != nil: break
    case .cancel where calls != nil: closeConnection(because: .notFound("the queue of calls"))
    case .selectOK:
      guard !isReady else { return protocolError("confirm.select answered twice") }
      if replies == nil { channelReady() }
    case .consumeOK where replies != nil && !isReady: channelReady()
    case .deliver(_, _, let redelivered, let exchange, let routingKey) where replies != nil && isReady:
      replies?.delivery.redelivered = redelivered
      replies?.delivery.exchange = payload.array(exchange)
      replies?.delivery.routingKey = payload.array(routingKey)
      replies?.content = .header
    default: protocolError("an unexpected method on a publisher's channel")
    }
  }

  private func channelReady() {
    isReady = true
    becameReady()
    handler.ready(self)
  }

  private func settle(_ sequence: UInt64, multiple: Bool, isAck: Bool) {
    guard isReady, let covered = confirms.covered(by: sequence, multiple: multiple) else {
      return protocolError("a confirm of what was never published")
    }
    var isProgress = false
    for sequence in covered {
      guard let slot = confirms.settle(sequence) else { continue }
      isProgress = true
      if slot.returnCode != 0 {
        handler.failed(slot.tag, .returned(code: slot.returnCode))
      } else if isAck {
        handler.confirmed(slot.tag)
      } else {
        handler.failed(slot.tag, .nacked)
      }
    }
    if isProgress, isReady { watch(at: latest) }
  }

  private func failOutstanding(_ failure: PublishFailure) {
    for sequence in confirms.base..<confirms.next {
      if let slot = confirms.settle(sequence) {
        handler.failed(slot.tag, slot.returnCode != 0 ? .returned(code: slot.returnCode) : failure)
      }
    }
    failUnencodable()
  }

  private func failUnencodable() {
    guard !unencodable.isEmpty else { return }
    let tags = unencodable
    unencodable = []
    for tag in tags { handler.failed(tag, .unencodable) }
  }

  override func connectionEnded(_ end: ConnectionEnd) {
    isReady = false
    isBlocked = false
    confirmDeadline = .distantFuture
    failOutstanding(PublishFailure(end))
    confirms.reset()
    commands.state = .closed
    commands.deadline = .distantFuture
    while let completion = commands.removeFirst() { completion(.failure(end)) }
    handler.ended(self, end)
  }

  // MARK: - Returned messages

  override func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {
    if let replies, channel == Self.channel, replies.content == .header {
      guard let isWhole = replies.header(payload, cache: &cache) else { return protocolError("a malformed content header") }
      if isWhole { handler.replied(self, replies.take()) }
      return
    }
    guard channel == Self.channel, returned == .header else { return protocolError("a content header out of turn") }
    var cursor = WireCursor(0..<payload.byteCount)
    let contentClass = cursor.uint16(in: payload)
    cursor.skip(2)
    returnRemaining = cursor.uint64(in: payload)
    guard contentClass == Frame.basicClass, let properties = BasicProperties(&cursor, in: payload, cache: &cache) else {
      return protocolError("a malformed content header")
    }
    Self.add(properties, bodySize: returnRemaining, to: &returnFingerprint)
    if returnRemaining == 0 { finishReturn() } else { returned = .body }
  }

  override func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {
    if let replies, channel == Self.channel, replies.content == .body {
      guard let isWhole = replies.body(payload, keeping: maximumReply) else {
        return protocolError("a content body out of turn or too long")
      }
      if isWhole { handler.replied(self, replies.take()) }
      return
    }
    guard channel == Self.channel, returned == .body, UInt64(payload.byteCount) <= returnRemaining else {
      return protocolError("a content body out of turn or too long")
    }
    returnRemaining -= UInt64(payload.byteCount)
    if returnRemaining == 0 { finishReturn() }
  }

  private func finishReturn() {
    returned = .none
    guard confirms.returned(fingerprint: returnFingerprint.value, code: returnCode) else {
      return protocolError("a return of what was never published")
    }
  }

  // MARK: - Alarms and deadlines

  override func blocked(reason: String) {
    isBlocked = true
    confirmDeadline = .distantFuture
    commands.deadline = .distantFuture
    handler.blocked(self, reason: reason)
  }

  override func unblocked() {
    guard isBlocked else { return }
    isBlocked = false
    watch(at: latest)
    if commands.isUnanswered { commands.deadline = latest.advanced(bySeconds: CommandQueue.timeout) }
    handler.unblocked(self)
  }

  override func willWrite(at now: MonotonicTime) {
    failUnencodable()
    if confirmDeadline == .distantFuture { watch(at: now) }
  }

  private func watch(at now: MonotonicTime) {
    confirmDeadline =
      confirms.unconfirmed == 0 || isBlocked ? .distantFuture : now.advanced(bySeconds: confirmTimeout)
  }

  override var roleDeadline: MonotonicTime { min(confirmDeadline, commands.deadline) }

  override func roleDeadlineReached(at now: MonotonicTime) {
    if now >= confirmDeadline { fail(.confirmTimedOut) }
    if now >= commands.deadline { fail(.commandTimedOut) }
  }

  // MARK: - Commands

  /// Sends a command once those before it are answered; `completion` is called once, also when the connection ends.
  public func perform(_ command: Command, _ completion: @escaping (Result<CommandAnswer, ConnectionEnd>) -> Void) {
    commands.append(command, completion)
    if isOpen { sendNextCommand() }
  }

  private func sendNextCommand() {
    guard isOpen, let command = commands.first else { return }
    switch commands.state {
    case .closed:
      send(.channelOpen, channel: CommandQueue.channel)
      commands.state = .opening
    case .idle:
      send(command.method, channel: CommandQueue.channel)
      commands.state = .waiting
    case .opening, .waiting: return
    }
    // A broker under an alarm reads nothing of what a connection says that has published.
    if !isBlocked { commands.deadline = latest.advanced(bySeconds: CommandQueue.timeout) }
  }

  private func answerReceived(_ method: InboundMethod) {
    switch (commands.state, method) {
    case (.opening, .channelOpenOK):
      commands.state = .idle
      commands.deadline = .distantFuture
      sendNextCommand()
    case (.waiting, .exchangeDeclareOK), (.waiting, .queueBindOK): complete(.done)
    case (.waiting, .queueDeclareOK(let messages, let consumers)):
      complete(.queue(messages: Int(messages), consumers: Int(consumers)))
    default: protocolError("an answer nobody waits for")
    }
  }

  private func complete(_ answer: CommandAnswer) {
    commands.state = .idle
    commands.deadline = .distantFuture
    commands.removeFirst()?(.success(answer))
    sendNextCommand()
  }
}
