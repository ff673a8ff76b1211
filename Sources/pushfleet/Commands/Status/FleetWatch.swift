import AMQP
import Broker
import DeviceRegistry
import Reactor
import Settings
import Wire

/// Counts a fleet's queues and asks its workers for their status.
final class FleetWatch: PublisherClient {
  /// Bytes of a worker's answer.
  private static let maximumAnswer = 256 << 10
  private static let mostWorkers = 10_000

  private let registry: DeviceStore?
  private let registryProblem: String?
  /// Whether workers are asked for all pools; may change between rounds.
  var asksForPools = false
  /// Seconds between two pictures; nil for a single one.
  private let period: Double?
  private let show: (FleetPicture) -> Void
  private var picture: FleetPicture
  private var round: UInt64 = 0
  private var isAsking = false
  /// Number of connections so far; work from an earlier connection is dropped.
  private var epoch = 0
  private var begun = MonotonicTime(nanoseconds: 0)

  init(_ configuration: Configuration, every period: Double?, show: @escaping (FleetPicture) -> Void) throws {
    self.period = period
    self.show = show
    picture = FleetPicture(prefix: configuration.prefix, address: "", at: 0)
    (registry, registryProblem) = Self.open(configuration)
    try super.init(configuration, maximumReply: Self.maximumAnswer) {
      ConnectionSettings(broker: $0, name: "pushfleet status")
    }
  }

  private static func open(_ configuration: Configuration) -> (store: DeviceStore?, problem: String?) {
    guard let location = configuration.registry else { return (nil, nil) }
    do throws(RegistryError) {
      return (try RegistrySession.open(location, configuration, isReading: true), nil)
    } catch { return (nil, "the registry can't be asked: \(error)") }
  }

  // MARK: a round

  override func ready(_ publisher: Publisher) {
    super.ready(publisher)
    // The exchange was missing, so the channel was opened again: show the picture without answers.
    if isAsking { return answersAreIn() }
    epoch += 1
    look(epoch)
  }

  private func look(_ begun: Int) {
    guard let publisher, publisher.isReady, begun == epoch else { return }
    self.begun = loop.now
    picture = FleetPicture(prefix: topology.prefix, address: connection.address, at: loop.wallClock)
    count(topology.queues.map(\.name)[...], publisher)
  }

  private func count(_ names: ArraySlice<String>, _ publisher: Publisher) {
    guard let name = names.first else { return ask(publisher) }
    publisher.perform(.queueInspect(name: name)) { [weak self, weak publisher] answer in
      guard let self, let publisher else { return }
      switch answer {
      case .success(.queue(let ready, let consumers)):
        picture.queues.append(.init(name: name, ready: ready, consumers: consumers))
        if topology.queuesOfOneConsumer.contains(name) { picture.consumers = max(picture.consumers, consumers) }
      case .failure(.notFound): picture.queues.append(.init(name: name))
      case .success: break
      case .failure(let reason):
        if publisher.isReady { fail(.unavailable, "queue \(name): \(reason)") }
        return
      }
      count(names.dropFirst(), publisher)
    }
  }

  private func ask(_ publisher: Publisher) {
    isAsking = true
    guard publisher.canPublish else { return answersAreIn() }
    round += 1
    let asked = round
    publisher.askWorkers(
      topology, asksForPools ? StatusQuestion.pools : StatusQuestion.plain, id: Array("\(asked)".utf8), tag: 0)
    loop.schedule(after: Publisher.answerTime) { [weak self] in
      guard let self, asked == round else { return }
      answersAreIn()
    }
  }

  override func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    guard isAsking, reply.properties.correlationID == Array("\(round)".utf8), !reply.isTruncated,
      picture.workers.count < Self.mostWorkers,
      let report = WorkerAnswer(reply.body, now: Double(loop.wallClock) / 1_000)
    else { return }
    picture.workers.append(report)
    if picture.silent == 0, picture.consumers > 0 { answersAreIn() }
  }

  private func answersAreIn() {
    guard isAsking else { return }
    isAsking = false
    picture.workers.sort { $0.name < $1.name }
    addHolds()
    addCampaigns()
    show(picture)
    guard let period else { return leave() }
    let pause = max(0.05, period - loop.now.seconds(since: begun))
    loop.schedule(after: pause) { [weak self, epoch] in self?.look(epoch) }
  }

  /// Hold queues as workers have counted them. Asking for a missing queue would leave an error in the broker's log.
  private func addHolds() {
    let ready = Dictionary(picture.workers.flatMap(\.holds).map { ($0.app, $0.ready) }, uniquingKeysWith: max)
    for (app, ready) in ready.sorted(by: { $0.key < $1.key }) {
      picture.queues.append(.init(name: topology.holdQueue(app), ready: ready, consumers: nil))
    }
  }

  private func addCampaigns() {
    picture.registryProblem = registryProblem
    guard let registry else { return }
    do throws(RegistryError) {
      picture.controls = try registry.controls().filter { $0.rate != nil || $0.mode(at: picture.at) != .running }
      picture.campaigns = Array(try registry.campaigns(limit: 1_000).lazy.filter { !$0.state.isOver }.prefix(10))
    } catch { picture.registryProblem = "the registry can't be asked: \(error)" }
  }

  override var outlivesBroker: Bool { period != nil }

  /// A continuous display ends normally on a signal.
  override func interrupt() { if isUp, period != nil { leave() } else { super.interrupt() } }

  func leave() {
    if let publisher, publisher.isReady { publisher.close() } else { finish() }
  }

  // MARK: the connection

  /// No worker listens, or the exchange doesn't exist.
  override func failed(_ tag: Int, _ failure: PublishFailure) {
    if case .returned = failure, isAsking { answersAreIn() }
  }

  override func ended(_ publisher: Publisher, _ reason: ConnectionEnd) {
    isAsking = false
    if isUp, period != nil, reason != .closedHere {
      picture.problem = "the broker can't be reached: \(reason)"
      show(picture)
    }
    super.ended(publisher, reason)
  }
}
