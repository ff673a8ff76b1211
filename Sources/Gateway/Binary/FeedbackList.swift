import AMQP
import Broker
import Wire

/// Reads a number of messages from an application's feedback queue, on its own broker connection. Acknowledges them once they
/// are known to be read. Before `begin` it waits for its turn.
final class FeedbackList: ConsumerHandler {
  /// Most messages for one connection. The next connection gets the following ones.
  static let most = 50_000
  /// Seconds without a delivery after which another consumer must have the remaining messages.
  private static let quiet = 1.0

  let queue: String
  private(set) weak var reader: (any FeedbackReader)?
  private let time: Turn
  private let listsBadTokens: Bool
  private var connection: BrokerConnection?
  private var expected = 0
  private var ended: ((FeedbackList) -> Void)?
  private var consumer: Consumer?
  private var tokens: [DeliveryToken] = []
  private var isWhole = false
  private(set) var isSettled = false
  private(set) var taken = 0

  init(queue: String, listsBadTokens: Bool, time: Turn, reader: any FeedbackReader) {
    self.queue = queue
    self.listsBadTokens = listsBadTokens
    self.time = time
    self.reader = reader
  }

  /// - Parameters:
  ///   - count: number of ready messages in the queue; at least 1.
  ///   - ended: called when the connection is closed.
  func begin(count: Int, connection: BrokerConnection, ended: @escaping (FeedbackList) -> Void) {
    self.connection = connection
    self.ended = ended
    expected = min(count, Self.most)
    connection.makeMachine = { [unowned self] settings in
      let consumer = Consumer(
        settings: settings, queues: [.init(queue: queue, prefetch: UInt16(expected))], maximumBody: 16 * 1024,
        handler: self)
      self.consumer = consumer
      return consumer
    }
    connection.start()
  }

  func ready(_ consumer: Consumer) {
    connection?.established(at: time.now)
    endWhenQuiet()
  }

  private func endWhenQuiet() {
    let seen = tokens.count
    time.schedule(after: Self.quiet) { [weak self] in
      guard let self, !isWhole, !isSettled else { return }
      if tokens.count == seen { end() } else { endWhenQuiet() }
    }
  }

  func end() {
    isWhole = true
    reader?.feedbackEnded()
  }

  /// Ignores late deliveries. They are not acknowledged, so they stay in the queue.
  func delivered(_ delivery: consuming Delivery) {
    guard !isWhole, !isSettled else { return }
    tokens.append(delivery.token)
    // Also count messages that have no tuple. Otherwise they would be delivered again forever.
    if let tuple = FeedbackTuple.bytes(delivery.body, listsBadTokens: listsBadTokens) { reader?.feedbackCame(tuple) }
    if tokens.count == expected { end() }
  }

  func settle(isTaken: Bool) {
    guard !isSettled else { return }
    isSettled = true
    reader = nil
    if isTaken, let consumer {
      for token in tokens { consumer.acknowledge(token) }
      taken = tokens.count
    }
    tokens = []
    connection?.stop()
    if let consumer { consumer.close() } else { ended?(self) }
  }

  func cancelled(queue: Int) { fail() }
  func channelLost(_ reason: ConnectionEnd) { fail() }

  func ended(_ consumer: Consumer, _ reason: ConnectionEnd) {
    self.consumer = nil
    connection?.stop()
    fail()
    ended?(self)
  }

  /// The broker delivers the unacknowledged messages to another consumer.
  func fail() {
    tokens = []
    reader?.feedbackFailed()
    reader = nil
  }
}
