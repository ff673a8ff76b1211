import Synchronization
import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite("The limiter in front of a host")
struct ConnectLimiterTests {
  private let host = Endpoint(host: "push.test", port: 443)

  /// Whom the limiter has called.
  private final class Called: Sendable {
    let ids = Mutex<[Int]>([])
    var call: ConnectLimiter.Call { { id in self.ids.withLock { $0.append(id) } } }
    var all: [Int] { ids.withLock { $0 } }
  }

  @Test("lets in as many as it has places, the others in their order as places become free")
  func order() {
    let (limiter, called) = (ConnectLimiter(places: 3), Called())
    var tickets: [ConnectLimiter.Ticket?] = []
    var admitted = 0
    for _ in 0..<10 {
      let (ticket, isAdmitted) = limiter.enter(host, called.call)
      tickets.append(ticket)
      admitted += isAdmitted ? 1 : 0
    }
    let ids = tickets.compactMap(\.self?.id)
    #expect(admitted == 3 && called.all.isEmpty)
    tickets[1] = nil
    #expect(called.all == [ids[3]])
    // One that has given up in the line is passed over, and whoever was called and has gone gives his place on.
    tickets[4] = nil
    tickets[3] = nil
    #expect(called.all == [ids[3], ids[5]])
    tickets = []
    #expect(limiter.enter(host, called.call).isAdmitted)
  }

  @Test("counts each host for itself")
  func hosts() {
    let (limiter, called) = (ConnectLimiter(places: 1), Called())
    let first = limiter.enter(host, called.call)
    let other = limiter.enter(Endpoint(host: "other.test", port: 443), called.call)
    #expect(first.isAdmitted && other.isAdmitted)
    withExtendedLifetime((first.ticket, other.ticket)) {}
  }

  @Test("keeps links waiting until one is through or has failed")
  func links() throws {
    let network = try Network()
    let limiter = ConnectLimiter(places: 1)
    var held: ConnectLimiter.Ticket? = limiter.enter(network.listener.endpoint, { _ in }).ticket
    let clients = (0..<3).map { _ in Peer() }
    let links = clients.map { client in
      Link(loop: network.loop, machine: client, to: network.listener.endpoint, options: LinkOptions(limiter: limiter))
    }
    for link in links { link.start() }
    network.loop.turn(waitingAtMost: 0)
    network.loop.turn(waitingAtMost: 0)
    #expect(clients.allSatisfy { !$0.isOpen })
    links[1].close()
    #expect(network.loop.run { clients[1].ends == [.closedLocally] })
    withExtendedLifetime(held) {}
    held = nil
    #expect(network.loop.run { clients[0].isOpen && clients[2].isOpen })
  }
}
