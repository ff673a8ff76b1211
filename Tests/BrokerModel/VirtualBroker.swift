import Wire

/// RabbitMQ as its clients see it, in memory and in virtual time: exchanges, quorum queues, and a machine for each connection.
///
/// A value of the calls made to it: no clock, no randomness, nothing that depends on hashing, so that the same calls have the same
/// consequences. Whoever owns it drives the machines that `accept` makes as any other, and calls `deadlineReached` when `deadline` has
/// come. Confined to one thread; the machines must not outlive it. It follows RabbitMQ 3.10 (rabbit_fifo, rabbit_fifo_dlx_worker,
/// rabbit_channel), and Tests/AMQPTests holds it to a real one.
public final class VirtualBroker {
  public var settings: BrokerSettings
  /// Told of everything that happens to messages, as it happens; must not call back.
  public var observer: ((BrokerEvent, MonotonicTime) -> Void)?
  /// How a publication is answered; decided as it comes.
  public var confirmation: (Message, Client) -> Confirmation = { _, _ in .ack(after: 0) }
  /// Whether a message outlives a crash that is neither confirmed nor was ever delivered.
  public var survivesCrash: (Message) -> Bool = { _ in false }

  public private(set) var isRunning = true
  /// It says nothing and reads nothing, and no time passes for it.
  public private(set) var isFrozen = false
  /// What it tells the publishers that it blocks: it is out of memory or disk.
  public private(set) var alarm: String?

  var exchanges: [String: Exchange] = [:]
  var queues: [String: Queue] = [:]
  /// In the order in which they were accepted.
  private var connections: [ServerConnection] = []
  /// Accepted so far: the number of the newest.
  public private(set) var connectionCount = 0
  private var publisherCount = 0
  private var publicationCount = 0
  private var nameCount = 0
  private var agenda = Agenda<Due>()
  /// Queues that may have something to do.
  var touched = Ring<Queue>()
  /// Kept, and not confirmed yet.
  var unconfirmed: Set<Int> = []
  /// Ends of transports that nobody has noticed yet.
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

  /// The machine for a new connection; nil while the broker is down, as it is then refused.
  public func accept() -> (any Machine)? {
    guard isRunning else { return nil }
    connectionCount += 1
    let connection = ServerConnection(number: connectionCount, broker: self)
    connections.append(connection)
    return connection
  }

  /// Closes connections as an operator does (320).
  public func closeConnections(
    reason: String = "closed by an operator", at now: MonotonicTime, where isMeant: (Client) -> Bool = { _ in true }
  ) {
    guard isAwake else { return }
    for connection in connections where isMeant(connection.client) { connection.close(.connectionForced(reason), at: now) }
    run(at: now)
  }

  /// Closes all open channels of connections with an error of the broker's own making; 406 unless another code is given.
  public func closeChannels(
    code: UInt16 = 406, reason: String = "a fault", at now: MonotonicTime, where isMeant: (Client) -> Bool = { _ in true }
  ) {
    guard isAwake else { return }
    for connection in connections where isMeant(connection.client) { connection.closeChannels(.of(code, reason), at: now) }
    run(at: now)
  }

  /// The clients that are connected, the oldest first.
  public var clients: [Client] { connections.filter { $0.phase == .open }.map(\.client) }

  func forget(_ connection: ServerConnection) { connections.removeAll { $0 === connection } }

  // MARK: - Faults

  /// The node is gone, as after a kill -9: what was confirmed stays, what clients had in hand comes back when it starts again.
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
  }

  public func start(at now: MonotonicTime) {
    guard !isRunning else { return }
    isRunning = true
    for queue in sortedQueues { touch(queue) }
    run(at: now)
  }

  /// The node hangs: its connections stay, and are refused no more than accepted by anybody who reads.
  public func freeze() {
    guard isAwake else { return }
    isFrozen = true
    for connection in connections { connection.pauseOrResume() }
  }

  /// It goes on where it stopped, and notices what has become of its connections meanwhile.
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

  /// From now on connections that publish are not read from; the reason is RabbitMQ's words, such as "low on memory".
  public func raiseAlarm(_ reason: String = "low on memory") { alarm = reason }

  public func clearAlarm(at now: MonotonicTime) {
    alarm = nil
    guard isAwake else { return }
    for connection in connections { connection.alarmCleared(at: now) }
    run(at: now)
  }

  /// As where a queue's leader lost touch with the nodes that its consumers are connected to: what clients have in hand of quorum queues is
  /// delivered again, there or elsewhere. Their channels stay, and an acknowledgement of the first delivery settles nothing.
  public func deliverAgain(at now: MonotonicTime) {
    guard isAwake else { return }
    for queue in sortedQueues where queue.arguments.kind == .quorum {
      for consumer in queue.consumers { giveBack(queue.takeBack(from: consumer), to: queue, isEndOfConsumer: true, at: now) }
      touch(queue)
    }
    run(at: now)
  }

  // MARK: - Time

  /// When `deadlineReached` is wanted; the connections have deadlines of their own.
  public var deadline: MonotonicTime { isAwake ? agenda.deadline : .distantFuture }

  public func deadlineReached(at now: MonotonicTime) {
    if isAwake { advance(to: now) }
  }

  private var isAwake: Bool { isRunning && !isFrozen }

  /// Carries out what a connection's machine was called for, after what was due before.
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

  /// A channel is looked at in regular intervals from its opening on.
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

  /// Part of a name that the broker makes.
  func nextName() -> Int {
    nameCount += 1
    return nameCount
  }

  func note(_ event: BrokerEvent, at now: MonotonicTime) { observer?(event, now) }

  /// Where the order of queues can be seen, it is that of their names.
  var sortedQueues: [Queue] { queues.values.sorted { $0.name < $1.name } }
}
