import Synchronization
import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite("The policy for addresses")
struct AddressPolicyTests {
  private func address(_ host: String) throws -> SocketAddress {
    try #require(Resolver.numeric(Endpoint(host: host, port: 443)), "\(host) is no address")
  }

  @Test("knows public addresses, to the edges of the reserved ranges")
  func publicAddresses() throws {
    let hosts = [
      "1.0.0.0", "1.1.1.1", "9.255.255.255", "11.0.0.0", "17.188.128.1", "100.63.255.255", "100.128.0.0", "126.255.255.255",
      "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.255", "192.0.3.0",
      "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255",
      "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255", "2001:200::", "2001:4860:4860::8888",
      "2001:db7:ffff::", "2001:db9::", "2a00:1450::1", "2620:149:a44::", "3ffe::1", "3fff:1000::", "::ffff:8.8.8.8",
      "64:ff9b::8.8.8.8", "2002:808:808::1",
    ]
    for host in hosts { #expect(try address(host).isPublic, "\(host)") }
  }

  @Test("knows the addresses of machines, networks and special purposes")
  func otherAddresses() throws {
    let reserved = [
      "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255", "127.0.0.1", "127.255.255.255",
      "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.1", "192.88.99.1",
      "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255", "198.51.100.7", "203.0.113.7", "224.0.0.1",
      "239.255.255.255", "240.0.0.1", "255.255.255.255",
    ]
    for host in reserved {
      #expect(try !address(host).isPublic, "\(host)")
      for form in ["::ffff:\(host)", "::\(host)", "64:ff9b::\(host)"] { #expect(try !address(form).isPublic, "\(form)") }
    }
    let others = [
      "::", "::1", "::8.8.8.8", "64:ff9b:1::1", "100::1", "fc00::1", "fdff::1", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1",
      "2001::1", "2001:1ff:ffff::", "2001:db8::1", "2001:db8:ffff::", "2002:a00:1::", "2002:7f00:1::1", "3fff::1",
      "3fff:fff::1", "4000::1", "1fff::1", "5f00::1",
    ]
    for host in others { #expect(try !address(host).isPublic, "\(host)") }
    // Other spellings that the system's parser accepts.
    for host in ["127.1", "0x7f.1", "2130706433", "0177.0.0.1", "10.1"] { #expect(try !address(host).isPublic, "\(host)") }
  }

  @Test("refuses a name if any of its addresses is not public, and accepts all addresses by default")
  func names() throws {
    let mixed = [try address("8.8.8.8"), try address("10.0.0.1")]
    let policy = AddressPolicy.publicOnly
    #expect(policy.refusal(of: mixed, for: "push.test") == "push.test resolves to 10.0.0.1, which is not a public address")
    #expect(policy.refusal(of: [try address("::1")], for: "::1") == "::1 is not a public address")
    #expect(policy.refusal(of: [mixed[0]], for: "push.test") == nil)
    #expect(AddressPolicy.any.refusal(of: mixed, for: "push.test") == nil)
  }

  /// A resolver whose answers change with each look-up.
  private final class Names: Sendable {
    let lookUps = Atomic<Int>(0)
    let answers: [[SocketAddress]]

    init(_ answers: [[SocketAddress]]) { self.answers = answers }

    var resolver: Resolver {
      Resolver(lookUp: { [self] _ in .success(answers[lookUps.wrappingAdd(1, ordering: .relaxed).oldValue]) })
    }
  }

  private func dial(_ host: String, from network: Network, _ options: LinkOptions) -> Peer {
    let client = Peer(sending: [1])
    Link(loop: network.loop, machine: client, to: Endpoint(host: host, port: network.listener.port), options: options).start()
    #expect(network.loop.run { !client.ends.isEmpty || client.incoming == [1] })
    return client
  }

  @Test("checks the addresses of each dial, and nothing is sent to a host that changes to a local one")
  func rebinding() throws {
    let network = try Network()
    let local = try #require(Resolver.numeric(network.listener.endpoint))
    let names = Names([[local], [try address("8.8.8.8"), local], [local]])
    network.loop.resolver = names.resolver
    let options = LinkOptions(addresses: .publicOnly)
    let refusal = "push.test resolves to 127.0.0.1, which is not a public address"
    for _ in 0..<2 { #expect(dial("push.test", from: network, options).ends == [.connectFailed(refusal)]) }
    #expect(network.accepted.isEmpty && names.lookUps.load(ordering: .relaxed) == 2)
    #expect(dial("push.test", from: network, LinkOptions()).incoming == [1])
  }

  @Test("checks a numeric host, with a proxy too")
  func numeric() throws {
    let network = try Network()
    let refusal = TransportEnd.connectFailed("127.0.0.1 is not a public address")
    #expect(dial("127.0.0.1", from: network, LinkOptions(addresses: .publicOnly)).ends == [refusal])
    let proxy = ProxyAddress("http://127.0.0.1:\(network.listener.port)")
    #expect(dial("127.0.0.1", from: network, LinkOptions(proxy: proxy, addresses: .publicOnly)).ends == [refusal])
    #expect(network.accepted.isEmpty)
  }
}
