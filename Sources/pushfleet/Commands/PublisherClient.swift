import AMQP
import Broker
import Settings

/// A command's connection for publishing and for queries.
class PublisherClient: BrokerClient, PublisherHandler {
  weak var publisher: Publisher?

  /// - Parameters:
  ///   - window: publications that may be unconfirmed at once.
  ///   - maximumReply: bytes of a reply to keep; nil if no replies are consumed.
  init(
    _ configuration: Configuration, connectTimeout: Double = BrokerClient.connectTimeout,
    window: Int = 1_000, maximumReply: Int? = nil, _ settings: @escaping (BrokerURI) -> ConnectionSettings
  ) throws {
    try super.init(configuration, connectTimeout: connectTimeout)
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
