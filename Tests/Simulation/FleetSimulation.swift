import BrokerModel
import DeviceRegistry
import Foundation
import PushCore
import Wire
import Worker

/// A whole fleet in one thread: workers, broker, providers, registry, a producer, and faults.
public final class FleetSimulation {
  /// The outcome of a run.
  public struct Outcome: Sendable {
    public var seed: UInt64
    public var failures: [String]
    public var faultKinds: [FaultKind]
    /// Number of planned events.
    public var events: Int
    /// The same for each run of the seed.
    public var traceHash: UInt64
    public var trace: [String]
    public var requests = 0
    public var pushes = 0
    public var duplicates = 0
    /// Longest waits while only other applications had faults, and after an application's fault.
    public var delays = Delays()
    /// Number of requests with a known latest send time, and of those delayed by a fault.
    public var timed = 0
    public var timedAfterFault = 0
    /// Simulated seconds.
    public var seconds = 0.0
  }

  let world: World
  let scenario: Scenario
  let node: BrokerNode
  let store: SharedStore
  private(set) var workers: [WorkerProcess] = []
  private(set) var providers: [SimulatedProvider] = []
  private let recorder: OutcomeRecorder
  private let producer: Producer
  private let devices: Devices
  /// Nil if each lane has one queue.
  private var lanesOperator: Operator?
  private var faultInjector: FaultInjector?
  private let workload: Workload
  private let folder: String
  private var delays = Delays()

  /// - Parameters:
  ///   - kinds: the kinds of faults; nil for the seed's choice.
  ///   - events: the events to keep, by their order in time; nil for all.
  ///   - isPlain: each lane has one queue, and each broadcast one chain of pages, whatever the seed chooses.
  public init(
    seed: UInt64, kinds: Set<FaultKind>? = nil, events: Set<Int>? = nil, isPlain: Bool = false, keepsTrace: Bool = false
  ) throws {
    world = World(seed: seed, keepsTrace: keepsTrace)
    var scenario = Scenario(seed: seed, &world.random, isDivided: kinds?.contains(where: \.isOfApps) ?? false)
    if isPlain { (scenario.laneQueues, scenario.chainPages) = (1, .max) }
    self.scenario = scenario
    let memory = FileManager.default.fileExists(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory()
    folder = "\(memory)/pushfleet-simulation-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let chance = (seed: world.random.next(), clock: { [unowned world] in world.wallClock })
    store = SharedStore(try openRegistry(.sqlite(path: "\(folder)/registry.db"), chance: chance))
    var settings = BrokerSettings()
    // Longer than a worker keeps requests from a hold queue to try their provider. The largest value is RabbitMQ's default.
    settings.consumerTimeout = Double(Int.random(in: 800...1_800, using: &world.random))
    settings.consumerTimeoutCheck = 10
    node = BrokerNode(settings: settings, in: world)
    recorder = OutcomeRecorder(world)
    let recorder = recorder
    node.broker.observer = { event, _ in recorder.observe(event) }
    recorder.participant = { [unowned node] in node.participant(of: $0) }
    recorder.lastAlarmEnd = { [unowned node] in node.lastAlarmEnd }
    let all = 0...scenario.apps
    for number in 0..<Scenario.apnsProviders {
      let served = scenario.addresses(.apns, of: all.filter { $0 % Scenario.apnsProviders == number })
      providers.append(try SimulatedProvider(.apns, at: served, in: world))
    }
    providers.append(try SimulatedProvider(.fcm, at: scenario.addresses(.fcm, of: all), in: world))
    for service in scenario.services { providers.append(try SimulatedProvider(service, in: world)) }
    for provider in providers { recorder.follow(provider) }
    let setups = try scenario.setups()
    for number in 0..<scenario.workers {
      let worker = WorkerProcess("worker \(number)", setups, store: store, in: world)
      worker.ended = { [recorder, unowned node, name = worker.name] in
        recorder.ended(name, connections: node.connections(of: name))
      }
      workers.append(worker)
    }
    producer = try Producer(in: world)
    devices = Devices(providers, producer, recorder, in: world)
    workload = try Workload(scenario, producer, recorder, store.store, in: world)
    world.network.sliceOneIn = [0, 0, 3, 20][Int.random(in: 0...3, using: &world.random)]
    let faultInjector = FaultInjector(self, world, selection: .init(kinds: kinds, events: events))
    recorder.judgesCopies = !faultInjector.kinds.contains(where: \.mayDelayCopies)
    recorder.mayDropReplies = faultInjector.kinds.contains(where: \.mayDropReplies)
    if faultInjector.kinds.contains(.workerSkewed) { recorder.tolerance += FaultInjector.mostSkew }
    if faultInjector.kinds.contains(.pathStalled) { recorder.tolerance += 30_000 }
    self.faultInjector = faultInjector
    if scenario.laneQueues > 1 {
      lanesOperator = try Operator((1...scenario.laneQueues).map { Scenario.topology(laneQueues: $0) }, in: world)
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  // MARK: running

  public func run() -> Outcome {
    for worker in workers {
      let delay = Double(Int.random(in: 0...500, using: &world.random)) / 1000
      world.schedule(after: delay) { worker.start() }
    }
    divideLanes()
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
    recorder.readJournals()
    if !hasCome { world.fail("not at rest after \(Int(longestRest)) s: \(unrest)") }
    if !world.hasFailed { audit() }
    let outcome = outcome
    for worker in workers { worker.kill() }
    world.end()
    return outcome
  }

  /// Divides the lanes before the first request, and changes the number of their queues three times.
  private func divideLanes() {
    guard let lanesOperator else { return }
    lanesOperator.divide(among: scenario.laneQueues)
    if !world.run(seconds: 300, until: { lanesOperator.isDone }) { world.fail("the lanes can't be divided") }
    var random = world.fork()
    for _ in 0..<3 {
      let queues = Int.random(in: 1...scenario.laneQueues, using: &random)
      world.schedule(after: Double.random(in: 0...scenario.duration, using: &random)) {
        lanesOperator.divide(among: queues)
      }
    }
  }

  /// Seconds after the last fault, plus its duration, until everything must be at rest. A retry waits at most an hour, by
  /// chance a fifth longer, and may be late by a step of the ladder.
  private static let longestRest = 4_500.0
  /// Seconds between checks for rest.
  private static let restInterval = 0.1

  /// Every minute, an operator resumes campaigns that were held after many refused tokens. Nothing else would end them.
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

  /// Every second, checks that no worker holds more requests than its prefetch allows.
  private func watchBounds() {
    let holds = node.broker.queueNames.count { $0.hasPrefix("push.hold.") }
    let mayBeStuck = faultInjector?.kinds.contains(where: \.mayHoldConfirms) == true
    for worker in workers {
      guard let report = worker.report else { continue }
      let most = scenario.mostInHand(
        holds: holds, orphans: report.orphans, unconfirmed: mayBeStuck ? report.unconfirmed : 0)
      if report.inHand > most { world.fail("\(worker.name) has \(report.inHand) requests in hand") }
    }
    world.schedule(after: 1) { [self] in watchBounds() }
  }

  /// True if the queues contain only messages for a later version.
  private var isAtRest: Bool {
    guard producer.isDone, node.broker.isRunning else { return false }
    let kept = recorder.kept.reduce(0) { $0 + recorder.copies.waiting(of: $1) }
    var left = 0
    for queue in node.broker.queueNames where OutcomeRecorder.isTaken(queue) {
      if let depth = node.broker.depth(of: queue) { left += depth.ready + depth.unacknowledged + depth.deadLetters }
    }
    return left == kept
  }

  /// True for a request to one device of these providers, with enough time left.
  func mayBeSent(_ id: String, to platforms: Set<Platform>, for seconds: Double) -> Bool {
    guard let request = recorder.requests[id], case .tokens(let tokens) = request.audience, tokens.count == 1,
      !request.isRefused
    else { return false }
    return request.deadline > world.wallClock + Int64(seconds * 1000)
      && platforms.contains(Workload.platform(of: FinalAudit.own(tokens[0])))
  }

  private var unrest: String {
    let queues = node.broker.queueNames.filter(OutcomeRecorder.isTaken).compactMap { queue in
      node.broker.depth(of: queue).flatMap { $0.isEmpty ? nil : "\(queue) \($0)" }
    }
    return ((producer.isDone ? [] : ["the producer isn't done"]) + queues).joined(separator: ", ")
  }

  private func audit() {
    let audit = FinalAudit(
      recorder: recorder, store: store.store, world: world, faultKinds: faultInjector?.kinds ?? [],
      losses: faultInjector?.losses ?? 0, faultFreeTimes: faultInjector?.faultFreeTimes ?? FaultFreeTimes(),
      faults: faultInjector?.appFaults ?? AppFaults())
    audit.run()
    delays = audit.checkApps()
  }

  private var outcome: Outcome {
    Outcome(
      seed: world.seed, failures: world.failures, faultKinds: faultInjector?.kinds ?? [], events: faultInjector?.count ?? 0,
      traceHash: world.trace.hash,
      trace: world.trace.lines, requests: recorder.requests.count, pushes: recorder.pushes, duplicates: recorder.duplicates,
      delays: delays, timed: recorder.timed, timedAfterFault: recorder.timedAfterFault, seconds: world.elapsed)
  }
}
