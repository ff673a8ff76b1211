import AMQP
import Wire

/// A backend: publishes requests with confirms, again under the same message id when it has none, and never gives up.
final class Producer: Party, PublisherHandler {
  private let books: Books
  private var clock: Turn
  private var publisher: Publisher?
  private var waiting: [Request] = []
  private var underway: [Int: Request] = [:]
  private let uri: BrokerURI

  init(_ books: Books, in world: World) throws {
    self.books = books
    clock = Turn(now: world.now, wallClock: world.wallClock, random: world.fork())
    uri = try BrokerURI(parsing: "amqp://guest:guest@broker:5672/")
    super.init("producer", in: world)
    dial()
  }

  var isDone: Bool { waiting.isEmpty && underway.isEmpty }

  func publish(_ request: Request) {
    waiting.append(request)
    pump()
    wake()
  }

  private func dial() {
    let publisher = Publisher(settings: ConnectionSettings(broker: uri, name: "producer"), handler: self)
    self.publisher = publisher
    _ = world.network.dial(publisher, from: self, to: BrokerNode.address, timeout: 5)
  }

  private func pump() {
    guard let publisher else { return }
    while publisher.canPublish, !waiting.isEmpty {
      let request = waiting.removeFirst()
      underway[request.number] = request
      var properties = BasicProperties()
      properties.deliveryMode = 2
      properties.contentType = Array("application/json".utf8)
      properties.appID = Array(Scenario.app(request.app).utf8)
      properties.messageID = Array(request.messageID.utf8)
      properties.timestamp = UInt64(request.publishedAt / 1000)
      publisher.publish(
        exchange: Array("push.send".utf8), routingKey: Array(request.lane.utf8), properties: properties,
        body: Array(request.body.utf8), tag: request.number)
    }
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) {
    clock.runTimers()
    pump()
  }

  // MARK: PublisherHandler

  func ready(_ publisher: Publisher) { pump() }

  func confirmed(_ tag: Int) {
    if let request = underway.removeValue(forKey: tag) { books.accepted(request) }
    pump()
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {
    guard let request = underway.removeValue(forKey: tag) else { return }
    clock.schedule(after: 0.5) { [self] in
      waiting.append(request)
      pump()
    }
  }

  func blocked(_ publisher: Publisher, reason: String) {}
  func unblocked(_ publisher: Publisher) { pump() }

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    guard publisher === self.publisher else { return }
    self.publisher = nil
    clock.schedule(after: 0.7) { [self] in dial() }
  }
}
