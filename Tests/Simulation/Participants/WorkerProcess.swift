import Broker
import DeviceRegistry
import Logging
import Providers
import Reactor
import Settings
import Wire
import Worker

/// A real worker with one shard, on virtual time and the simulated network.
final class WorkerProcess: Participant, ShardHost {
  private let setups: [ShardSetup]
  private var current = 0
  private let store: SharedStore
  private var clock: Turn
  private var shard: Shard?
  private var control: ShardControl?
  private var door: StoreDoor?
  /// Milliseconds by which its clock is ahead of the world's.
  var clockSkew: Int64 = 0
  private var hasDrained = false

  init(_ name: String, _ setups: [ShardSetup], store: SharedStore, in world: World) {
    self.setups = setups
    self.store = store
    clock = Turn(now: world.now, wallClock: world.wallClock)
    super.init(name, in: world)
  }

  var isRunning: Bool { shard != nil }
  var report: ShardReport? { control?.report }

  // MARK: its life

  /// Starts the worker. Does nothing while it runs: two faults that ended it may both start it.
  func start() {
    guard !isRunning else { return }
    world.note("\(name) starts")
    clock = Turn(now: world.now, wallClock: world.wallClock + clockSkew, random: world.fork())
    hasDrained = false
    let control = ShardControl(at: world.now)
    do throws(ConfigurationError) {
      let shard = try Shard(setups[current], number: 0, isUntilEmpty: false, host: self, control: control)
      self.shard = shard
      self.control = control
      shard.start { [weak self] in self?.hasDrained = true }
    } catch {
      world.fail("\(name) can't start: \(error)")
    }
    wake()
  }

  /// Ends the worker as SIGKILL does.
  func kill() {
    guard isRunning else { return }
    world.note("\(name) is killed")
    vanish(at: world.now)
    letGo()
  }

  /// Drains the worker as SIGTERM does.
  func drain() {
    guard let shard else { return }
    world.note("\(name) drains")
    shard.drain()
    wake()
    wasFrozen = false
    world.schedule(after: Scenario.drainTimeout + Self.farewell) { [weak self, weak shard] in
      guard let self, let shard, self.shard === shard, !wasFrozen else { return }
      world.fail("\(name) still runs \(Int(Scenario.drainTimeout + Self.farewell)) s after it was to drain")
    }
  }

  /// Seconds to close the connections after the drain. With a silent broker, that takes 10 s.
  private static let farewell = 11.0
  /// True if the worker, and so its clock, was frozen since the drain began.
  private var wasFrozen = false
  override var isFrozen: Bool { didSet { if isFrozen { wasFrozen = true } } }

  /// Reloads with the next configuration, as SIGHUP does.
  func reload() {
    guard let shard else { return }
    current = (current + 1) % setups.count
    world.note("\(name) reloads")
    shard.reload(setups[current])
    wake()
  }

  var ended: () -> Void = {}

  private func letGo() {
    ended()
    door?.abandon()
    door = nil
    shard = nil
    control = nil
  }

  private func end() {
    guard let shard else { return }
    _ = shard.close()
    for end in ends { end.transmit(at: world.now) }
    vanish(at: world.now)
    letGo()
    world.note("\(name) has ended")
  }

  // MARK: turns

  override var ownDeadline: MonotonicTime {
    guard isRunning else { return .distantFuture }
    return clock.isAnotherDue || hasDrained ? world.now : clock.nextTimer
  }

  override func turnBegins(at now: MonotonicTime) { clock.begin(now: now, wallClock: world.wallClock + clockSkew) }

  override func act(at now: MonotonicTime) {
    guard let shard else { return }
    clock.runTimers()
    clock.endsEvents()
    shard.turnEnding(at: now)
    if hasDrained { end() }
  }

  // MARK: ShardHost

  var time: Turn { clock }

  var log: LogOutput {
    // The simulation has one thread. The log exists only while the shard does, and this process owns the shard.
    nonisolated(unsafe) unowned let process = self
    return LogOutput(clock: { unsafe process.clock.wallClock }, write: { line in unsafe process.noteLog(line) })
  }

  private func noteLog(_ line: [UInt8]) {
    let text = String(decoding: line.dropLast(), as: UTF8.self)
    world.note("\(name) \(text)")
    // Other lines, such as those about dead letters, repeat the text as a reason.
    guard text.contains("connection ended") else { return }
    if text.contains("no sign of life") { givesUpAfter = Self.heartbeat }
    if text.contains("did not answer a PING") { givesUpAfter = Self.answerToPing }
  }

  /// Seconds of silence that the worker has just claimed for a connection.
  private var givesUpAfter: Double?
  /// Seconds within which a working broker sends a heartbeat.
  private static let heartbeat = 10.0
  /// Half of a provider's time to answer a PING. The rest is for data that was under way.
  private static let answerToPing = 5.0

  override func closed(_ end: NetworkEnd, at now: MonotonicTime) {
    guard let least = givesUpAfter else { return }
    givesUpAfter = nil
    let silence = now.seconds(since: end.lastWord(at: now))
    if silence < least { world.fail("\(name) gave up \(end.path.name), which spoke \(silence) s before") }
  }

  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    world.network.dial(
      machine, from: self, to: "\(target.endpoint.host):\(target.endpoint.port)", timeout: target.options.connectTimeout)
  }

  func dial(_ machine: any Machine, to broker: BrokerAddress) -> any Transport {
    world.network.dial(machine, from: self, to: "\(broker.uri.host):\(broker.uri.port)", timeout: 5)
  }

  func openRegistry(_ location: RegistryLocation, _ limits: RegistryLimits, _ handler: any RegistryHandler) throws(SystemError)
    -> any RegistryDoor
  {
    let door = StoreDoor(store, time: clock, handler: handler)
    self.door = door
    return door
  }
}
