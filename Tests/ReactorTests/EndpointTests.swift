import Reactor
import Testing

@Suite struct EndpointTests {
  @Test(
    "an endpoint is read in each of its forms",
    arguments: [
      ("https://127.0.0.1:8443", "127.0.0.1", UInt16(8443)), ("https://api.push.apple.com", "api.push.apple.com", 443),
      ("http://localhost/", "localhost", 80), ("rabbit:5672", "rabbit", 5672), ("[::1]:2197", "::1", 2197),
      ("https://[fe80::1%lo]:1/", "fe80::1%lo", 1), ("HTTPS://x", "x", 443),
    ])
  func forms(text: String, host: String, port: UInt16) throws {
    let endpoint = try Endpoint(parsing: text)
    #expect(endpoint == Endpoint(host: host, port: port))
  }

  @Test(
    "a wrong endpoint is refused",
    arguments: [
      "", "host", "ftp://host", "host:", "host:0", "host:65536", "host:+1", "::1:80", "[::1", "[::1]x", "[host]:1", "a b:1",
      "a\r\n:1", "https://h:1/x",
      "u@h:1", String(repeating: "a", count: 64) + ".example:1", String(repeating: "a.", count: 127) + ":1",
    ])
  func refused(text: String) {
    #expect(throws: EndpointError.self) { try Endpoint(parsing: text) }
  }

  @Test("an IPv6 address is printed in brackets")
  func printed() {
    #expect(Endpoint(host: "::1", port: 443).description == "[::1]:443")
    #expect(Endpoint(host: "h", port: 1).description == "h:1")
  }
}
