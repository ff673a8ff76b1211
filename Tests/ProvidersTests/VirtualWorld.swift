import HTTP2
import MachineDriver
import Providers
import Reactor
import TestSupport
import Wire

/// What a pool needs, in memory: a clock that only the test moves, and connections to scripted servers.
final class VirtualWorld: Dialer {
  enum Dial {
    case accept(any Machine)
    case fail(TransportEnd)
    /// Connects and says nothing, ever.
    case hang
  }

  final class Connection {
    let target: DialTarget
    let client: MachineDriver
    let dialledAt: MonotonicTime
    fileprivate(set) var server: MachineDriver?
    fileprivate var isDialled = false
    /// Bytes vanish, as on a half-open connection.
    var isDead = false

    init(_ machine: any Machine, _ target: DialTarget, at now: MonotonicTime) {
      client = MachineDriver(machine)
      self.target = target
      dialledAt = now
    }

    var isOpen: Bool { client.isOpen }
  }

  let time = Turn(
    now: MonotonicTime(nanoseconds: 1_000_000_000_000), wallClock: 1_800_000_000_000, random: RandomSource(seed: 1))
  private(set) var connections: [Connection] = []
  var answerDial: (DialTarget) -> Dial = { _ in .fail(.connectFailed("nobody there")) }

  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let connection = Connection(machine, target, at: now)
    connections.append(connection)
    return connection.client
  }

  var now: MonotonicTime { time.now }
  var wallClock: Int64 { time.wallClock }

  /// Somebody sets the machine's clock.
  func setClock(forwardBy milliseconds: Int64) { time.begin(now: now, wallClock: wallClock + milliseconds) }

  var openConnections: [Connection] { connections.filter(\.isOpen) }

  /// Carries bytes until everybody is silent.
  func settle(rounds: Int = 100_000) {
    for _ in 0..<rounds {
      var moved = runDueTimers()
      for connection in connections where connection.client.end == nil { moved = step(connection) || moved }
      if !moved { return }
    }
    preconditionFailure("the machines never fall silent")
  }

  /// Moves the clock, stopping at every timer and deadline on the way.
  func advance(by seconds: Double) {
    let target = now.advanced(bySeconds: seconds)
    settle()
    while let next = nextDeadline(), next <= target {
      move(to: max(next, now))
      settle()
    }
    move(to: target)
    settle()
  }

  /// The wire is cut under both ends.
  func cut(_ connection: Connection, _ reason: TransportEnd = .failed("connection reset")) {
    connection.client.finish(reason, at: now)
    connection.server?.finish(reason, at: now)
    settle()
  }

  private func move(to next: MonotonicTime) {
    time.begin(now: next, wallClock: wallClock + (next.nanoseconds - now.nanoseconds) / 1_000_000)
  }

  private func nextDeadline() -> MonotonicTime? {
    var next = time.nextTimer
    for connection in connections where connection.isOpen && connection.client.end == nil {
      next = min(next, connection.client.machine.deadline)
    }
    return next == .distantFuture ? nil : next
  }

  private func runDueTimers() -> Bool {
    guard time.nextTimer <= now else { return false }
    time.runTimers()
    return true
  }

  private func step(_ connection: Connection) -> Bool {
    if !connection.isDialled {
      connection.isDialled = true
      if connection.client.settle(at: now) { return true }
      switch answerDial(connection.target) {
      case .fail(let end):
        connection.client.finish(end, at: now)
        return true
      case .hang: break
      case .accept(let server):
        connection.server = MachineDriver(server)
        connection.server?.open(at: now)
      }
      connection.client.open(at: now)
      return true
    }
    var moved = connection.client.checkDeadline(at: now)
    let toServer = connection.client.collect(at: now)
    let toClient = connection.isDead ? [] : connection.server?.collect(at: now) ?? []
    if !connection.isDead { connection.server?.receive(toServer, at: now) }
    connection.client.receive(toClient, at: now)
    moved = moved || !toServer.isEmpty || !toClient.isEmpty
    if connection.client.settle(at: now) {
      connection.server?.finish(.closedByPeer, at: now)
      return true
    }
    if let server = connection.server, server.settle(at: now) {
      connection.client.finish(.closedByPeer, at: now)
      return true
    }
    return moved
  }
}
