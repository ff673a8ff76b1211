import Wire

/// Receives the outcome of each publish, on the thread that drives the machine.
public protocol PublisherHandler: AnyObject {
  /// Publishing may begin. Called again after a channel was reopened.
  func ready(_ publisher: Publisher)
  /// The message was routed, and the broker is responsible for it (quorum queue: a majority has stored it).
  func confirmed(_ tag: Int)
  func failed(_ tag: Int, _ failure: PublishFailure)
  /// The broker raised an alarm and accepts nothing until `unblocked`. Outstanding publishes stay outstanding.
  func blocked(_ publisher: Publisher, reason: String)
  func unblocked(_ publisher: Publisher)
  /// An answer to a message that was published with ``Publisher/replyTo``.
  func replied(_ publisher: Publisher, _ reply: consuming Delivery)
  /// The connection ended. Everything outstanding has failed before. The machine can be opened on a new transport.
  func ended(_ publisher: Publisher, _ reason: ConnectionEnd)
}

extension PublisherHandler {
  public func confirmed(_ tag: Int) {}
  public func blocked(_ publisher: Publisher, reason: String) {}
  public func unblocked(_ publisher: Publisher) {}
  public func replied(_ publisher: Publisher, _ reply: consuming Delivery) {}
}

public enum PublishFailure: Error, Equatable, Sendable {
  /// No queue accepted the message (`mandatory`); code 312. Publish again when the queue exists.
  case returned(code: UInt16)
  /// The queue is full (`overflow: reject-publish`) or the broker failed. Publish again later.
  case nacked
  /// No confirm arrived in time. The outcome is unknown.
  case timedOut
  /// The connection ended before the confirm. The outcome is unknown.
  case connectionLost
  /// The broker closed the channel or connection with an error (missing exchange, invalid property). It is unknown whether this
  /// message was the cause, and whether the broker accepted it.
  case channelClosed(ConnectionEnd)
  /// A name or property exceeds 255 bytes, or the properties exceed a frame. Never sent.
  case unencodable

  /// The failure of outstanding publishes when a connection ends. A single message can cause even a connection error (such as
  /// 541).
  init(_ end: ConnectionEnd) {
    switch end {
    case .confirmTimedOut: self = .timedOut
    case .closedByBroker: self = .channelClosed(end)
    default: self = .connectionLost
    }
  }
}

/// A connection that publishes with confirms, and declares topology on a second channel. It keeps no message after encoding it.
/// The caller keeps each message under its tag, to publish it again if needed.
public final class Publisher: ConnectionRole {
  private static let channel: UInt16 = 1

  let connection: Connection
  private unowned let handler: any PublisherHandler
  public let window: Int
  /// Seconds without any confirm before the connection fails, while a confirm is outstanding and the broker isn't blocked. A
  /// queue without a leader confirms late; confirms of other queues show that the connection works.
  private static let confirmTimeout = 30.0

  private var confirms = ConfirmWindow()
  public private(set) var isReady = false
  public private(set) var isBlocked = false
  private var unencodable: [Int] = []

  private var confirmDeadline = MonotonicTime.distantFuture

  private var commands = CommandQueue()

  /// An answer, or a returned message.
  private var content = ContentAssembly()
  /// The reply code of the returned message in `content`; nil for an answer.
  private var returnCode: UInt16?
  private var cache = PropertyCache()
  /// Nil if no answers are received.
  private let maximumReply: Int?
  private let calls: (exchange: String, queue: String)?

  /// - Parameters:
  ///   - maximumReply: bytes of an answer to keep; nil to receive no answers.
  ///   - calls: a fanout exchange, which the publisher declares, and a queue that ends with the connection. If set, its messages
  ///     are received instead of answers.
  public init(
    settings: ConnectionSettings, window: Int = 1000, maximumReply: Int? = nil,
    calls: (exchange: String, queue: String)? = nil, handler: any PublisherHandler
  ) {
    self.calls = calls
    self.maximumReply = maximumReply
    self.handler = handler
    self.window = window
    connection = Connection(settings: settings)
  }

  /// The `reply_to` for messages whose answer should arrive on this connection.
  public static let replyTo = Array("amq.rabbitmq.reply-to".utf8)

  public var server: BrokerServer? { connection.server }

  public var unconfirmed: Int { confirms.unconfirmed }

  /// When this many bytes wait to be written, no further message is accepted.
  private static let outputMark = 4 << 20

  /// True if the connection is ready and not blocked, and the window has room. A full window gets room with a later confirm.
  public var canPublish: Bool {
    isReady && !isBlocked && confirms.unconfirmed < window && connection.unwritten < Self.outputMark
  }

  // MARK: - Publishing

  /// Encodes a message into the output. `confirmed` or `failed` follows with `tag`, but never during this call.
  /// - Precondition: `isReady`.
  public func publish(
    exchange: [UInt8], routingKey: [UInt8], properties: BasicProperties, body: [UInt8], tag: Int
  ) {
    precondition(isReady, "published on a connection that is not ready")
    connection.announceOutput()
    guard exchange.count <= 255, routingKey.count <= 255, properties.isEncodable else {
      unencodable.append(tag)
      return
    }
    let start = connection.output.count
    OutboundMethod.publish(exchange: exchange, routingKey: routingKey).append(to: &connection.output, channel: Self.channel)
    guard appendHeader(properties, bodySize: body.count, to: &connection.output) else {
      connection.output.removeSubrange(start...)
      unencodable.append(tag)
      return
    }
    appendBody(body, to: &connection.output)
    confirms.published(
      tag: tag, fingerprint: Self.fingerprint(exchange, routingKey, properties, bodySize: UInt64(body.count)))
  }

  private static func fingerprint(
    _ exchange: [UInt8], _ routingKey: [UInt8], _ properties: borrowing BasicProperties, bodySize: UInt64
  ) -> UInt64 {
    var fingerprint = Fingerprint()
    fingerprint.add(exchange)
    fingerprint.add(routingKey)
    fingerprint.add(bodySize)
    if let messageID = properties.messageID { fingerprint.add(messageID) }
    if let correlationID = properties.correlationID { fingerprint.add(correlationID) }
    return fingerprint.value
  }

  private func appendHeader(_ properties: BasicProperties, bodySize: Int, to output: inout [UInt8]) -> Bool {
    let start = output.count
    output.appendFrame(Frame.contentHeader, channel: Self.channel) { output in
      output.appendBigEndian(UInt32(Frame.basicClass) << 16)
      output.appendBigEndian(UInt64(bodySize))
      properties.append(to: &output)
    }
    return output.count - start <= connection.frameMax - min(Self.headerReserve, connection.frameMax / 4)
  }

  /// Bytes of a frame reserved for headers that the broker adds. Other clients may accept only the agreed frame size.
  private static let headerReserve = 4 * 1024

  private func appendBody(_ body: [UInt8], to output: inout [UInt8]) {
    var offset = 0
    while offset < body.count {
      let count = min(connection.frameMax - Frame.overhead, body.count - offset)
      output.appendFrame(Frame.contentBody, channel: Self.channel) { output in
        if count == body.count { output += body } else { output += body[offset..<offset + count] }
      }
      offset += count
    }
  }

  // MARK: - Channels

  var mostChannels: UInt16 { CommandQueue.channel }

  public func close() { connection.close() }

  func connectionOpened() {
    openChannel()
    sendNextCommand()
  }

  private func openChannel() {
    confirms.reset()
    confirmDeadline = .distantFuture
    content = ContentAssembly()
    connection.send(.channelOpen, channel: Self.channel)
    connection.send(.select, channel: Self.channel)
    guard maximumReply != nil else { return }
    guard let calls else {
      return connection.send(.listen(queue: Self.replyTo, consumerTag: "replies"), channel: Self.channel)
    }
    let (exchange, queue) = (calls.exchange, calls.queue)
    let declaration = Command.exchangeDeclare(name: exchange, type: "fanout", arguments: FieldTable())
    connection.send(.command(declaration), channel: Self.channel)
    connection.send(.ownQueueDeclare(name: queue), channel: Self.channel)
    let binding = Command.queueBind(queue: queue, exchange: exchange, routingKey: "", arguments: FieldTable())
    connection.send(.command(binding), channel: Self.channel)
    connection.send(.listen(queue: Array(queue.utf8), consumerTag: "calls"), channel: Self.channel)
  }

  func channelClosed(_ channel: UInt16, _ end: ConnectionEnd) {
    switch channel {
    case Self.channel:
      guard isReady else { return connection.close(because: end) }
      isReady = false
      failOutstanding(.channelClosed(end))
      openChannel()
    case CommandQueue.channel where commands.state == .waiting:
      commands.state = .closed
      commands.removeFirst()?(.failure(end))
      sendNextCommand()
    default: connection.close(because: end)
    }
  }

  func methodReceived(_ method: InboundMethod, channel: UInt16, payload: RawSpan) {
    guard content.state == .none else { return connection.protocolError("a method in the middle of a content") }
    switch channel {
    case Self.channel: confirmReceived(method, payload)
    case CommandQueue.channel: answerReceived(method)
    default: connection.protocolError("a method on channel \(channel)")
    }
  }

  private func confirmReceived(_ method: InboundMethod, _ payload: RawSpan) {
    switch method {
    case .ack(let sequence, let multiple): settle(sequence, multiple: multiple, isAck: true)
    case .nack(let sequence, let multiple): settle(sequence, multiple: multiple, isAck: false)
    case .returned(let code, let exchange, let routingKey):
      returnCode = code
      contentFollows(payload, exchange, routingKey)
    case .channelOpenOK: break
    case .commandOK where calls != nil: break
    case .queueDeclareOK where calls != nil: break
    case .cancel where calls != nil: connection.close(because: .notFound("the queue of calls"))
    case .selectOK:
      guard !isReady else { return connection.protocolError("confirm.select answered twice") }
      if maximumReply == nil { channelReady() }
    case .consumeOK where maximumReply != nil && !isReady: channelReady()
    case .deliver(_, _, let redelivered, let exchange, let routingKey) where maximumReply != nil && isReady:
      returnCode = nil
      content.delivery.redelivered = redelivered
      contentFollows(payload, exchange, routingKey)
    default: connection.protocolError("an unexpected method on a publisher's channel")
    }
  }

  private func channelReady() {
    isReady = true
    connection.becameReady()
    handler.ready(self)
  }

  private func settle(_ sequence: UInt64, multiple: Bool, isAck: Bool) {
    guard isReady, let covered = confirms.covered(by: sequence, multiple: multiple) else {
      return connection.protocolError("a confirm of what was never published")
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
    if isProgress, isReady { watch(at: connection.latest) }
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

  func connectionEnded(_ end: ConnectionEnd) {
    isReady = false
    isBlocked = false
    confirmDeadline = .distantFuture
    failOutstanding(PublishFailure(end))
    confirms.reset()
    commands.state = .closed
    while let completion = commands.removeFirst() { completion(.failure(end)) }
    handler.ended(self, end)
  }

  // MARK: - Answers and returned messages

  private func contentFollows(_ payload: RawSpan, _ exchange: Range<Int>, _ routingKey: Range<Int>) {
    content.delivery.exchange = payload.array(exchange)
    content.delivery.routingKey = payload.array(routingKey)
    content.state = .header
  }

  func contentHeaderReceived(_ payload: RawSpan, channel: UInt16) {
    guard channel == Self.channel, content.state == .header else {
      return connection.protocolError("a content header out of turn")
    }
    guard let isWhole = content.header(payload, cache: &cache) else {
      return connection.protocolError("a malformed content header")
    }
    if isWhole { contentReceived() }
  }

  func contentBodyReceived(_ payload: RawSpan, channel: UInt16) {
    let kept = returnCode == nil ? maximumReply ?? 0 : 0
    guard channel == Self.channel, let isWhole = content.body(payload, keeping: kept) else {
      return connection.protocolError("a content body out of turn or too long")
    }
    if isWhole { contentReceived() }
  }

  private func contentReceived() {
    let message = content.take()
    guard let returnCode else { return handler.replied(self, message) }
    let fingerprint = Self.fingerprint(
      message.exchange, message.routingKey, message.properties, bodySize: message.bodySize)
    guard confirms.returned(fingerprint: fingerprint, code: returnCode) else {
      return connection.protocolError("a return of what was never published")
    }
  }

  // MARK: - Alarms and deadlines

  func blocked(reason: String) {
    isBlocked = true
    confirmDeadline = .distantFuture
    commands.deadline = .distantFuture
    handler.blocked(self, reason: reason)
  }

  func unblocked() {
    guard isBlocked else { return }
    isBlocked = false
    watch(at: connection.latest)
    if commands.isUnanswered { commands.deadline = connection.latest.advanced(bySeconds: CommandQueue.timeout) }
    handler.unblocked(self)
  }

  func willWrite(at now: MonotonicTime) {
    failUnencodable()
    if confirmDeadline == .distantFuture { watch(at: now) }
  }

  private func watch(at now: MonotonicTime) {
    confirmDeadline =
      confirms.unconfirmed == 0 || isBlocked ? .distantFuture : now.advanced(bySeconds: Self.confirmTimeout)
  }

  var roleDeadline: MonotonicTime { min(confirmDeadline, commands.deadline) }

  func roleDeadlineReached(at now: MonotonicTime) {
    if now >= confirmDeadline { connection.fail(.confirmTimedOut) }
    if now >= commands.deadline { connection.fail(.commandTimedOut) }
  }

  // MARK: - Commands

  /// Sends a command after all earlier ones are answered. `completion` is called once, also if the connection ends.
  public func perform(_ command: Command, _ completion: @escaping (Result<CommandAnswer, ConnectionEnd>) -> Void) {
    commands.append(command, completion)
    if connection.isOpen { sendNextCommand() }
  }

  private func sendNextCommand() {
    guard connection.isOpen, let command = commands.first else { return }
    switch commands.state {
    case .closed:
      connection.send(.channelOpen, channel: CommandQueue.channel)
      commands.state = .opening
    case .idle:
      connection.send(.command(command), channel: CommandQueue.channel)
      commands.state = .waiting
    case .opening, .waiting: return
    }
    // During an alarm, the broker reads nothing from a connection that has published.
    if !isBlocked { commands.deadline = connection.latest.advanced(bySeconds: CommandQueue.timeout) }
  }

  private func answerReceived(_ method: InboundMethod) {
    switch (commands.state, method) {
    case (.opening, .channelOpenOK):
      commands.state = .idle
      sendNextCommand()
    case (.waiting, .commandOK): complete(.done)
    case (.waiting, .queueDeclareOK(let messages, let consumers)):
      complete(.queue(messages: Int(messages), consumers: Int(consumers)))
    default: connection.protocolError("an unexpected answer")
    }
  }

  private func complete(_ answer: CommandAnswer) {
    commands.state = .idle
    commands.removeFirst()?(.success(answer))
    sendNextCommand()
  }
}
