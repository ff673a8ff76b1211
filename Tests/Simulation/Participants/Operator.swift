import AMQP
import Broker
import Wire

/// An operator who runs `pushfleet topology`: before the first request, and later with other numbers of queues for each lane.
/// Repeats the command until it succeeds.
final class Operator: Participant, PublisherHandler {
  private let topologies: [Topology]
  private let uri: BrokerURI
  private var clock: Turn
  private var publisher: Publisher?
  /// The number of queues to set; nil if it is set.
  private var wanted: Int?

  /// - Parameter topologies: one for each number of queues, beginning with 1.
  init(_ topologies: [Topology], in world: World) throws {
    self.topologies = topologies
    clock = Turn(now: world.now, wallClock: world.wallClock, random: world.fork())
    uri = try BrokerURI(parsing: "amqp://guest:guest@broker:5672/")
    super.init("operator", in: world)
  }

  var isDone: Bool { wanted == nil }

  func divide(among queues: Int) {
    wanted = queues
    if publisher == nil { dial() }
  }

  private func dial() {
    let publisher = Publisher(settings: ConnectionSettings(broker: uri, name: "operator"), handler: self)
    self.publisher = publisher
    _ = world.network.dial(publisher, from: self, to: BrokerNode.address, timeout: 5)
    wake()
  }

  override var ownDeadline: MonotonicTime { clock.nextTimer }
  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock) }
  override func act(at now: MonotonicTime) { clock.runTimers() }

  // MARK: PublisherHandler

  func ready(_ publisher: Publisher) {
    guard let queues = wanted else { return publisher.close() }
    publisher.declareDividing(topologies[queues - 1]) { [unowned self, unowned publisher] result in
      if case .success = result, wanted == queues {
        world.note("an operator has divided the lanes among \(queues) queues")
        wanted = nil
      }
      publisher.close()
    }
  }

  func failed(_ tag: Int, _ failure: PublishFailure) {}

  func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    self.publisher = nil
    if wanted != nil { clock.schedule(after: 1) { [self] in dial() } }
  }
}
