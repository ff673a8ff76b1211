import HTTP2
import Providers
import Reactor
import TestSupport
import Wire

/// A pool's surroundings in memory: a clock that only the test moves, and connections to scripted servers.
final class VirtualWorld: Dialer, PoolClock {
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

  private(set) var now = MonotonicTime(nanoseconds: 1_000_000_000_000)
  /// Moves with `now`; a test makes it jump.
  var wallClock: Int64 = 1_800_000_000_000
  private(set) var connections: [Connection] = []
  var answerDial: (DialTarget) -> Dial = { _ in .fail(.connectFailed("nobody there")) }
  private var timers: [(at: MonotonicTime, number: Int, body: () -> Void)] = []
  private var timerCount = 0

  func dial(_ machine: any Machine, to target: DialTarget) -> any Transport {
    let connection = Connection(machine, target, at: now)
    connections.append(connection)
    return connection.client
  }

  func schedule(at time: MonotonicTime, _ body: @escaping () -> Void) {
    timerCount += 1
    timers.append((time, timerCount, body))
  }

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

  private func move(to time: MonotonicTime) {
    wallClock += (time.nanoseconds - now.nanoseconds) / 1_000_000
    now = time
  }

  private func nextDeadline() -> MonotonicTime? {
    var next = timers.map(\.at).min() ?? .distantFuture
    for connection in connections where connection.isOpen && connection.client.end == nil {
      next = min(next, connection.client.machine.deadline)
    }
    return next == .distantFuture ? nil : next
  }

  private func runDueTimers() -> Bool {
    let due = timers.filter { $0.at <= now }.sorted { ($0.at, $0.number) < ($1.at, $1.number) }
    timers.removeAll { $0.at <= now }
    for timer in due { timer.body() }
    return !due.isEmpty
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
