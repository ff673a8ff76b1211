import AMQP
import Broker
import Logging
import Wire

/// Publishes a shard's trace on its own connection, so that a failure only loses trace lines.
package final class TraceFeed: PublisherHandler {
  package let recorder: TraceRecorder
  package var onEnded: (() -> Void)?
  private let topology: Topology
  private let settings: TraceSettings
  private let connection: BrokerConnection
  private let time: Turn
  private let log: Log
  private var publisher: Publisher?
  private var isStarted = false
  private var isDeclared = false
  private var isClosing = false
  /// The number of requests in each unconfirmed publication.
  private var unconfirmed: [Int: Int] = [:]
  private var lastTag = 0
  private var failures = 0
  private var hasComplained = false
  private var nextNotice = MonotonicTime(nanoseconds: .min)
  private var noticed = 0

  private static let window = 4
  /// The number of consecutive failed publications after which tracing stops.
  private static let mostFailures = 3
  /// Seconds for the last lines when a worker ends.
  private static let closeTimeout = 2.0

  package init(
    _ settings: TraceSettings, topology: Topology, connection: BrokerConnection, time: Turn, log: Log
  ) {
    self.settings = settings
    self.topology = topology
    self.connection = connection
    self.time = time
    self.log = log
    recorder = TraceRecorder(perSecond: settings.perSecond)
    connection.makeMachine = { [unowned self] settings in
      let publisher = Publisher(settings: settings, window: Self.window, handler: self)
      self.publisher = publisher
      return publisher
    }
  }

  /// There is no connection and none is being opened.
  package var isClosed: Bool { publisher == nil }

  /// To be called once the fleet's queues are declared.
  package func start() {
    guard !isStarted, !isClosing else { return }
    isStarted = true
    connection.start()
  }

  package func reload(_ brokers: [BrokerAddress]) { connection.brokers = brokers }

  /// To be called a few times a second.
  package func flush() {
    noticeOmissions()
    guard isDeclared, let publisher, publisher.canPublish, recorder.isOn, let (body, requests) = recorder.take() else { return }
    lastTag += 1
    unconfirmed[lastTag] = requests
    var properties = BasicProperties()
    properties.contentType = Self.contentType
    properties.deliveryMode = 2
    properties.timestamp = UInt64(max(time.wallClock / 1000, 0))
    publisher.publish(
      exchange: Array(topology.traceExchange.utf8), routingKey: Array(Topology.traceKey.utf8), properties: properties,
      body: body, tag: lastTag)
  }

  private static let contentType = Array("application/x-ndjson".utf8)

  private func noticeOmissions() {
    let untraced = recorder.counters.untraced
    guard recorder.isOn, untraced > noticed, time.now >= nextNotice else { return }
    nextNotice = time.now.advanced(bySeconds: 60)
    log.info(
      "requests were left out of the trace", ["requests": untraced - noticed, "per_second": settings.perSecond])
    noticed = untraced
  }

  /// Publishes the remaining lines, waits at most two seconds for the confirm, and ends.
  package func close() {
    guard !isClosing else { return }
    isClosing = true
    connection.stop()
    guard publisher != nil else { return }
    finish()
    time.schedule(after: Self.closeTimeout) { [weak self] in self?.publisher?.close() }
  }

  private func finish() {
    guard isDeclared || !recorder.isOn else { return }
    flush()
    if unconfirmed.isEmpty { publisher?.close() }
  }

  /// Declares the stream. A user without permission to declare may still publish to a stream that an operator has declared.
  private func declare(_ commands: ArraySlice<Command>, on publisher: Publisher) {
    guard let command = commands.first else {
      isDeclared = true
      if isClosing { finish() }
      return
    }
    perform(command, on: publisher) { [weak self] publisher, refusal in
      guard let self else { return }
      guard case .queueDeclare = command, let refusal, refusal.isFatalConfiguration else {
        if let refusal { refused(command, refusal, Self.permissionAdvice) }
        return declare(commands.dropFirst(), on: publisher)
      }
      askForStream(on: publisher) { [weak self] in
        self?.refused(command, refusal, Self.settingsAdvice)
        self?.declare(commands.dropFirst(), on: publisher)
      }
    }
  }

  private static let settingsAdvice =
    "the stream has other settings: delete its queue; the worker then declares it with the current settings"
  private static let permissionAdvice =
    "the broker has to allow streams, and the user to declare them; trace.keep: \"none\" does without"

  /// Checks whether the existing queue is a stream; if not, tracing stops, because another kind of queue would never drop old
  /// lines. The broker names the first differing argument, and this declaration has only `x-queue-type`.
  private func askForStream(on publisher: Publisher, _ completion: @escaping () -> Void) {
    let plain = Command.queueDeclare(name: topology.traceQueue, arguments: ["x-queue-type": .text("stream")])
    perform(plain, on: publisher) { [weak self] _, refusal in
      if let refusal, "\(refusal)".contains("x-queue-type") { self?.giveUp("\(refusal)") } else { completion() }
    }
  }

  /// - Parameter completion: not called if the connection has changed or tracing has stopped.
  private func perform(
    _ command: Command, on publisher: Publisher, _ completion: @escaping (Publisher, _ refusal: ConnectionEnd?) -> Void
  ) {
    publisher.perform(command) { [weak self, weak publisher] answer in
      guard let self, let publisher, publisher === self.publisher, publisher.isReady, recorder.isOn else { return }
      if case .failure(let reason) = answer { completion(publisher, reason) } else { completion(publisher, nil) }
    }
  }

  private func refused(_ command: Command, _ reason: ConnectionEnd, _ advice: String) {
    guard !hasComplained else { return }
    hasComplained = true
    log.warning("the trace can't be declared", ["what": command.subject, "reason": "\(reason)", "remedy": advice])
  }

  private func giveUp(_ reason: String) {
    guard recorder.isOn else { return }
    recorder.isOn = false
    log.warning("requests are not traced", ["reason": reason])
    connection.stop()
    closeSoon()
  }

  /// Closes the publisher after the present call from it.
  private func closeSoon() { time.schedule(after: 0) { [weak self] in self?.publisher?.close() } }

  // MARK: the broker's answers

  package func ready(_ publisher: Publisher) {
    connection.established(at: time.now)
    isDeclared = false
    declare(topology.traceCommands(settings)[...], on: publisher)
  }

  package func confirmed(_ tag: Int) {
    failures = 0
    recorder.confirmed(unconfirmed.removeValue(forKey: tag) ?? 0)
    if isClosing { finish() }
  }

  package func failed(_ tag: Int, _ failure: PublishFailure) {
    recorder.lost(unconfirmed.removeValue(forKey: tag) ?? 0)
    switch failure {
    case .returned, .channelClosed:
      failures += 1
      if failures >= Self.mostFailures || isClosing { return giveUp("no stream accepts the trace: \(failure)") }
      // The stream was deleted: the next connection declares it again.
      closeSoon()
    case .nacked, .timedOut, .connectionLost, .unencodable: break
    }
    if isClosing { finish() }
  }

  package func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    isDeclared = false
    connection.ended(at: time.now)
    if isClosing || !recorder.isOn { onEnded?() }
  }
}
