import AMQP
import Broker
import Reactor
import Settings

/// A command's connection by which it publishes, or asks for what is there.
class PublisherClient: BrokerClient, PublisherHandler {
  /// While it is connected.
  weak var publisher: Publisher?

  /// - Parameters:
  ///   - settings: of the connection to one of the brokers.
  ///   - window: publications that may wait for their confirms.
  ///   - maximumReply: bytes of an answer that are kept; nil where no answers are taken.
  init(
    _ configuration: Configuration, loop: EventLoop? = nil, connectTimeout: Double = BrokerClient.connectTimeout,
    window: Int = 1_000, maximumReply: Int? = nil, _ settings: @escaping (BrokerURI) -> ConnectionSettings
  ) throws {
    try super.init(configuration, loop: loop, connectTimeout: connectTimeout)
    connection.makeMachine = { [unowned self] broker in
      dials(broker)
      return Publisher(settings: settings(broker), window: window, maximumReply: maximumReply, handler: self)
    }
  }

  func dials(_ broker: BrokerURI) {}
  func ready(_ publisher: Publisher) {}
  func confirmed(_ tag: Int) {}
  func failed(_ tag: Int, _ failure: PublishFailure) {}
  func blocked(_ publisher: Publisher, reason: String) {}
  func unblocked(_ publisher: Publisher) {}
  func replied(_ publisher: Publisher, _ reply: consuming Delivery) {}

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
