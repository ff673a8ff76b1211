import AMQP
import Broker
import Logging
import PushCore
import Reactor
import Wire

/// Answers `pushfleet status` over its own connection. If the broker refuses it, that is logged once; delivery continues.
final class StatusAnswers: PublisherHandler {
  /// Bytes of a question.
  private static let maximumQuestion = 1_024
  /// Answers per second.
  private static let mostAnswers = 10

  private let loop: EventLoop
  private let log: Log
  private let status: (_ allPools: Bool) -> [UInt8]
  private let connection: BrokerConnection
  /// nil while not connected.
  private weak var publisher: Publisher?
  private var answers = 0
  private var second = MonotonicTime(nanoseconds: 0)
  private var onEnd: (() -> Void)?

  /// - Parameter status: returns one JSON object.
  init(
    loop: EventLoop, _ topology: Topology, _ brokers: [BrokerAddress], _ log: Log,
    status: @escaping (_ allPools: Bool) -> [UInt8]
  ) {
    self.loop = loop
    self.log = log
    self.status = status
    connection = BrokerConnection(
      loop: loop, brokers: brokers, name: "pushfleet worker, status, \(ThisProcess.name)")
    let suffix = UInt64.random(in: 0 ... .max)
    let calls = (
      exchange: topology.controlExchange,
      queue: "\(topology.controlExchange).\(ThisProcess.pid).\(String(suffix, radix: 36))"
    )
    connection.makeMachine = { [unowned self] settings in
      Publisher(settings: settings, window: 100, maximumReply: Self.maximumQuestion, calls: calls, handler: self)
    }
  }

  func start() { connection.start() }

  func reload(_ brokers: [BrokerAddress]) { connection.brokers = brokers }

  func close(_ done: @escaping () -> Void) {
    connection.stop()
    guard let publisher else { return done() }
    onEnd = done
    publisher.close()
  }

  func ready(_ publisher: Publisher) {
    self.publisher = publisher
    connection.established(at: loop.now)
  }

  func replied(_ publisher: Publisher, _ question: consuming Delivery) {
    if loop.now >= second {
      second = loop.now.advanced(bySeconds: 1)
      answers = 0
    }
    answers += 1
    // Answers go only to direct reply-to addresses, never to a queue that the asking user couldn't write to.
    guard answers <= Self.mostAnswers, publisher.canPublish, let replyTo = question.properties.replyTo,
      replyTo.starts(with: Publisher.replyTo)
    else { return }
    var properties = BasicProperties()
    properties.contentType = Array("application/json".utf8)
    properties.correlationID = question.properties.correlationID
    publisher.publish(
      exchange: [], routingKey: replyTo, properties: properties, body: status(question.body == StatusQuestion.pools), tag: 0)
  }

  /// A lost answer needs no handling.
  func failed(_ tag: Int, _ failure: PublishFailure) {}

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    if let onEnd {
      self.onEnd = nil
      return onEnd()
    }
    if case .accessRefused = reason { return refused(reason) }
    if reason.isFatalConfiguration { return refused(reason) }
    connection.ended(at: loop.now)
  }

  private func refused(_ reason: ConnectionEnd) {
    log.warning("questions of pushfleet status can't be answered", ["reason": "\(reason)"])
    connection.stop()
  }
}
