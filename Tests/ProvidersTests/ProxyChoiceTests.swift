import Providers
import Reactor
import Testing

@Suite("The choice of a proxy")
struct ProxyChoiceTests {
  @Test(
    "follows the entries of NO_PROXY",
    arguments: [
      ("", "example.com", false), ("*", "example.com", true), ("*", "10.0.0.1", true),
      ("example.com", "example.com", true), ("example.com", "push.example.com", true), ("example.com", "badexample.com", false),
      (".example.com", "push.example.com", true), (".example.com", "example.com", true),
      ("*.example.com", "a.example.com", true), (".*", "example.com", false),
      ("Example.COM", "PUSH.example.com", true), ("a, example.com b", "example.com", true), ("a,b", "c", false),
      ("10.1.2.3", "10.1.2.3", true), ("10.1.2.3", "10.1.2.30", false), ("10.1.2.3", "110.1.2.3", false),
      ("2.3", "10.1.2.3", false), ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false),
      ("10.0.0.0/8", "10.example.com", false), ("192.168.8.0/22", "192.168.11.255", true),
      ("192.168.8.0/22", "192.168.12.0", false), ("0.0.0.0/0", "8.8.8.8", true), ("0.0.0.0/0", "::1", false),
      ("10.0.0.0/33", "10.0.0.1", false), ("10.0.0.0/x", "10.0.0.1", false), ("::1", "::1", true), ("[::1]", "0:0::1", true),
      ("fd00::/8", "fd12::1", true), ("fd00::/8", "fe80::1", false), ("localhost", "localhost", true), (",, ,", "a", false),
      ("example.com:443", "push.example.com", true), ("example.com:8443", "push.example.com", false),
      ("10.1.2.3:443", "10.1.2.3", true), ("10.1.2.3:8443", "10.1.2.3", false), ("*:443", "a", true),
      ("example.com:port", "example.com", false),
    ])
  func exceptions(list: String, host: String, isDirect: Bool) throws {
    let proxy = try #require(ProxyAddress("http://proxy:3128"))
    #expect(
      ProxyChoice(proxy, except: ProxyExceptions(list)).proxy(for: Endpoint(host: host, port: 443)) == (isDirect ? nil : proxy))
  }

  @Test("is none without a proxy, and has no exceptions by default")
  func simple() throws {
    let proxy = try #require(ProxyAddress("http://proxy:3128"))
    let place = Endpoint(host: "localhost", port: 443)
    #expect(ProxyChoice.direct.proxy(for: place) == nil && ProxyChoice(proxy).proxy(for: place) == proxy)
  }

  @Test("reaches every target of a credential")
  func targets() throws {
    let choice = ProxyChoice(ProxyAddress("http://proxy:3128"), except: ProxyExceptions("direct.example"))
    let through = DialTarget(Endpoint(host: "a.example", port: 443), tls: nil, through: choice)
    #expect(through.options.proxy?.endpoint.host == "proxy" && through.endpoint.host == "a.example")
    #expect(DialTarget(Endpoint(host: "direct.example", port: 443), tls: nil, through: choice).options.proxy == nil)
  }
}
