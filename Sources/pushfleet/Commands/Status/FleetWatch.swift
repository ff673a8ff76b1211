import AMQP
import Broker
import DeviceRegistry
import Reactor
import Settings

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
  private var isLeaving = false

  init(_ configuration: Configuration, every period: Double?, show: @escaping (FleetPicture) -> Void) throws {
    self.period = period
    self.show = show
    picture = FleetPicture(prefix: configuration.prefix, address: "", at: 0)
    (registry, registryProblem) = Self.open(configuration)
    try super.init(configuration, name: "pushfleet status", maximumReply: Self.maximumAnswer)
  }

  private static func open(_ configuration: Configuration) -> (store: DeviceStore?, problem: String?) {
    guard let location = configuration.registry else { return (nil, nil) }
    do throws(RegistryError) {
      return (try RegistrySession.open(location, configuration, isReading: true), nil)
    } catch { return (nil, "the registry can't be asked: \(error)") }
  }

  // MARK: a round

  override func work() throws {
    while !isLeaving {
      try wait { publisher?.isReady == true || isLeaving }
      let begun = loop.now
      guard try count(), try ask() else { continue }
      addHolds()
      addCampaigns()
      show(picture)
      guard let period else { break }
      try wait(upTo: max(0.05, period - loop.now.seconds(since: begun))) { publisher == nil || isLeaving }
    }
    try close()
  }

  /// - Returns: false if the connection was lost, or if the command ends.
  private func count() throws -> Bool {
    picture = FleetPicture(prefix: topology.prefix, address: connection.address, at: loop.wallClock)
    for name in topology.queues.map(\.name) {
      switch try perform(.queueInspect(name: name), unless: { isLeaving }) {
      case .success(.queue(let ready, let consumers)):
        picture.queues.append(.init(name: name, ready: ready, consumers: consumers))
        if topology.queuesOfOneConsumer.contains(name) { picture.consumers = max(picture.consumers, consumers) }
      case .failure(.notFound): picture.queues.append(.init(name: name))
      case .success: break
      case .failure(let reason) where publisher != nil: throw CommandFailure(.unavailable, "queue \(name): \(reason)")
      case .failure, nil: return false
      }
    }
    return true
  }

  /// Asks the workers, unless the broker accepts no messages.
  /// - Returns: as ``count()``.
  private func ask() throws -> Bool {
    guard let publisher, publisher.canPublish else { return !isLeaving }
    round += 1
    isAsking = true
    publisher.askWorkers(
      topology, asksForPools ? StatusQuestion.pools : StatusQuestion.plain, id: Array("\(round)".utf8), tag: 0)
    try wait(upTo: Publisher.answerTime) { !isAsking || isLeaving }
    isAsking = false
    picture.workers.sort { $0.name < $1.name }
    return self.publisher != nil && !isLeaving
  }

  override func replied(_ publisher: Publisher, _ reply: consuming Delivery) {
    guard isAsking, reply.properties.correlationID == Array("\(round)".utf8), !reply.isTruncated,
      picture.workers.count < Self.mostWorkers,
      let report = WorkerAnswer(reply.body, now: Double(loop.wallClock) / 1_000)
    else { return }
    picture.workers.append(report)
    if picture.silent == 0, picture.consumers > 0 { isAsking = false }
  }

  /// Hold queues as workers have counted them. Asking for a missing queue would leave an error in the broker's log.
  private func addHolds() {
    let ready = Dictionary(picture.workers.flatMap(\.holds).map { ($0.app, $0.ready) }, uniquingKeysWith: max)
    for (app, ready) in ready.sorted(by: { $0.key < $1.key }) {
      picture.queues.append(.init(name: topology.holdQueue(app), ready: ready, consumers: nil))
    }
  }

  private func addCampaigns() {
    picture.registryProblem = registryProblem ?? picture.unwritable
    guard let registry else { return }
    do throws(RegistryError) {
      picture.controls = try registry.controls().filter { $0.rate != nil || $0.mode(at: picture.at) != .running }
      picture.campaigns = Array(try registry.campaigns(limit: 1_000).lazy.filter { !$0.state.isOver }.prefix(10))
    } catch { picture.registryProblem = "the registry can't be asked: \(error)" }
  }

  override var outlivesBroker: Bool { period != nil }

  /// A continuous display ends normally on a signal.
  override func interrupt() { if isUp, period != nil { leave() } else { super.interrupt() } }

  func leave() { isLeaving = true }

  // MARK: the connection

  /// The exchange was missing, so the channel was opened again: the picture is shown without answers.
  override func ready(_ publisher: Publisher) {
    isAsking = false
    super.ready(publisher)
  }

  /// No worker listens, the exchange doesn't exist, or the user may not write to it.
  override func failed(_ tag: Int, _ failure: PublishFailure) {
    if case .returned = failure { isAsking = false }
    guard case .channelClosed(.accessRefused) = failure else { return }
    picture.problem =
      "this user may not ask the workers: it can't write to \(topology.controlExchange) (docs/operate/permissions.md)"
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
