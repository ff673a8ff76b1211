import BrokerModel
import DeviceRegistry
import Foundation
import PushCore
import Wire
import Worker

/// A whole fleet in one thread: workers, broker, providers, registry, a producer, and what befalls them.
public final class FleetSimulation {
  /// What a run shows.
  public struct Outcome: Sendable {
    public var seed: UInt64
    public var failures: [String]
    public var afflictions: [Affliction]
    /// How many of them in all.
    public var events: Int
    /// The same for each run of the seed.
    public var traceHash: UInt64
    public var trace: [String]
    public var requests = 0
    public var pushes = 0
    public var duplicates = 0
    /// While only other applications were in trouble, and after an application's trouble was over.
    public var delays = Delays()
    /// Requests of which it was known when they had to be sent at the latest; and those among them that trouble had held up.
    public var timed = 0
    public var timedAfterTrouble = 0
    /// Seconds of the fleet's time.
    public var seconds = 0.0
  }

  let world: World
  let scenario: Scenario
  let node: BrokerNode
  let store: SharedStore
  private(set) var workers: [WorkerProcess] = []
  private(set) var providers: [ProviderHouse] = []
  private let books: Books
  private let producer: Producer
  private let devices: Devices
  private var nemesis: Nemesis?
  private let workload: Workload
  private let folder: String
  private var delays = Delays()

  /// - Parameters:
  ///   - kinds: what befalls the fleet; nil for what the seed chooses.
  ///   - events: which of it, by their places in time; nil for all.
  public init(seed: UInt64, kinds: Set<Affliction>? = nil, events: Set<Int>? = nil, keepsTrace: Bool = false) throws {
    world = World(seed: seed, keepsTrace: keepsTrace)
    scenario = Scenario(seed: seed, &world.random, isDivided: kinds?.contains(where: \.isOfApps) ?? false)
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    folder = "\(memory)/pushfleet-simulation-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let chance = StoreChance(seed: world.random.next()) { [unowned world] in world.wallClock }
    store = SharedStore(try openRegistry(sqlite: "\(folder)/registry.db", chance: chance, limits: RegistryLimits()))
    var settings = BrokerSettings()
    // Longer than a worker keeps what it has taken from a hold queue to try its provider with; RabbitMQ's default is the longest.
    settings.consumerTimeout = Double(Int.random(in: 800...1_800, using: &world.random))
    settings.consumerTimeoutCheck = 10
    node = BrokerNode(settings: settings, in: world)
    books = Books(world)
    let books = books
    node.broker.observer = { event, _ in books.observe(event) }
    books.party = { [unowned node] in node.party(of: $0) }
    books.lastAlarmEnd = { [unowned node] in node.lastAlarmEnd }
    let all = 0...scenario.apps
    for number in 0..<Scenario.apnsHouses {
      let served = scenario.addresses(.apns, of: all.filter { $0 % Scenario.apnsHouses == number })
      providers.append(try ProviderHouse(.apns, at: served, in: world))
    }
    providers.append(try ProviderHouse(.fcm, at: scenario.addresses(.fcm, of: all), in: world))
    for provider in providers { books.follow(provider.journal) }
    let setups = try scenario.setups()
    for number in 0..<scenario.workers {
      let worker = WorkerProcess("worker \(number)", setups, store: store, in: world)
      worker.ended = { [books, unowned node, name = worker.name] in books.ended(name, connections: node.connections(of: name)) }
      workers.append(worker)
    }
    producer = try Producer(in: world)
    devices = Devices(providers.map(\.journal), producer, books, in: world)
    workload = try Workload(scenario, producer, books, store.store, in: world)
    world.network.sliceOneIn = [0, 0, 3, 20][Int.random(in: 0...3, using: &world.random)]
    let nemesis = Nemesis(self, world, selection: .init(kinds: kinds, events: events))
    books.judgesCopies = !nemesis.kinds.contains(where: \.mayDelayCopies)
    books.mayDropReplies = nemesis.kinds.contains(where: \.mayDropReplies)
    if nemesis.kinds.contains(.workerSkewed) { books.tolerance += Nemesis.mostSkew }
    if nemesis.kinds.contains(.pathStalled) { books.tolerance += 30_000 }
    self.nemesis = nemesis
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  // MARK: running

  public func run() -> Outcome {
    for worker in workers {
      let delay = Double(Int.random(in: 0...500, using: &world.random)) / 1000
      world.schedule(after: delay) { worker.start() }
    }
    workload.plan()
    devices.begin()
    watchBounds()
    world.run(seconds: scenario.duration + 60) { [world] in world.hasFailed }
    for worker in workers { worker.start() }
    resumeCampaigns()
    let longestRest = Self.longestRest + scenario.duration
    var nextLook = 0.0
    let hasCome = world.run(seconds: longestRest) { [self] in
      if world.hasFailed { return true }
      guard world.elapsed >= nextLook else { return false }
      nextLook = world.elapsed + Self.restInterval
      return isAtRest
    }
    books.readJournals()
    if !hasCome { world.fail("not at rest after \(Int(longestRest)) s: \(unrest)") }
    if !world.hasFailed { audit() }
    let outcome = outcome
    for worker in workers { worker.kill() }
    world.end()
    return outcome
  }

  /// Seconds after the last trouble, and as long as it may have lasted, until everything has to be at rest: a retry waits for an hour at most, by
  /// chance for a fifth longer, and comes a step of the ladder late.
  private static let longestRest = 4_500.0
  /// Seconds between two looks at whether everything is at rest.
  private static let restInterval = 0.1

  /// Every minute of calm: an operator lets campaigns go on that are held, as so many tokens were refused. Nothing else ends them.
  private func resumeCampaigns() {
    do throws(RegistryError) {
      for campaign in try store.store.campaigns(limit: 1_000) where campaign.state == .held {
        world.note("an operator resumes the campaign of \(String(decoding: campaign.description.messageID, as: UTF8.self))")
        _ = try store.store.setState(.running, of: campaign.description.id, now: world.wallClock)
      }
    } catch {
      world.fail("campaigns can't be resumed: \(error)")
    }
    world.schedule(after: 60) { [self] in resumeCampaigns() }
  }

  /// Every second: no worker has more in hand than its prefetch allows.
  private func watchBounds() {
    let holds = node.broker.queueNames.count { $0.hasPrefix("push.hold.") }
    let mayBeStuck = nemesis?.kinds.contains(where: \.mayHoldConfirms) == true
    for worker in workers {
      guard let report = worker.report else { continue }
      let most = scenario.mostInHand(
        holds: holds, orphans: report.orphans, unconfirmed: mayBeStuck ? report.unconfirmed : 0)
      if report.inHand > most { world.fail("\(worker.name) has \(report.inHand) requests in hand") }
    }
    world.schedule(after: 1) { [self] in watchBounds() }
  }

  /// Nothing is left in the queues but what waits for a worker of a later version.
  private var isAtRest: Bool {
    guard producer.isDone, node.broker.isRunning else { return false }
    let kept = books.kept.reduce(0) { $0 + books.copies.waiting(of: $1) }
    var left = 0
    for queue in node.broker.queueNames where Books.isTaken(queue) {
      if let depth = node.broker.depth(of: queue) { left += depth.ready + depth.unacknowledged + depth.deadLetters }
    }
    return left == kept
  }

  /// A request to one device of one of the providers, for which there is time.
  func mayBeSent(_ id: String, to platforms: Set<Platform>, for seconds: Double) -> Bool {
    guard let request = books.requests[id], case .tokens(let tokens) = request.audience, tokens.count == 1, !request.isRefused
    else { return false }
    return request.deadline > world.wallClock + Int64(seconds * 1000)
      && platforms.contains(Workload.platform(of: FinalAudit.own(tokens[0])))
  }

  private var unrest: String {
    let queues = node.broker.queueNames.filter(Books.isTaken).compactMap { queue in
      node.broker.depth(of: queue).flatMap { $0.isEmpty ? nil : "\(queue) \($0)" }
    }
    return ((producer.isDone ? [] : ["the producer isn't done"]) + queues).joined(separator: ", ")
  }

  private func audit() {
    let audit = FinalAudit(
      books: books, store: store.store, world: world, afflictions: nemesis?.kinds ?? [],
      losses: nemesis?.losses ?? 0, calm: nemesis?.calm ?? Calm(), troubles: nemesis?.appTroubles ?? AppTroubles())
    audit.run()
    delays = audit.checkApps()
  }

  private var outcome: Outcome {
    Outcome(
      seed: world.seed, failures: world.failures, afflictions: nemesis?.kinds ?? [], events: nemesis?.count ?? 0,
      traceHash: world.trace.hash,
      trace: world.trace.lines, requests: books.requests.count, pushes: books.pushes, duplicates: books.duplicates,
      delays: delays, timed: books.timed, timedAfterTrouble: books.timedAfterTrouble, seconds: world.elapsed)
  }
}
