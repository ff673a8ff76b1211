import BrokerModel
import Wire

final class BrokerNode: Participant {
  static let address = "broker:5672"

  let broker: VirtualBroker
  /// The participant that made each connection, by connection number.
  private var dialers: [Int: String] = [:]
  /// When the last alarm ended: data written before is read then.
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

  func participant(of client: Client) -> String { dialers[client.number] ?? "" }

  func connections(of participant: String) -> some Sequence<Int> { dialers.lazy.filter { $0.value == participant }.map(\.key) }

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
