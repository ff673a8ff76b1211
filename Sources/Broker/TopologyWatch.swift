import AMQP
import Logging
import Wire

/// Checks every few seconds whether the fleet's exchanges, queues and bindings exist, and requests a new declaration if some
/// are missing. If the return exchange is missing, for example, messages of the ladder wait and no queue shows them.
///
/// Exchanges are inspected. Bindings are declared: this restores a missing binding, changes nothing otherwise, and fails if the
/// queue is missing. Queues are not inspected, because a queue without a leader delays the answer.
package final class TopologyWatch {
  /// Seconds between two checks.
  private static let pause = 5.0
  /// Seconds after which RabbitMQ has retried unroutable messages: it retries every three minutes (`rabbit_fifo_dlx_worker`).
  private static let longestReturn = 200.0

  private let topology: Topology
  private let time: Turn
  private let log: Log
  /// The connection, if it can be used.
  private let publisher: () -> Publisher?
  private let restore: () -> Void
  private var isLooking = false
  /// The object that the last check missed; nil if nothing was missing.
  private var missing: String?
  private var returnMissingAt: MonotonicTime?
  /// When the last successful check began.
  private var soundAt: MonotonicTime?
  /// True if the last check found the exchanges of divided lanes.
  private var wasDivided = false
  /// False after the broker has refused a binding to this user.
  private var mayBind = true

  package init(
    _ topology: Topology, time: Turn, log: Log, publisher: @escaping () -> Publisher?, restore: @escaping () -> Void
  ) {
    self.topology = topology
    self.time = time
    self.log = log
    self.publisher = publisher
    self.restore = restore
  }

  package func start() {
    time.schedule(after: Self.pause) { [weak self] in
      self?.look()
      self?.start()
    }
  }

  /// True if nothing has been missing since `start`, and no message still waits for an object that was missing before.
  package func isSound(since start: MonotonicTime) -> Bool {
    guard let soundAt, soundAt >= start else { return false }
    return returnMissingAt.map { time.now.seconds(since: $0) > Self.longestReturn } ?? true
  }

  /// Checks the return exchange before the topology is declared. A broker without the ladder has no messages that wait for it.
  package func lookFirst(_ publisher: Publisher, _ then: @escaping () -> Void) {
    guard let step = topology.ladder.first else { return then() }
    publisher.perform(.queueInspect(name: topology.retryQueue(step))) { [weak self, unowned publisher] answer in
      guard let self, case .success = answer else { return then() }
      publisher.perform(.exchangeInspect(name: topology.returnExchange)) { [weak self] answer in
        if let self, case .failure(.notFound(let what)) = answer { missed(what, topology.returnExchange) }
        then()
      }
    }
  }

  package func look() {
    guard !isLooking, let publisher = publisher() else { return }
    isLooking = true
    let names = [topology.returnExchange] + topology.exchanges.map(\.name).filter { $0 != topology.returnExchange }
    let inspections = names.map { Command.exchangeInspect(name: $0) }
    let start = time.now
    guard mayBind, topology.laneQueues > 1 else {
      return look(for: (inspections + (mayBind ? topology.bindingCommands : []))[...], on: publisher, since: start)
    }
    publisher.findDivision(topology) { [weak self, unowned publisher] answer in
      guard let self else { return }
      let isDivided = answer ?? wasDivided
      if wasDivided, !isDivided {
        log.error(
          "the exchanges of the lanes are gone. `pushfleet topology` with `laneQueues: 1` deletes them. Otherwise new requests become "
            + "dead letters until `pushfleet topology` runs")
      }
      wasDivided = isDivided
      let bindings = topology.bindingCommands + (isDivided ? topology.entrances : [])
      look(for: (inspections + bindings)[...], on: publisher, since: start)
    }
  }

  private func look(for commands: ArraySlice<Command>, on publisher: Publisher, since start: MonotonicTime) {
    guard let command = commands.first else {
      isLooking = false
      soundAt = start
      return declared()
    }
    publisher.perform(command) { [weak self, unowned publisher] answer in
      guard let self else { return }
      switch answer {
      case .success: look(for: commands.dropFirst(), on: publisher, since: start)
      case .failure(.accessRefused(let what)):
        if mayBind { log.warning("bindings are not checked: the broker does not let this user declare them", ["reason": what]) }
        mayBind = false
        look(for: [], on: publisher, since: start)
      case .failure(let reason):
        isLooking = false
        guard case .notFound(let what) = reason else { return }
        if case .exchangeInspect(let name) = command { missed(what, name) } else { missed(what) }
        restore()
      }
    }
  }

  private func missed(_ what: String, _ exchange: String? = nil) {
    if exchange == topology.returnExchange { returnMissingAt = time.now }
    guard missing != what else { return }
    missing = what
    log.error(
      "a part of the topology is gone: declaring all of it again. Messages that the broker could not route come back within minutes",
      ["missing": what])
  }

  package func declared() {
    guard let what = missing else { return }
    missing = nil
    log.warning("the topology is whole again", ["was_missing": what])
  }
}
