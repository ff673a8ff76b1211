import AMQP
import Broker
import Logging
import Providers
import PushCore
import Reactor
import Settings
import Wire

/// A webhook's settings with the contents of its files. A reload replaces it.
struct WebhookReceiver {
  let webhook: WebhookConfiguration
  let secrets: [[UInt8]]
  let target: DialTarget

  init(_ webhook: WebhookConfiguration, app: String) throws(ConfigurationError) {
    let setting = webhook.setting(of: app)
    self.webhook = webhook
    secrets = try webhook.loadSecrets(setting)
    target = try webhook.target(setting, timeout: WebhookSender.timeout)
  }
}

/// Posts the events of one webhook's queue. An event is acknowledged after the receiver has accepted its batch with a 2xx status.
/// Confined to the loop's thread.
final class WebhookSender {
  /// Bytes of an event. A longer one is cut, and then sent as text.
  static let longestEvent = 256 << 10
  /// Seconds that an event waits for others.
  private static let gathering = 0.5
  /// Seconds.
  static let timeout = 15.0
  private static let longestAnswer = 64 << 10
  /// Seconds after which events go back to their queue: the broker closes a channel that holds deliveries for long.
  private static let longestHold = 60.0
  private static let longestPause = 3_600.0

  /// `<app>/<name>`.
  let name: String
  private(set) var figures = WebhookFigures()
  private var receiver: WebhookReceiver
  private let queue: String
  private unowned let service: WebhookService
  private let loop: EventLoop
  private let log: Log
  private var connection: BrokerConnection?
  private var consumer: Consumer?
  private var waiting = GatheredEvents()
  private var batch: WebhookBatch?
  private var call: (post: HTTPFetch, transport: any Transport)?
  private var backoff = Backoff(base: 1, cap: longestPause)
  private var failingSince: Int64?
  /// False while an operator has paused the webhook.
  private var isWanted = false
  /// The rests are numbered, so that the end of an earlier one ends no later one.
  private var rest = (isOn: false, number: 0)
  /// Whether the log says that the broker is connected; nil before the first attempt.
  private var isConnected: Bool?
  /// The log says that the queue is missing.
  private var isMissing = false
  private var isStopping = false
  /// True until the connection has ended.
  private var isClosing = false

  init(name: String, _ receiver: WebhookReceiver, queue: String, service: WebhookService) {
    self.name = name
    self.receiver = receiver
    self.queue = queue
    self.service = service
    (loop, log) = (service.loop, service.log)
  }

  var isIdle: Bool { call == nil && connection == nil }
  var isPaused: Bool { !isWanted }
  /// False while the queue has to be consumed, but isn't.
  var isReady: Bool { !isWanted || rest.isOn || consumer?.isReady == true }
  /// Seconds.
  var failingSeconds: Int { isWanted ? failingSince.map { max(0, Int((loop.wallClock - $0) / 1_000)) } ?? 0 : 0 }

  func want(_ isWanted: Bool) {
    guard isWanted != self.isWanted, !isStopping else { return }
    self.isWanted = isWanted
    log.info(isWanted ? "a webhook is served" : "a webhook is paused", ["webhook": name])
    failingSince = nil
    // A resumed webhook is called at once.
    rest = (false, rest.number + 1)
    if isWanted { open() } else if call == nil { close() }
  }

  /// Uses other settings from the next call on. A receiver that fails is called at once.
  func reload(_ receiver: WebhookReceiver) {
    if !Set(receiver.webhook.events).isSubset(of: self.receiver.webhook.events) {
      log.warning("a webhook has new kinds of events; `pushfleet topology` binds its queue to them", ["webhook": name])
    }
    self.receiver = receiver
    backoff.reset()
    if rest.isOn { endRest() }
  }

  /// The new addresses apply to the next connection.
  func reload(_ brokers: [BrokerAddress]) { connection?.brokers = brokers }

  /// Waits for the receiver's answer, then leaves.
  func stop() {
    isStopping = true
    if call == nil { close() }
  }

  // MARK: the queue

  private func open() {
    guard connection == nil, isWanted, !rest.isOn, !isStopping else { return }
    let connection = BrokerConnection(loop: loop, brokers: service.brokers, name: "pushfleet webhooks, \(name)")
    connection.makeMachine = { [unowned self] settings in
      let consumer = Consumer(
        settings: settings, queues: [.init(queue: queue, prefetch: UInt16(GatheredEvents.most))],
        maximumBody: Self.longestEvent, handler: self)
      self.consumer = consumer
      return consumer
    }
    self.connection = connection
    connection.start()
  }

  /// Gives the events in hand back to the queue.
  private func close() {
    forget()
    guard let connection, !isClosing else { return }
    connection.stop()
    isClosing = consumer != nil
    if let consumer { consumer.close() } else { self.connection = nil }
  }

  private func forget() {
    figures.returned += waiting.count + (batch?.events.count ?? 0)
    waiting = GatheredEvents()
    batch = nil
  }

  // MARK: calls

  private func send() {
    guard call == nil, !rest.isOn, !isStopping, isWanted else { return }
    if batch == nil {
      guard !waiting.isEmpty else { return }
      batch = WebhookBatch(waiting.take(), now: loop.wallClock)
    }
    guard let batch else { return }
    let address = receiver.webhook.address
    var request = HTTPFetch.Request(
      method: "POST", host: address.authority, path: address.path.isEmpty ? "/" : address.path, timeout: Self.timeout,
      longestAnswer: Self.longestAnswer)
    request.headers = batch.headers(receiver.secrets, now: loop.wallClock / 1_000)
    request.body = batch.body
    let post = HTTPFetch(request) { [weak self] in self?.answered($0) }
    call = (post, loop.dial(post, to: receiver.target))
  }

  private func answered(_ answer: HTTPFetch.Answer) {
    let asked = call?.post.retryAfter
    call = nil
    if case .answered(200..<300, _) = answer { figures.accepted += 1 } else { figures.failed += 1 }
    switch answer {
    case .answered(200..<300, _): accepted()
    case .answered(410, _):
      log.warning("a webhook's receiver wants no more events (410): it is paused", ["webhook": name])
      service.noteGone(name)
      want(false)
    case .answered(413, _) where batch.map { waiting.makeSmaller($0) } == true:
      log.warning("a call was too large for a webhook's receiver (413): it gets smaller ones", ["webhook": name])
      batch = nil
      send()
    case .answered(let status, _): failed("the receiver answers \(status)", asked)
    case .failed(let reason): failed(reason, nil)
    }
    if isStopping || !isWanted { close() }
  }

  private func accepted() {
    if let failingSince {
      log.info(
        "a webhook's receiver accepts events again", ["webhook": name, "seconds": Int((loop.wallClock - failingSince) / 1_000)])
    }
    failingSince = nil
    backoff.reset()
    figures.delivered += batch?.events.count ?? 0
    for event in batch?.events ?? [] { consumer?.acknowledge(event.token) }
    waiting.wasAccepted()
    batch = nil
    gather()
  }

  /// - Parameter asked: the receiver's `Retry-After` in seconds.
  private func failed(_ reason: String, _ asked: Double?) {
    let pause = min(max(backoff.next(using: &loop.time.random), asked ?? 0), Self.longestPause)
    failingSince = failingSince ?? loop.wallClock
    log.warning(
      "a webhook's receiver didn't accept events",
      [
        "webhook": name, "events": batch?.events.count ?? 0, "reason": reason, "again_in_seconds": Int(pause.rounded(.up)),
        "since": String(decoding: Timestamp.text(failingSince ?? loop.wallClock), as: UTF8.self),
      ])
    rest = (true, rest.number + 1)
    if pause > Self.longestHold { close() }
    loop.schedule(after: pause) { [weak self, number = rest.number] in
      if let self, number == rest.number { endRest() }
    }
  }

  private func endRest() {
    rest = (false, rest.number + 1)
    if connection == nil { open() } else { send() }
  }

  /// Sends a full batch at once, and a smaller one soon.
  private func gather() {
    guard call == nil, batch == nil, !waiting.isEmpty else { return }
    if waiting.isFull { return send() }
    loop.schedule(after: Self.gathering) { [weak self] in self?.send() }
  }
}

extension WebhookSender: ConsumerHandler {
  func ready(_ consumer: Consumer) {
    connection?.established(at: loop.now)
    if isConnected != true { log.info("consuming", ["webhook": name, "broker": connection?.address ?? "none"]) }
    isConnected = true
    isMissing = false
    if isStopping || !isWanted { close() }
  }

  func delivered(_ delivery: consuming Delivery) {
    // The queue stays bound to events that the settings no longer name.
    guard receiver.webhook.wants(delivery.routingKey) else {
      consumer?.acknowledge(delivery.token)
      return
    }
    waiting.append(WebhookEvent(delivery))
    if waiting.count == 1 || waiting.isFull { gather() }
  }

  func cancelled(queue: Int) {
    log.error("the broker ended the consumption of a webhook's queue", ["queue": self.queue])
    loop.schedule(after: 1) { [weak self] in self?.consumer?.consume(queue: 0) }
  }

  func channelLost(_ reason: ConnectionEnd) { forget() }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    guard consumer === self.consumer else { return }
    self.consumer = nil
    forget()
    guard !isClosing else {
      isClosing = false
      connection = nil
      return open()
    }
    let isFirst = isConnected != false
    isConnected = false
    guard case .notFound = reason else {
      isMissing = false
      connection?.ended(reason, isFirst ? log : nil, ["webhook": name])
      return
    }
    connection?.ended(at: loop.now)
    if !isMissing { log.error("a webhook has no queue; `pushfleet topology` declares it", ["queue": queue]) }
    isMissing = true
  }
}
