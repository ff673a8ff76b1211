import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite("A link through a proxy")
struct ProxyTests {
  /// Never resolved here.
  private static let peer = Endpoint(host: "provider.invalid", port: 443)

  private func dial(
    _ client: Peer, _ network: Network, through proxy: ProxyAddress, _ security: Security = .plain, name: String = "127.0.0.1",
    timeout: Double = 10
  ) throws -> Link {
    let link = Link(
      loop: network.loop, machine: client, to: Self.peer, tls: try security.client(), serverName: name,
      options: LinkOptions(connectTimeout: timeout, proxy: proxy))
    link.start()
    return link
  }

  /// Why a link through a proxy with this answer fails.
  private func refusal(
    _ answer: String, _ manner: TestProxy.Manner = .atOnce, timeout: Double = 10, login: String = ""
  ) throws -> String {
    let network = try Network()
    let proxy = try TestProxy(network, answer: answer, manner)
    let client = Peer(sending: [1])
    let address = try proxy.address(login)
    _ = try dial(client, network, through: address, timeout: timeout)
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(!client.isOpen && client.ends.count == 1 && network.accepted.isEmpty)
    guard case .connectFailed(let why)? = client.ends.first else { return "\(client.ends)" }
    return why.replacing("\(address)", with: "P")
  }

  @Test(
    "carries bytes both ways, and the provider's name is resolved by the proxy", arguments: Security.allCases,
    [TestProxy.Manner.atOnce, .byteByByte])
  func open(_ security: Security, _ manner: TestProxy.Manner) throws {
    let network = try Network(tls: security.server())
    let proxy = try TestProxy(network, manner)
    let client = Peer(sending: [UInt8](repeating: 7, count: 100_000))
    let link = try dial(client, network, through: proxy.address("user:secret@"), security)
    #expect(network.loop.run { client.incoming.count == 100_000 })
    #expect(client.reentrances == 0)
    #expect(
      proxy.requests == [
        "CONNECT provider.invalid:443 HTTP/1.1\r\nHost: provider.invalid:443\r\nUser-Agent: pushfleet\r\n"
          + "Proxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"
      ])
    link.close()
    #expect(network.loop.run { client.ends == [.closedLocally] })
  }

  @Test("verifies the provider's certificate within the tunnel")
  func verified() throws {
    let network = try Network(tls: Security.tls.server())
    let proxy = try TestProxy(network)
    let client = Peer(sending: [1])
    _ = try dial(client, network, through: proxy.address(), .tls, name: "api.push.apple.com")
    #expect(network.loop.run { !client.ends.isEmpty })
    let why = "the server's certificate is not for api.push.apple.com (through the proxy \(try proxy.address()))"
    #expect(client.ends == [.handshakeFailed(why)] && network.accepted.allSatisfy { $0.receivedCount == 0 })
  }

  @Test("ends with the proxy's answer, which is counted", arguments: [TestProxy.Manner.atOnce, .byteByByte, .closing])
  func refused(_ manner: TestProxy.Manner) throws {
    let before = ProxyRefusals.shared.byStatus[407] ?? 0
    let why = try refusal("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 4\r\n\r\nbody", manner, login: "u:p@")
    #expect(why == "the proxy P refuses the tunnel: 407 Proxy Authentication Required; check the user and password in `proxy`")
    #expect((ProxyRefusals.shared.byStatus[407] ?? 0) > before)
  }

  @Test("ends with a reason if the proxy stalls, hangs up or sends bytes of its own")
  func faults() throws {
    let stalled = "the proxy P opens no tunnel to provider.invalid:443: timed out after 1 s"
    #expect(try refusal("", timeout: 0.3) == stalled)
    #expect(try refusal("HTTP/1.1 200 OK\r\n", timeout: 0.3) == stalled)
    #expect(try refusal("HTTP/1.1 200 OK\r\nVia: x", .closing) == "the proxy P closes the connection instead of answering")
    #expect(try refusal("HTTP/1.1 200 OK\r\n\r\nhello") == "the proxy P sends bytes of its own into the tunnel")
  }

  @Test("ends with a reason if the proxy can't be reached")
  func away() throws {
    let network = try Network()
    let proxy = try TestProxy(network)
    let address = try proxy.address()
    proxy.close()
    let client = Peer()
    _ = try dial(client, network, through: address)
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(
      client.ends == [.connectFailed("the proxy \(address) can't be reached: \(address.endpoint): Connection refused")])
  }

  @Test("ends when an idle tunnel is cut")
  func cut() throws {
    let network = try Network(tls: Security.tls.server())
    let proxy = try TestProxy(network)
    let client = Peer(sending: [1])
    _ = try dial(client, network, through: proxy.address(), .tls)
    #expect(network.loop.run { client.incoming == [1] })
    proxy.cut()
    #expect(network.loop.run { client.ends == [.failed("the peer closed without a TLS close notification")] })
  }

  @Test("waits at the limiter for its provider, not for the proxy's other tunnels")
  func limited() throws {
    let network = try Network()
    let proxy = try TestProxy(network)
    let limiter = ConnectLimiter(places: 1)
    let other = limiter.enter(Endpoint(host: "other.invalid", port: 443), { _ in })
    let client = Peer(sending: [1])
    Link(
      loop: network.loop, machine: client, to: Self.peer, options: LinkOptions(limiter: limiter, proxy: try proxy.address())
    ).start()
    #expect(network.loop.run { client.incoming == [1] })
    withExtendedLifetime(other) {}
  }
}
