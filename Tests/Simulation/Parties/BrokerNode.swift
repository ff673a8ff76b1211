import BrokerModel
import Wire

/// The broker's process.
final class BrokerNode: Party {
  static let address = "broker:5672"

  let broker: VirtualBroker
  /// Who has made each connection, by its number.
  private var dialers: [Int: String] = [:]
  /// When the last alarm was over: what clients had written before is read then.
  private(set) var lastAlarmEnd = MonotonicTime(nanoseconds: 0)

  init(settings: BrokerSettings, in world: World) {
    broker = VirtualBroker(settings: settings)
    super.init("broker", in: world)
    world.network.listen(at: Self.address, self) { [unowned self] dialer in
      guard let machine = broker.accept() else { return .failure(.init(how: .refused)) }
      dialers[broker.connectionCount] = dialer.name
      return .success(machine)
    }
  }

  /// Whose connection it is.
  func party(of client: Client) -> String { dialers[client.number] ?? "" }

  /// The numbers of all connections that a party has made.
  func connections(of party: String) -> some Sequence<Int> { dialers.lazy.filter { $0.value == party }.map(\.key) }

  override var ownDeadline: MonotonicTime { broker.deadline }
  override func turnBegins(at now: MonotonicTime) { broker.deadlineReached(at: now) }

  func crash(for seconds: Double) {
    guard broker.isRunning else { return }
    world.note("broker crashes")
    vanish(at: world.now)
    broker.crash(at: world.now)
    world.schedule(after: seconds) { [self] in
      world.note("broker starts")
      broker.start(at: world.now)
      wake()
    }
  }

  func freeze(for seconds: Double) {
    guard broker.isRunning, !isFrozen else { return }
    world.note("broker freezes")
    broker.freeze()
    isFrozen = true
    world.schedule(after: seconds) { [self] in
      guard isFrozen else { return }
      world.note("broker goes on")
      isFrozen = false
      broker.resume(at: world.now)
      wake()
    }
  }

  func raiseAlarm(for seconds: Double) {
    world.note("broker raises an alarm")
    broker.raiseAlarm()
    wake()
    world.schedule(after: seconds) { [self] in
      world.note("broker clears the alarm")
      lastAlarmEnd = world.now
      broker.clearAlarm(at: world.now)
      wake()
    }
  }
}
