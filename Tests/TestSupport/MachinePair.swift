import MachineDriver
import Wire

/// How the bytes between the machines are divided into `receive` calls.
public enum Splitting: Sendable {
  case whole
  case bytes(Int)
  case random(seed: UInt64)
}

/// Connects two machines without sockets, with a virtual clock and a chosen division of the bytes.
///
///     let pair = MachinePair(client: session, server: simulator, splitting: .bytes(1))
///     pair.open()            // opens both and exchanges bytes until none are left
///     pair.advance(by: 30)   // reaches each deadline in order, each followed by an exchange
public final class MachinePair {
  public let client: MachineDriver
  public let server: MachineDriver
  public private(set) var now: MonotonicTime
  /// Bytes written but not yet delivered, because the receiver paused reading.
  public private(set) var toServer: [UInt8] = []
  public private(set) var toClient: [UInt8] = []
  private let splitting: Splitting
  private var generator: SeededGenerator

  public init(
    client: any Machine, server: any Machine, splitting: Splitting = .whole,
    startingAt now: MonotonicTime = MonotonicTime(nanoseconds: 1_000_000_000_000)
  ) {
    self.client = MachineDriver(client)
    self.server = MachineDriver(server)
    self.splitting = splitting
    self.now = now
    if case .random(let seed) = splitting {
      generator = SeededGenerator(seed: seed)
    } else {
      generator = SeededGenerator(seed: 0)
    }
  }

  public func open() {
    server.open(at: now)
    client.open(at: now)
    exchange()
  }

  /// Transfers bytes in both directions until nothing moves. Traps after `rounds`, so that endless machines don't hang the
  /// test.
  public func exchange(rounds: Int = 100_000) {
    for _ in 0..<rounds {
      var moved = client.checkDeadline(at: now)
      moved = server.checkDeadline(at: now) || moved
      toServer += client.collect(at: now)
      toClient += server.collect(at: now)
      moved = carry(&toServer, to: server) || moved
      moved = carry(&toClient, to: client) || moved
      moved = endTogether() || moved
      if !moved && !client.isOutputReady && !server.isOutputReady { return }
      if client.end != nil && server.end != nil { return }
    }
    preconditionFailure("the machines never fall silent")
  }

  /// Moves the clock, and stops at each deadline.
  public func advance(by seconds: Double) {
    let target = now.advanced(bySeconds: seconds)
    while let next = nextDeadline(), next <= target {
      if next > now { now = next }
      exchange()
      if let after = nextDeadline(), after <= next { break }
    }
    now = target
    exchange()
  }

  /// Cuts the connection: undelivered bytes are lost and both ends are notified.
  public func cut(_ reason: TransportEnd = .failed("connection reset")) {
    toServer.removeAll()
    toClient.removeAll()
    client.finish(reason, at: now)
    server.finish(reason, at: now)
  }

  /// Delivers bytes that the other machine never wrote, as from an attacker or a broken peer.
  public func inject(toClient bytes: [UInt8]) {
    toClient += bytes
    exchange()
  }

  public func inject(toServer bytes: [UInt8]) {
    toServer += bytes
    exchange()
  }

  private func nextDeadline() -> MonotonicTime? {
    let open = [client, server].filter { $0.isOpen }.map(\.machine.deadline)
    return open.min().flatMap { $0 == .distantFuture ? nil : $0 }
  }

  private func carry(_ wire: inout [UInt8], to driver: MachineDriver) -> Bool {
    var from = 0
    while from < wire.count, driver.isOpen, !driver.isReadingPaused {
      let size = min(pieceSize(wire.count), wire.count - from)
      driver.receive(Array(wire[from..<from + size]), at: now)
      from += size
    }
    if driver.end != nil { from = wire.count }
    wire.removeFirst(from)
    return from > 0
  }

  private func pieceSize(_ whole: Int) -> Int {
    switch splitting {
    case .whole: whole
    case .bytes(let size): size
    case .random: Bool.random(using: &generator) ? 1 : Int.random(in: 1...64, using: &generator)
    }
  }

  /// Delivers the last bytes of a side that closes, then an orderly close to the other side.
  private func endTogether() -> Bool {
    var ended = false
    for (side, other) in [(client, server), (server, client)] where side.end == nil {
      // A finished machine may still have bytes to send.
      if side.machine.isFinished {
        let last = side.collect(at: now)
        if side === client { toServer += last } else { toClient += last }
      }
      guard side.settle(at: now) else { continue }
      ended = true
      if side === client { _ = carry(&toServer, to: server) } else { _ = carry(&toClient, to: client) }
      other.settle(at: now)
      other.finish(.closedByPeer, at: now)
    }
    return ended
  }
}
