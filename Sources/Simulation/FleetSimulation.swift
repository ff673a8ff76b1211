import BrokerModel
import Foundation
import PushCore
import Storage
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
  private var nemesis: Nemesis?
  private let folder: String
  /// Of each application's topic.
  private var members: [[String]] = []

  /// - Parameters:
  ///   - kinds: what befalls the fleet; nil for what the seed chooses.
  ///   - events: which of it, by their places in time; nil for all.
  public init(seed: UInt64, kinds: Set<Affliction>? = nil, events: Set<Int>? = nil, keepsTrace: Bool = false) throws {
    world = World(seed: seed, keepsTrace: keepsTrace)
    scenario = Scenario(&world.random)
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    folder = "\(memory)/pushfleet-simulation-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let chance = StoreChance(seed: world.random.next()) { [unowned world] in world.wallClock }
    store = SharedStore(try openStore(sqlite: "\(folder)/registry.db", chance: chance, limits: RegistryLimits()))
    var settings = BrokerSettings()
    settings.consumerTimeout = Double(Int.random(in: 100...400, using: &world.random))
    settings.consumerTimeoutCheck = 10
    node = BrokerNode(settings: settings, in: world)
    books = Books(world)
    let books = books
    node.broker.observer = { event, _ in books.observe(event) }
    for number in 0..<2 {
      let place = Scenario.apnsAddress(number)
      providers.append(try ProviderHouse(.apns, at: "\(place.host):\(place.port)", in: world))
    }
    providers.append(try ProviderHouse(.fcm, at: "\(Scenario.fcmAddress.host):\(Scenario.fcmAddress.port)", in: world))
    for provider in providers { books.follow(provider.journal) }
    let setup = try scenario.setup()
    for number in 0..<scenario.workers { workers.append(WorkerProcess("worker \(number)", setup, store: store, in: world)) }
    producer = try Producer(books, in: world)
    world.network.sliceOneIn = [0, 0, 3, 20][Int.random(in: 0...3, using: &world.random)]
    try register()
    let nemesis = Nemesis(self, world, over: scenario.duration, selection: .init(kinds: kinds, events: events))
    if nemesis.kinds.contains(.pathStalled) { books.tolerance = 30_000 }
    self.nemesis = nemesis
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  private func register() throws {
    for app in 0..<scenario.apps {
      var changes: [RegistryChange] = []
      var tokens: [String] = []
      for device in 0..<scenario.devices {
        let platform: Platform = device % 3 == 0 ? .fcm : .apns
        let token = Self.token(platform, app: app, number: 1_000 + device)
        var registration = Registration(app: Array(Scenario.app(app).utf8), platform: platform, token: Array(token.utf8))
        registration.topics = [Array("all".utf8)]
        changes.append(.register(registration))
        tokens.append(token)
      }
      members.append(tokens)
      if !changes.isEmpty { _ = try store.store.apply(changes, now: world.wallClock) }
    }
  }

  static func token(_ platform: Platform, app: Int, number: Int) -> String {
    let digits = String(app * 100_000 + number)
    switch platform {
    case .apns: return String(repeating: "0", count: 64 - digits.count) + digits
    case .fcm: return "device-\(digits):" + String(repeating: "A", count: 60)
    }
  }

  /// Whose device a token is.
  static func app(of token: String) -> Int {
    let digits = token.hasPrefix("device-") ? token.dropFirst(7).prefix { $0 != ":" } : token[...]
    return (Int(digits) ?? 0) / 100_000
  }

  // MARK: running

  public func run() -> Outcome {
    for worker in workers {
      let delay = Double(Int.random(in: 0...500, using: &world.random)) / 1000
      world.schedule(after: delay) { worker.start() }
    }
    planRequests()
    watchBounds()
    world.run(seconds: scenario.duration + 60) { [world] in world.hasFailed }
    for worker in workers { worker.start() }
    let hasCome = world.run(seconds: Self.longestRest) { [self] in world.hasFailed || isAtRest }
    books.readJournals()
    if !hasCome { world.fail("not at rest after \(Int(Self.longestRest)) s: \(unrest)") }
    if !world.hasFailed { audit() }
    let outcome = outcome
    for worker in workers { worker.kill() }
    world.end()
    return outcome
  }

  /// Seconds after the last trouble until everything has to be at rest.
  private static let longestRest = 3_600.0

  private func planRequests() {
    var random = world.fork()
    for number in 0..<(scenario.requests + scenario.broadcasts) {
      let time = Double.random(in: 0...scenario.duration, using: &random)
      let app = Int.random(in: 0..<scenario.apps, using: &random)
      let lifetime: Int? = [nil, nil, nil, 60, 600, 0][Int.random(in: 0...5, using: &random)]
      let lane = random.next() % 4 == 0 ? "high" : "normal"
      var audience = Request.Audience.everybody
      if number < scenario.requests {
        let count = random.next() % 5 == 0 ? Int.random(in: 2...8, using: &random) : 1
        // Devices that no other request names.
        audience = .tokens(
          (0..<count).map { place in
            let platform: Platform = random.next() % 4 == 0 ? .fcm : .apns
            let token = Self.token(platform, app: app, number: 10_000 + number * 10 + place)
            return (platform == .fcm ? "fcm:" : "apns:") + token
          })
      }
      // The same announcement to two applications.
      let isForTwo = number >= scenario.requests && random.next() % 2 == 0
      world.schedule(after: time) { [self] in
        var request = Request(
          number: number, app: app, audience: audience, lifetime: lifetime, lane: lane,
          publishedAt: world.wallClock / 1000 * 1000, messageID: "r-\(number)")
        producer.publish(request)
        guard isForTwo else { return }
        request.app = (app + 1) % scenario.apps
        request.number += 10_000
        producer.publish(request)
      }
    }
  }

  /// Every second: no worker holds more than its prefetch allows.
  private func watchBounds() {
    for worker in workers {
      guard let held = worker.held, held > Scenario.mostHeld else { continue }
      world.fail("\(worker.name) holds \(held) requests")
    }
    world.schedule(after: 1) { [self] in watchBounds() }
  }

  private var isAtRest: Bool {
    producer.isDone && node.broker.isRunning
      && node.broker.queueNames.allSatisfy { !Books.isWork($0) || node.broker.depth(of: $0)?.isEmpty != false }
  }

  private var unrest: String {
    let queues = node.broker.queueNames.filter(Books.isWork).compactMap { queue in
      node.broker.depth(of: queue).flatMap { $0.isEmpty ? nil : "\(queue) \($0)" }
    }
    return ((producer.isDone ? [] : ["the producer isn't done"]) + queues).joined(separator: ", ")
  }

  private func audit() {
    FinalAudit(
      books: books, broker: node.broker, world: world, members: members, afflictions: nemesis?.kinds ?? [],
      workerStarts: workers.reduce(0) { $0 + $1.starts }
    ).run()
  }

  private var outcome: Outcome {
    Outcome(
      seed: world.seed, failures: world.failures, afflictions: nemesis?.kinds ?? [], events: nemesis?.count ?? 0,
      traceHash: world.trace.hash,
      trace: world.trace.lines, requests: books.requests.count, pushes: books.pushes, duplicates: books.duplicates,
      seconds: world.elapsed)
  }
}
