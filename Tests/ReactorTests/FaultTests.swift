import Glibc
import TestSupport
import Testing
import Wire

@testable import Reactor

private final class TurnCounter: TurnHook {
  var count = 0
  func turnEnding(at now: MonotonicTime) { count += 1 }
}

@Suite struct FaultTests {
  @Test("a peer that closes its sending side still gets what was on its way")
  func halfClosed() throws {
    let network = try Network()
    let client = RawSocket(to: network.listener.port)
    client.send([1, 2, 3])
    client.finishWriting()
    #expect(network.loop.run { network.accepted.first?.ends.isEmpty == false })
    #expect(network.accepted[0].ends == [.closedByPeer])
    var got: [UInt8] = []
    #expect(
      network.loop.run {
        let bytes = client.receive()
        got += bytes ?? []
        return bytes == []
      })
    #expect(got == [1, 2, 3])
  }

  @Test("a reset ends the link with the kernel's reason, paused or not", arguments: [false, true])
  func reset(isPaused: Bool) throws {
    let network = try Network()
    var client: RawSocket? = RawSocket(to: network.listener.port)
    #expect(network.loop.run { network.accepted.first?.isOpen == true })
    let server = network.accepted[0]
    server.transport?.isReadingPaused = isPaused
    network.loop.turn(waitingAtMost: 0)
    client?.resetOnClose()
    client = nil
    #expect(network.loop.run { !server.ends.isEmpty })
    #expect(server.ends == [.failed(isPaused ? "Connection reset by peer" : "recv: Connection reset by peer")])
  }

  @Test("a paused link whose peer has closed does not make the loop spin")
  func pausedAndClosed() throws {
    let network = try Network()
    var client: RawSocket? = RawSocket(to: network.listener.port)
    #expect(network.loop.run { network.accepted.first?.isOpen == true })
    let server = network.accepted[0]
    server.transport?.isReadingPaused = true
    network.loop.turn(waitingAtMost: 0)
    client?.send([1])
    client = nil
    let counter = TurnCounter()
    network.loop.afterEvents(counter)
    _ = network.loop.run(atMost: 0.1) { false }
    #expect(counter.count < 10)
    server.transport?.isReadingPaused = false
    #expect(network.loop.run { server.ends == [.closedByPeer] })
    #expect(server.incoming == [1])
  }

  @Test("a client that hangs up inside the TLS handshake is named so")
  func handshakeCutOff() throws {
    let network = try Network(tls: Security.tls.server())
    let client = RawSocket(to: network.listener.port)
    client.send([0x16, 3, 1, 0, 5, 1])
    client.finishWriting()
    #expect(network.loop.run { network.accepted.first?.ends.isEmpty == false })
    #expect(network.accepted[0].ends == [.handshakeFailed("the peer closed the connection during the handshake")])
  }

  @Test("half a TLS record does not make the loop spin, and a cut inside it is no orderly close")
  func truncation() throws {
    let network = try Network(tls: Security.tls.server(), make: { Peer() })
    let far = Peer()
    let near = Peer()
    near.whenReceiving = { peer in
      far.send(peer.incoming)
      peer.incoming = []
    }
    defer { (near.whenReceiving, far.whenReceiving) = (nil, nil) }
    var isHolding = false
    far.whenReceiving = { peer in
      guard !isHolding else { return }
      near.send(peer.incoming)
      peer.incoming = []
    }
    let relay = try Listener(loop: network.loop, host: "127.0.0.1", port: 0) { _ in near }
    _ = network.connect(far)
    let client = Peer()
    let link = Link(loop: network.loop, machine: client, to: relay.endpoint, tls: try Security.tls.client())
    link.start()
    #expect(network.loop.run { client.isOpen && network.accepted[0].isOpen })

    isHolding = true
    network.accepted[0].send([UInt8](repeating: 1, count: 10_000))
    #expect(network.loop.run { far.incoming.count > 10_000 })
    near.send(Array(far.incoming[..<5000]))
    let counter = TurnCounter()
    network.loop.afterEvents(counter)
    _ = network.loop.run(atMost: 0.2) { false }
    #expect(counter.count < 20)
    #expect(client.incoming.isEmpty)

    near.isFinished = true
    near.transport?.outputReady()
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.failed("the peer closed without a TLS close notification")])
  }

  @Test("an address that swallows connections is passed over within a second")
  func blackHole() throws {
    let network = try Network()
    // A full backlog drops what comes after.
    let hole = try Socket.listening(on: #require(Resolver.numeric(Endpoint(host: "127.0.0.1", port: 0))))
    listen(hole.raw, 0)
    let holeAddress = Socket.localAddress(hole.raw)
    let filler = RawSocket(to: holeAddress.endpoint.port)
    _ = filler
    let outcome = Outcome()
    let connector = Connector(network.loop, network.listener.endpoint, outcome)
    let good = try #require(Resolver.numeric(network.listener.endpoint))
    let start = network.loop.now
    connector.start(trying: [holeAddress, good])
    #expect(network.loop.run { outcome.address != nil })
    #expect(outcome.address == network.listener.endpoint)
    #expect((0.25..<1).contains(network.loop.now.seconds(since: start)))
    #expect(outcome.failure == nil)
  }

  @Test("a host that swallowed a connection and is back is found before the kernel asks it again")
  func hostIsBack() throws {
    let loop = try EventLoop()
    let host = try Socket.listening(on: #require(Resolver.numeric(Endpoint(host: "127.0.0.1", port: 0))))
    listen(host.raw, 0)
    let address = Socket.localAddress(host.raw)
    let filler = RawSocket(to: address.endpoint.port)
    _ = filler
    let outcome = Outcome()
    let connector = Connector(loop, address.endpoint, outcome, repeatSeconds: 0.1)
    connector.start(trying: [address])
    #expect(!loop.run(atMost: 0.35) { outcome.address != nil })
    let start = loop.now
    close(accept(host.raw, nil, nil))
    #expect(loop.run { outcome.address != nil })
    #expect(outcome.failure == nil)
    #expect(loop.now.seconds(since: start) < 0.5)
    #expect(loop.owned.count == 0)
  }

  @Test("all addresses are named when all fail")
  func allFail() throws {
    let loop = try EventLoop()
    let ports = try (0..<2).map { _ in
      let listener = try Listener(loop: loop, host: "127.0.0.1", port: 0) { _ in nil }
      defer { listener.close() }
      return listener.endpoint
    }
    let outcome = Outcome()
    Connector(loop, ports[0], outcome).start(trying: ports.compactMap { Resolver.numeric($0) })
    #expect(loop.run { outcome.failure != nil })
    #expect(outcome.failure == "\(ports[0]): Connection refused; \(ports[1]): Connection refused")
    #expect(loop.owned.count == 0)
  }

  @Test("the families of a name's addresses take turns")
  func families() throws {
    let addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3", "::1", "::2"].compactMap {
      Resolver.numeric(Endpoint(host: $0, port: 1))
    }
    #expect(Resolver.alternating(addresses).map(\.endpoint.host) == ["127.0.0.1", "::1", "127.0.0.2", "::2", "127.0.0.3"])
  }

  @Test("out of descriptors, connections that stand go on, nothing spins, and all recovers")
  func exhaustion() async {
    // In a process of its own: the limit is the whole process's.
    await #expect(processExitsWith: .success) { try runOutOfDescriptors() }
  }
}

/// How an attempt to connect has ended.
private final class Outcome: ConnectorHandler {
  var address: Endpoint?
  var failure: String?
  func connected(_ descriptor: consuming Descriptor, to address: SocketAddress) { self.address = address.endpoint }
  func connectingFailed(_ reason: String) { failure = reason }
}

private func runOutOfDescriptors() throws {
  let network = try Network()
  let client = Peer(sending: [1])
  _ = network.connect(client)
  try #require(network.loop.run { client.incoming == [1] })
  // One number is left for a client; the server's side of it finds none.
  var spare: [Int32] = []
  let next = dup(0)
  var limit = rlimit(rlim_cur: rlim_t(next + 3), rlim_max: rlim_t(next + 1000))
  try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
  close(next)
  // What the process itself has open for a moment as it begins is there to be taken only later.
  var found: [Int32] = []
  repeat {
    found = remainingDescriptors()
    spare += found
    _ = network.loop.run(atMost: 0.2) { false }
  } while !found.isEmpty
  close(spare.removeLast())
  let waiting = RawSocket(to: network.listener.port)
  let counter = TurnCounter()
  network.loop.afterEvents(counter)
  _ = network.loop.run(atMost: 0.5) { false }
  try #require(counter.count < 100)
  try #require(network.accepted.count == 1)
  // A connection attempt fails with a reason instead.
  spare += remainingDescriptors()
  let late = Peer()
  _ = network.connect(late)
  try #require(network.loop.run { !late.ends.isEmpty })
  try #require(late.ends == [.connectFailed("\(network.listener.endpoint): Too many open files")])
  client.send([2])
  try #require(network.loop.run { client.incoming == [1, 2] })
  for raw in spare { close(raw) }
  // The process itself may have opened some meanwhile, so the freed numbers may be too few.
  limit.rlim_cur = limit.rlim_max
  try #require(setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
  waiting.send([7])
  try #require(network.loop.run { waiting.receive() == [7] })
}

/// All that the process may still open.
private func remainingDescriptors() -> [Int32] {
  var taken: [Int32] = []
  while true {
    let raw = dup(0)
    if raw < 0 { return taken }
    taken.append(raw)
  }
}
