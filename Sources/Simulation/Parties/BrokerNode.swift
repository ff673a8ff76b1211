import BrokerModel
import Wire

/// The broker's process.
final class BrokerNode: Party {
  static let address = "broker:5672"

  let broker: VirtualBroker

  init(settings: BrokerSettings, in world: World) {
    broker = VirtualBroker(settings: settings)
    super.init("broker", in: world)
    world.network.listen(at: Self.address, self) { [unowned self] in
      if let machine = broker.accept() { .success(machine) } else { .failure(.init(how: .refused)) }
    }
  }

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
      broker.clearAlarm(at: world.now)
      wake()
    }
  }
}
