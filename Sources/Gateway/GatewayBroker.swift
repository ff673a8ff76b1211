import AMQP
import Broker
import Logging
import PushCore
import Reactor
import Wire

/// The gateway's broker connection, which reconnects by itself. Publishes with confirms and receives answers by direct
/// reply-to. Confined to the loop's thread.
final class GatewayBroker {
  enum Outcome: Equatable {
    case confirmed
    /// The message was not accepted; it may be later: no connection, an alarm, a full queue, too many unconfirmed messages.
    case refused(String)
    /// The message may have been accepted: the connection ended, or no confirm came in time.
    case unknown(String)
  }

  typealias Confirmation = (Outcome) -> Void
  typealias Answer = ([UInt8]) -> Void

  private struct Waiting {
    var isPatient: Bool
    var then: Confirmation
  }

  /// Unconfirmed publications before further ones are refused.
  private static let window = 8_192
  /// Seconds to wait for the broker's confirm.
  static let confirmTime = 15.0
  /// Seconds that the broker may block before impatient callers are answered.
  private static let blockedGrace = 2.0
  /// Longest accepted answer in bytes: results of a thousand devices, or the failed devices of an audience.
  private static let maximumAnswer = 4 << 20

  private let loop: EventLoop
  let topology: Topology
  private let log: Log
  private let figures: GatewayFigures
  private let connection: BrokerConnection
  private var publisher: Publisher?
  /// Our user at the broker; workers identify an application's producers by it. Nil if only our certificate names the user.
  private(set) var user: [UInt8]?
  private var isDeclared = false
  private var confirmations = Slab<Waiting>()
  private var answers: [UInt64: (then: Answer, limit: TimerToken?)] = [:]
  private var lastQuestion: UInt64
  private var onClosed: (() -> Void)?
  /// Fires when waiting callers are answered that the broker blocks.
  private var blockedLimit: TimerToken?

  init(loop: EventLoop, topology: Topology, brokers: [BrokerAddress], log: Log, figures: GatewayFigures) {
    self.loop = loop
    self.topology = topology
    self.log = log
    self.figures = figures
    connection = BrokerConnection(loop: loop, brokers: brokers, name: "pushfleet gateway, \(ThisProcess.name)")
    // Unpredictable, because the number is all that authenticates an answer.
    lastQuestion = UInt64.random(in: 0..<(1 << 62))
    connection.makeMachine = { [unowned self] in make($0) }
  }

  /// A change applies to the next connection.
  var brokers: [BrokerAddress] {
    get { connection.brokers }
    set { connection.brokers = newValue }
  }

  func start() { connection.start() }

  private func make(_ settings: ConnectionSettings) -> Publisher {
    let publisher = Publisher(
      settings: settings, window: Self.window, maximumReply: Self.maximumAnswer, handler: self)
    self.publisher = publisher
    user = settings.broker.user.isEmpty ? nil : Array(settings.broker.user.utf8)
    return publisher
  }

  var isReady: Bool { isDeclared && publisher?.canPublish == true }

  var waiting: Int { confirmations.count }

  // MARK: asked by doors

  /// - Parameters:
  ///   - question: a number of ``expectAnswer(_:)`` if an answer is wanted.
  ///   - isPatient: waits for the confirm however long the broker blocks; other callers get an unknown outcome.
  ///   - then: called once; during this call if the message is refused at once.
  func publish(
    exchange: [UInt8], routingKey: [UInt8], properties: consuming BasicProperties, body: [UInt8], question: UInt64? = nil,
    isPatient: Bool = false, then: @escaping Confirmation
  ) {
    guard let publisher, isReady else {
      figures.published(.refused(""))
      return then(.refused(reason))
    }
    if let question {
      properties.replyTo = Publisher.replyTo
      properties.correlationID = Array(String(question).utf8)
    }
    let tag = confirmations.insert(Waiting(isPatient: isPatient, then: then))
    publisher.publish(exchange: exchange, routingKey: routingKey, properties: properties, body: body, tag: tag)
  }

  private var reason: String {
    guard let publisher, publisher.isReady, isDeclared else { return "the broker can't be reached" }
    return publisher.isBlocked ? Self.blocked : "too many messages wait for the broker's confirm"
  }

  private static let blocked = "the broker accepts no messages at the moment"

  /// Returns a correlation number for a message that asks for an answer. If no answer has come when the caller stops waiting,
  /// it must call `forget`. The end of the connection silently drops all pending answers.
  func expectAnswer(_ answer: @escaping Answer) -> UInt64 {
    lastQuestion += 1
    answers[lastQuestion] = (answer, nil)
    return lastQuestion
  }

  var expected: Int { answers.count }

  func forget(_ question: UInt64) { _ = take(question) }

  /// Forgets the question after some seconds. Until then, its answer may come.
  func forget(_ question: UInt64, after seconds: Double) {
    answers[question]?.limit = loop.schedule(after: seconds) { [weak self] in self?.forget(question) }
  }

  private func take(_ question: UInt64) -> Answer? {
    guard let (then, limit) = answers.removeValue(forKey: question) else { return nil }
    if let limit { loop.cancel(limit) }
    return then
  }

  /// Counts the ready messages of a queue; nil if the broker can't be asked or has no such queue.
  func countReady(_ queue: String, _ answered: @escaping (Int?) -> Void) {
    guard let publisher, publisher.isReady else { return answered(nil) }
    publisher.perform(.queueInspect(name: queue)) { answer in
      guard case .success(.queue(let ready, _)) = answer else { return answered(nil) }
      answered(ready)
    }
  }

  func close(_ completion: @escaping () -> Void) {
    connection.stop()
    guard let publisher else { return completion() }
    onClosed = completion
    publisher.close()
  }

  /// The broker may have read these messages or may read them after its alarm. So their numbers stay in use until it has
  /// answered.
  private func tellWaiting() {
    for tag in confirmations.indices {
      guard let waiting = confirmations[tag], !waiting.isPatient else { continue }
      confirmations[tag]?.then = { _ in }
      waiting.then(.unknown(Self.blocked))
    }
  }

  private func settle(_ tag: Int, _ outcome: Outcome) {
    figures.published(outcome)
    confirmations.remove(tag)?.then(outcome)
  }
}

extension GatewayBroker: PublisherHandler {
  func ready(_ publisher: Publisher) {
    connection.established(at: loop.now)
    log.info("publishing", ["broker": connection.address])
    // Declare first, so that the first request finds its queue even if no worker has started yet.
    publisher.declare(topology) { [weak self] result in
      guard let self, publisher === self.publisher else { return }
      switch result {
      case .success(let notices): for notice in notices { log.warning("\(notice)") }
      // A user without permission to declare may still publish to existing exchanges.
      case .failure(let failure): log.warning("the topology could not be declared", ["reason": "\(failure)"])
      }
      isDeclared = true
    }
  }

  func confirmed(_ tag: Int) { settle(tag, .confirmed) }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    switch failure {
    case .returned: settle(tag, .refused("there is no queue for it"))
    case .nacked: settle(tag, .refused("its queue is full"))
    case .unencodable: settle(tag, .refused("a property is too long"))
    case .timedOut: settle(tag, .unknown("the broker has not confirmed it in time"))
    case .connectionLost, .channelClosed: settle(tag, .unknown("the broker's connection ended before it was confirmed"))
    }
  }

  func blocked(_ publisher: Publisher, reason: String) {
    log.warning("the broker blocks publishing: a resource alarm", ["reason": reason])
    guard blockedLimit == nil else { return }
    blockedLimit = loop.schedule(after: Self.blockedGrace) { [weak self] in
      self?.blockedLimit = nil
      self?.tellWaiting()
    }
  }

  func unblocked(_ publisher: Publisher) {
    forgetBlock()
    log.info("the broker takes publications again")
  }

  private func forgetBlock() {
    if let blockedLimit { loop.cancel(blockedLimit) }
    blockedLimit = nil
  }

  func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    guard let text = reply.properties.correlationID, let question = UInt64(String(decoding: text, as: UTF8.self)),
      !reply.isTruncated
    else { return }
    take(question)?(reply.body)
  }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    isDeclared = false
    forgetBlock()
    for question in answers.keys { forget(question) }
    connection.ended(reason, log, [:])
    onClosed?()
    onClosed = nil
  }
}
