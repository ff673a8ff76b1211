import AMQP
import Wire

/// A backend: publishes requests and changes of the registry with confirms, and repeats unconfirmed ones forever with the same
/// message id. Has a queue for answers.
final class Producer: Participant, PublisherHandler {
  static let replies = "backend.replies"

  private var clock: Turn
  private var publisher: Publisher?
  /// True if the queue for answers is declared.
  private var isReady = false
  private var waiting: [Outgoing] = []
  private var underway: [Int: Outgoing] = [:]
  private var published = 0
  private let uri: BrokerURI

  init(in world: World) throws {
    clock = Turn(now: world.now, wallClock: world.wallClock, random: world.fork())
    uri = try BrokerURI(parsing: "amqp://guest:guest@broker:5672/")
    super.init("producer", in: world)
    dial()
  }

  var isDone: Bool { waiting.isEmpty && underway.isEmpty }

  func publish(_ outgoing: Outgoing) {
    waiting.append(outgoing)
    pump()
    wake()
  }

  private func dial() {
    let publisher = Publisher(settings: ConnectionSettings(broker: uri, name: "producer"), handler: self)
    self.publisher = publisher
    isReady = false
    _ = world.network.dial(publisher, from: self, to: BrokerNode.address, timeout: 5)
  }

  private func pump() {
    guard let publisher, isReady else { return }
    while publisher.canPublish, !waiting.isEmpty {
      let outgoing = waiting.removeFirst()
      published += 1
      underway[published] = outgoing
      publisher.publish(
        exchange: Array(outgoing.exchange.utf8), routingKey: Array(outgoing.routingKey.utf8), properties: outgoing.properties,
        body: Array(outgoing.body.utf8), tag: published)
    }
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) {
    clock.runTimers()
    pump()
  }

  // MARK: PublisherHandler

  func ready(_ publisher: Publisher) {
    publisher.perform(.queueDeclare(name: Self.replies, arguments: ["x-queue-type": .text("quorum")])) { [unowned self] _ in
      isReady = true
      pump()
    }
  }

  func confirmed(_ tag: Int) {
    underway.removeValue(forKey: tag)?.isAccepted()
    pump()
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    guard let outgoing = underway.removeValue(forKey: tag) else { return }
    clock.schedule(after: 0.5) { [self] in
      waiting.append(outgoing)
      pump()
    }
  }

  func unblocked(_ publisher: Publisher) { pump() }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    isReady = false
    clock.schedule(after: 0.7) { [self] in dial() }
  }
}
