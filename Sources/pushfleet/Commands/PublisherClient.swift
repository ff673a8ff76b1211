import AMQP
import Broker
import Settings

/// A command's connection for publishing and for queries.
class PublisherClient: BrokerClient, PublisherHandler {
  /// nil while there is no connection.
  weak var publisher: Publisher?

  /// - Parameters:
  ///   - window: publications that may be unconfirmed at once.
  ///   - maximumReply: bytes of a reply to keep; nil if no replies are consumed.
  init(
    _ configuration: Configuration, name: String, heartbeat: UInt16 = 10,
    connectTimeout: Double = BrokerClient.connectTimeout, window: Int = 1_000, maximumReply: Int? = nil
  ) throws {
    try super.init(configuration, name: name, heartbeat: heartbeat, connectTimeout: connectTimeout)
    connection.makeMachine = { [unowned self] settings in
      dials(settings.broker)
      return Publisher(settings: settings, window: window, maximumReply: maximumReply, handler: self)
    }
  }

  // MARK: for work that turns the loop by `wait`

  /// Performs a command, and waits for its answer.
  /// - Returns: nil without a connection, if these seconds are over before, or if the condition holds before.
  func perform(
    _ command: AMQP.Command, upTo seconds: Double = .infinity, unless isTrue: () -> Bool = { false }
  ) throws -> Result<CommandAnswer, ConnectionEnd>? {
    guard let publisher else { return nil }
    var answer: Result<CommandAnswer, ConnectionEnd>?
    publisher.perform(command) { answer = $0 }
    try wait(upTo: seconds) { answer != nil || isTrue() }
    return answer
  }

  /// Closes the connection in order, and waits for its end.
  func close() throws {
    publisher?.close()
    try wait { publisher == nil }
  }

  // MARK: the connection

  func dials(_ broker: BrokerURI) {}

  func ready(_ publisher: Publisher) {
    self.publisher = publisher
    up()
  }

  func confirmed(_ tag: Int) {}
  func failed(_ tag: Int, _ failure: PublishFailure) {}
  func blocked(_ publisher: Publisher, reason: String) {}
  func unblocked(_ publisher: Publisher) {}
  func replied(_ publisher: Publisher, _ reply: consuming Delivery) {}

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    if reason == .closedHere { finish() } else { lost(reason) }
  }
}
