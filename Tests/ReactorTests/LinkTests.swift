import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite struct LinkTests {
  @Test("what is sent comes back from an echoing peer", arguments: Security.allCases)
  func echo(_ security: Security) throws {
    let network = try Network(tls: security.server())
    let client = Peer(sending: Array("hello".utf8))
    let link = network.connect(client, tls: try security.client())
    #expect(network.loop.run { client.incoming == Array("hello".utf8) })
    #expect(link.bufferedOutput == 0)
    #expect(client.reentrances == 0)
  }

  @Test("ten megabytes pass through full kernel buffers, whole and in order", arguments: Security.allCases)
  func large(_ security: Security) throws {
    let network = try Network(tls: security.server())
    var generator = SeededGenerator(seed: 3)
    var bytes: [UInt8] = []
    for _ in 0..<(10 << 17) { withUnsafeBytes(of: generator.next()) { bytes.append(contentsOf: $0) } }
    let client = Peer(sending: bytes)
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run(atMost: 60) { client.receivedCount == bytes.count })
    #expect(client.incoming == bytes)
  }

  @Test("bytes that come one at a time arrive in order", arguments: Security.allCases)
  func byteAtATime(_ security: Security) throws {
    let network = try Network(tls: security.server())
    let client = Peer()
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run { client.isOpen })
    for byte in UInt8(0)..<200 {
      client.send([byte])
      network.loop.turn(waitingAtMost: 0)
    }
    #expect(network.loop.run { client.incoming == Array(0..<200) })
  }

  @Test("what a flush brings up has the hooks run again at once; what comes before the hooks has not")
  func hooksAfterFlush() throws {
    final class Hook: TurnHook {
      var count = 0
      func turnEnding(at now: MonotonicTime) { count += 1 }
    }
    let network = try Network()
    let client = Peer()
    _ = network.connect(client)
    #expect(network.loop.run { client.isOpen })
    while network.loop.owned.count < 3 { network.loop.turn(waitingAtMost: 0.01) }
    let hook = Hook()
    network.loop.afterEvents(hook)
    client.whenWriting = { [weak client] in
      client?.whenWriting = nil
      network.loop.time.ensureHooksRun()
    }
    client.send([1])
    network.loop.turn(waitingAtMost: 0)
    #expect(hook.count == 1 && client.whenWriting == nil)
    let start = ContinuousClock.now
    network.loop.schedule(after: 0) { network.loop.time.ensureHooksRun() }
    network.loop.turn(waitingAtMost: 30)
    #expect(ContinuousClock.now - start < .seconds(10) && hook.count == 2)
  }

  @Test("an orderly close by one side is seen as such by both, once", arguments: Security.allCases)
  func close(_ security: Security) throws {
    let network = try Network(tls: security.server())
    let client = Peer(sending: [1])
    let link = network.connect(client, tls: try security.client())
    #expect(network.loop.run { client.incoming == [1] })
    link.close()
    link.close()
    #expect(client.ends.isEmpty, "never from within the call")
    #expect(network.loop.run { !network.accepted[0].ends.isEmpty })
    #expect(client.ends == [.closedLocally])
    #expect(network.accepted[0].ends == [.closedByPeer])
    #expect(link.end == .closedLocally)
  }

  @Test("a finished machine's last bytes arrive although the peer was still sending", arguments: Security.allCases)
  func finished(_ security: Security) throws {
    let network = try Network(tls: security.server(), make: { Peer() })
    let client = Peer(sending: [UInt8](repeating: 7, count: 100_000))
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run { network.accepted.first?.isOpen == true })
    let server = network.accepted[0]
    server.outgoing = [UInt8](repeating: 9, count: 50_000)
    server.isFinished = true
    server.transport?.outputReady()
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.incoming == [UInt8](repeating: 9, count: 50_000))
    #expect(client.ends == [.closedByPeer])
    #expect(server.ends == [.closedLocally])
  }

  @Test("a refused connection ends with a reason that names the address")
  func refused() throws {
    let network = try Network()
    let port = network.listener.port
    network.listener.close()
    let client = Peer()
    let link = Link(loop: network.loop, machine: client, to: Endpoint(host: "127.0.0.1", port: port))
    link.start()
    #expect(client.ends.isEmpty)
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.connectFailed("127.0.0.1:\(port): Connection refused")])
    #expect(!client.isOpen)
  }

  @Test("a name is resolved off the loop and its addresses are tried in turn")
  func name() throws {
    let network = try Network()
    let client = Peer(sending: [5])
    let link = Link(loop: network.loop, machine: client, to: Endpoint(host: "localhost", port: network.listener.port))
    link.start()
    #expect(network.loop.run { client.incoming == [5] })
    #expect(link.address == Endpoint(host: "127.0.0.1", port: network.listener.port))
  }

  @Test("a name without an address ends with a reason")
  func noName() throws {
    let loop = try EventLoop()
    let client = Peer()
    Link(loop: loop, machine: client, to: Endpoint(host: "nowhere.invalid", port: 1)).start()
    #expect(loop.run(atMost: 30) { !client.ends.isEmpty })
    guard case .connectFailed(let why)? = client.ends.first else {
      Issue.record("ended with \(client.ends)")
      return
    }
    #expect(why.hasPrefix("nowhere.invalid: "))
  }

  @Test("a machine that pauses reading holds its peer back, and loses nothing", arguments: Security.allCases)
  func pausing(_ security: Security) throws {
    let network = try Network(tls: security.server(), make: { Peer() })
    let total = 64 << 20
    let client = Peer()
    client.keepsIncoming = false
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run { network.accepted.first?.isOpen == true })
    let server = network.accepted[0]
    client.transport?.isReadingPaused = true
    server.send([UInt8](repeating: 1, count: total))
    for _ in 0..<200 { network.loop.turn(waitingAtMost: 0.001) }
    let held = client.receivedCount
    #expect(held == 0)
    #expect(!server.outgoing.isEmpty, "the kernel's buffers are full and the machine keeps the rest")
    client.transport?.isReadingPaused = false
    #expect(network.loop.run(atMost: 60) { client.receivedCount == total })
  }

  @Test("a machine that pauses reading can go on sending", arguments: Security.allCases)
  func pausedSender(_ security: Security) throws {
    let network = try Network(tls: security.server(), make: { Peer() })
    let client = Peer(sending: [UInt8](repeating: 1, count: 20 << 20))
    client.whenOpened = { $0.transport?.isReadingPaused = true }
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run(atMost: 30) { network.accepted.first?.receivedCount == 20 << 20 })
  }

  @Test("a machine may pause in the middle of what came and go on later", arguments: Security.allCases)
  func pausingInside(_ security: Security) throws {
    let network = try Network(tls: security.server(), make: { Peer() })
    let client = Peer()
    client.whenReceiving = { $0.transport?.isReadingPaused = true }
    _ = network.connect(client, tls: try security.client())
    #expect(network.loop.run { network.accepted.first?.isOpen == true })
    network.accepted[0].send([UInt8](repeating: 1, count: 500_000))
    var pauses = 0
    #expect(
      network.loop.run(atMost: 30) {
        if client.transport?.isReadingPaused == true {
          pauses += 1
          client.transport?.isReadingPaused = false
        }
        return client.receivedCount == 500_000
      })
    #expect(pauses > 1)
  }

  @Test("a machine may close in the middle of what came")
  func closingInside() throws {
    let network = try Network()
    let client = Peer(sending: [1, 2, 3])
    client.whenReceiving = { $0.transport?.close() }
    let link = network.connect(client)
    #expect(network.loop.run { link.end != nil })
    #expect(client.ends == [.closedLocally])
    #expect(client.reentrances == 0)
  }

  @Test("deadlines are kept, and moving one to later costs no timer")
  func deadlines() throws {
    let network = try Network()
    let client = Peer()
    _ = network.connect(client)
    #expect(network.loop.run { client.isOpen })
    let start = network.loop.now
    client.deadline = start.advanced(bySeconds: 0.02)
    client.transport?.outputReady()
    network.loop.turn(waitingAtMost: 0)
    client.deadline = start.advanced(bySeconds: 0.05)
    #expect(network.loop.run { !client.deadlinesReached.isEmpty })
    #expect(client.deadlinesReached.count == 1)
    #expect(client.deadlinesReached[0] >= start.advanced(bySeconds: 0.05))
    client.deadline = network.loop.now.advanced(bySeconds: 3600)
    client.send([1])
    client.whenReceiving = { $0.deadline = start }
    #expect(network.loop.run { client.deadlinesReached.count == 2 })
  }

  @Test("a peer that never answers the TLS handshake is given up in time")
  func handshakeTimeout() throws {
    let context = try Security.tls.client()
    let network = try Network(make: { Peer() })
    let client = Peer()
    let link = Link(
      loop: network.loop, machine: client, to: network.listener.endpoint, tls: context, options: LinkOptions(connectTimeout: 1))
    link.start()
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.handshakeFailed("timed out after 1 s")])
  }

  @Test("nothing is left of links and machines once they have ended", arguments: Security.allCases)
  func leaks(_ security: Security) throws {
    let network = try Network(tls: security.server(), make: { Peer() })
    weak var weakMachine: Peer?
    weak var weakLink: Link?
    do {
      let client = Peer(sending: [1])
      let link = network.connect(client, tls: try security.client())
      weakMachine = client
      weakLink = link
      #expect(network.loop.run { network.accepted.first?.incoming == [1] })
      link.close()
      #expect(network.loop.run { network.accepted[0].ends == [.closedByPeer] })
    }
    network.loop.turn(waitingAtMost: 0)
    #expect(weakMachine == nil)
    #expect(weakLink == nil)
    #expect(network.loop.owned.count == 1, "the listener")
  }

  @Test("a loop that goes away takes its open links with it")
  func loopGone() throws {
    weak var weakMachine: Peer?
    do {
      let network = try Network()
      let client = Peer(sending: [1])
      weakMachine = client
      _ = network.connect(client)
      #expect(network.loop.run { client.incoming == [1] })
    }
    #expect(weakMachine == nil)
  }
}
