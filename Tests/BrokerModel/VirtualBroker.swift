import Wire

/// RabbitMQ as its clients see it, in memory and in virtual time: exchanges, quorum queues, and a machine for each connection.
///
/// Deterministic: it has no clock and no randomness and doesn't depend on hashing, so the same calls have the same effects. The
/// owner drives the machines of `accept` and calls `deadlineReached` at `deadline`. Confined to one thread. The machines must
/// not outlive it. It follows RabbitMQ 3.10 (rabbit_fifo, rabbit_fifo_dlx_worker, rabbit_channel); Tests/AMQPTests compares it
/// with a real one.
public final class VirtualBroker {
  public var settings: BrokerSettings
  /// Gets all events of messages as they happen. It must not call back.
  public var observer: ((BrokerEvent, MonotonicTime) -> Void)?
  /// Decides the answer to a publication when it arrives.
  public var confirmation: (Message, Client) -> Confirmation = { _, _ in .ack(after: 0) }
  /// Returns true if a message survives a crash although it is neither confirmed nor was delivered.
  public var survivesCrash: (Message) -> Bool = { _ in false }

  public private(set) var isRunning = true
  /// True while the broker reads and writes nothing and its time stands still.
  public private(set) var isFrozen = false
  /// The reason for blocked publishers: the node is out of memory or disk space.
  public private(set) var alarm: String?

  var exchanges: [String: Exchange] = [:]
  var queues: [String: Queue] = [:]
  private var connections: [ServerConnection] = []
  public private(set) var connectionCount = 0
  private var publisherCount = 0
  private var publicationCount = 0
  private var nameCount = 0
  private var agenda = Agenda<Due>()
  /// Queues to run.
  var touched = Ring<Queue>()
  /// Stored messages without a confirm.
  var unconfirmed: Set<Int> = []
  /// Ends of transports that a frozen broker hasn't processed yet.
  private var unnoticedEnds: [(MonotonicTime) -> Void] = []

  enum Due {
    case confirm(ServerChannel, sequence: UInt64, isAck: Bool, Message, Client)
    case expiry(Queue)
    case timeout(ServerChannel)
    case deadLetters(Queue)
  }

  public init(settings: BrokerSettings = BrokerSettings()) {
    self.settings = settings
    addStandardExchanges()
  }

  // MARK: - Connections

  /// The machine for a new connection; nil while the broker is down and refuses connections.
  public func accept() -> (any Machine)? {
    guard isRunning else { return nil }
    connectionCount += 1
    let connection = ServerConnection(number: connectionCount, broker: self)
    connections.append(connection)
    return connection
  }

  /// Closes connections like an operator (code 320).
  public func closeConnections(
    reason: String = "closed by an operator", at now: MonotonicTime, where isMeant: (Client) -> Bool = { _ in true }
  ) {
    guard isAwake else { return }
    for connection in connections where isMeant(connection.client) { connection.close(.connectionForced(reason), at: now) }
    run(at: now)
  }

  /// Closes all open channels of connections with a broker's error; 406 by default.
  public func closeChannels(
    code: UInt16 = 406, reason: String = "a fault", at now: MonotonicTime, where isMeant: (Client) -> Bool = { _ in true }
  ) {
    guard isAwake else { return }
    for connection in connections where isMeant(connection.client) { connection.closeChannels(.of(code, reason), at: now) }
    run(at: now)
  }

  /// The connected clients, the oldest first.
  public var clients: [Client] { connections.filter { $0.phase == .open }.map(\.client) }

  func forget(_ connection: ServerConnection) { connections.removeAll { $0 === connection } }

  // MARK: - Faults

  /// The node dies, as after a kill -9. Confirmed messages stay; unacknowledged ones are delivered again after the start.
  public func crash(at now: MonotonicTime) {
    guard isRunning else { return }
    isFrozen = false
    isRunning = false
    unnoticedEnds = []
    for connection in connections { connection.drop(at: now) }
    connections = []
    agenda.removeAll()
    loseUnconfirmed(at: now)
    unconfirmed = []
    for exchange in exchanges.values { exchange.brokerRestarted() }
  }

  public func start(at now: MonotonicTime) {
    guard !isRunning else { return }
    isRunning = true
    for queue in sortedQueues { touch(queue) }
    run(at: now)
  }

  /// The node hangs. Its connections stay open. New ones are accepted by the system, but the node doesn't read from them.
  public func freeze() {
    guard isAwake else { return }
    isFrozen = true
    for connection in connections { connection.pauseOrResume() }
  }

  /// Continues after a freeze and processes the ends of connections since then.
  public func resume(at now: MonotonicTime) {
    guard isFrozen else { return }
    isFrozen = false
    for connection in connections { connection.resumed(at: now) }
    let ends = unnoticedEnds
    unnoticedEnds = []
    for end in ends { end(now) }
    if alarm == nil { for connection in connections { connection.alarmCleared(at: now) } }
    advance(to: now)
  }

  /// Blocks publishing connections from now on. The reason is RabbitMQ's text, such as "low on memory".
  public func raiseAlarm(_ reason: String = "low on memory") { alarm = reason }

  public func clearAlarm(at now: MonotonicTime) {
    alarm = nil
    guard isAwake else { return }
    for connection in connections { connection.alarmCleared(at: now) }
    run(at: now)
  }

  /// Simulates a queue leader that loses contact with its consumers' nodes. Unacknowledged messages of quorum queues are
  /// delivered again, to the same or other consumers. Their channels stay open, and acknowledgements of the first delivery have
  /// no effect.
  public func deliverAgain(at now: MonotonicTime) {
    guard isAwake else { return }
    for queue in sortedQueues where queue.arguments.kind == .quorum {
      for consumer in queue.consumers { giveBack(queue.takeBack(from: consumer), to: queue, isEndOfConsumer: true, at: now) }
      touch(queue)
    }
    run(at: now)
  }

  // MARK: - Time

  /// The time at which `deadlineReached` must be called. The connections have separate deadlines.
  public var deadline: MonotonicTime { isAwake ? agenda.deadline : .distantFuture }

  public func deadlineReached(at now: MonotonicTime) {
    if isAwake { advance(to: now) }
  }

  private var isAwake: Bool { isRunning && !isFrozen }

  /// Runs everything due before, then the work of a connection's machine.
  func perform(at now: MonotonicTime, _ body: @escaping (MonotonicTime) -> Void) {
    guard !isFrozen else { return unnoticedEnds.append(body) }
    if isRunning { advance(to: now) }
    body(now)
    run(at: now)
  }

  private func advance(to now: MonotonicTime) {
    while let due = agenda.take(dueAt: now) {
      switch due {
      case .confirm(let channel, let sequence, let isAck, let message, let client):
        finishConfirm(channel, sequence, isAck: isAck, message, client, at: now)
      case .expiry(let queue):
        queue.armedExpiry = .distantFuture
        touch(queue)
      case .timeout(let channel):
        channel.isTimeoutArmed = false
        channel.checkTimeout(at: now)
      case .deadLetters(let queue): retryDeadLetters(of: queue, at: now)
      }
    }
    run(at: now)
  }

  func schedule(_ due: Due, at time: MonotonicTime) { agenda.add(due, at: time) }

  /// A channel is checked at regular intervals after its opening.
  func watchTimeout(of channel: ServerChannel) {
    guard !channel.isTimeoutArmed, let oldest = channel.unacknowledged.first else { return }
    let due = oldest.deliveredAt.advanced(bySeconds: settings.consumerTimeout)
    guard due < .distantFuture else { return }
    let interval = max(0.001, settings.consumerTimeoutCheck)
    let checks = (due.seconds(since: channel.openedAt) / interval).rounded(.down) + 1
    channel.isTimeoutArmed = true
    schedule(.timeout(channel), at: channel.openedAt.advanced(bySeconds: checks * interval))
  }

  // MARK: - Numbers

  func nextPublisher() -> Int {
    publisherCount += 1
    return publisherCount
  }

  func nextPublication() -> Int {
    publicationCount += 1
    return publicationCount
  }

  func nextName() -> Int {
    nameCount += 1
    return nameCount
  }

  func note(_ event: BrokerEvent, at now: MonotonicTime) { observer?(event, now) }

  /// Sorted by name, wherever the order can be observed.
  var sortedQueues: [Queue] { queues.values.sorted { $0.name < $1.name } }
}
