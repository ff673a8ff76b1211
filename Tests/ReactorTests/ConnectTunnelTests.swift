import Foundation
import Testing

@testable import Reactor

@Suite("A tunnel through a proxy")
struct ConnectTunnelTests {
  private static let anonymous = "http://proxy.test:3128"
  private static let user = "http://user:secret@proxy.test:3128"

  private func tunnel(_ proxy: String = Self.anonymous, to peer: Endpoint = Endpoint(host: "push.test", port: 443)) throws
    -> ConnectTunnel
  {
    ConnectTunnel(to: peer, through: try #require(ProxyAddress(proxy)))
  }

  /// The verdict on an answer, which is the same wherever the answer is cut.
  private func verdict(on answer: String, of proxy: String = Self.anonymous) throws -> ConnectTunnel.Verdict {
    let bytes = Array(answer.utf8)
    var cuts = [[bytes], bytes.map { [$0] }]
    for place in bytes.indices.dropFirst() { cuts.append([Array(bytes[..<place]), Array(bytes[place...])]) }
    let verdicts = try cuts.map { pieces in
      var tunnel = try tunnel(proxy)
      var verdict = ConnectTunnel.Verdict.incomplete
      for piece in pieces where verdict == .incomplete { verdict = tunnel.receive(piece) }
      return verdict
    }
    #expect(verdicts.allSatisfy { $0 == verdicts[0] })
    return verdicts[0]
  }

  @Test("is requested by name, with the user and password if there are any")
  func request() throws {
    #expect(
      String(decoding: try tunnel().request, as: UTF8.self)
        == "CONNECT push.test:443 HTTP/1.1\r\nHost: push.test:443\r\nUser-Agent: pushfleet\r\n\r\n")
    let request = String(decoding: try tunnel(Self.user, to: Endpoint(host: "::1", port: 8443)).request, as: UTF8.self)
    #expect(request.hasPrefix("CONNECT [::1]:8443 HTTP/1.1\r\nHost: [::1]:8443\r\n"))
    #expect(request.hasSuffix("\r\nProxy-Authorization: Basic dXNlcjpzZWNyZXQ=\r\n\r\n"))
  }

  @Test(
    "is open after the head of a 2xx answer, whatever its fields",
    arguments: [
      "HTTP/1.1 200 Connection established\r\n\r\n", "HTTP/1.0 200 OK\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n",
      "HTTP/1.1 200\r\n\r\n", "HTTP/1.1 204 None\nVia: lf\n\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
    ])
  func open(answer: String) throws { #expect(try verdict(on: answer) == .open) }

  @Test(
    "is refused with the proxy's status and advice",
    arguments: [
      ("407 Proxy Authentication Required", user, "check the user and password in `proxy`"),
      ("407 Proxy Authentication Required", anonymous, "`proxy` needs a user and a password"),
      ("401 Unauthorized", user, "check the user and password in `proxy`"), ("403 Forbidden", user, "it forbids push.test:443"),
      ("502 Bad Gateway", user, "it gets no connection to push.test:443"),
      ("504 Gateway Timeout", user, "it gets no connection to push.test:443"),
      ("500 Unable to connect", user, "it gets no connection to push.test:443"),
      ("405 Method Not Allowed", user, "it may not support CONNECT"), ("302 Found", user, nil),
      ("429 Slow \u{1B}[31mdown", user, nil),
    ] as [(String, String, String?)])
  func refused(status: String, proxy: String, advice: String?) throws {
    let answer = "HTTP/1.1 \(status)\r\nContent-Length: 4\r\nProxy-Authenticate: Basic realm=\"x\"\r\n\r\n"
    let shown = status.replacing("\u{1B}", with: "?")
    let reason = "the proxy http://proxy.test:3128 refuses the tunnel: \(shown)" + (advice.map { "; \($0)" } ?? "")
    #expect(try verdict(on: answer, of: proxy) == .refused(reason))
    // The body is not read.
    var tunnel = try tunnel(proxy)
    #expect(tunnel.receive(Array((answer + "body").utf8)) == .refused(reason))
  }

  @Test("names the cause if the proxy offers no Basic authentication")
  func otherAuthentication() throws {
    for (offer, advice) in [
      ("NTLM", "it does not offer Basic authentication, the only one that pushfleet knows"),
      ("NTLM, Basic realm=x", "check the user and password in `proxy`"),
    ] {
      let answer = "HTTP/1.1 407 No\r\nProxy-Authenticate: Negotiate\r\nproxy-authenticate: \(offer)\r\n\r\n"
      #expect(
        try verdict(on: answer, of: Self.user)
          == .refused("the proxy http://proxy.test:3128 refuses the tunnel: 407 No; \(advice)"))
    }
  }

  @Test(
    "is refused by what is no HTTP proxy",
    arguments: [
      "SSH-2.0-OpenSSH\r\n", "\u{15}\u{3}\u{1}\n", "\r\n", "HTTP/2 200\r\n\r\n", "HTTP/1.1 20\r\n\r\n", "HTTP/1.1 abc\r\n",
    ])
  func noProxy(answer: String) throws {
    #expect(try verdict(on: answer) == .refused("the proxy http://proxy.test:3128 does not answer as an HTTP proxy"))
  }

  @Test("has no byte of the proxy's own behind the head")
  func intruder() throws {
    var tunnel = try tunnel()
    #expect(
      tunnel.receive(Array("HTTP/1.1 200 OK\r\n\r\nx".utf8))
        == .refused("the proxy http://proxy.test:3128 sends bytes of its own into the tunnel"))
  }

  @Test("is refused after 4 KiB of an answer, by its status if there is one")
  func endless() throws {
    func verdict(_ begin: String) throws -> ConnectTunnel.Verdict {
      var tunnel = try tunnel()
      let line = Array("X: \(String(repeating: "x", count: 95))\r\n".utf8)
      var verdict = tunnel.receive(Array(begin.utf8))
      var lines = 0
      while verdict == .incomplete, lines < 50 {
        verdict = tunnel.receive(line)
        lines += 1
      }
      #expect(lines == 41)
      return verdict
    }
    #expect(
      try verdict("HTTP/1.1 200 OK\r\n")
        == .refused("the proxy http://proxy.test:3128 answers with a head of more than 4096 bytes"))
    #expect(
      try verdict("HTTP/1.1 403 Forbidden\r\n")
        == .refused("the proxy http://proxy.test:3128 refuses the tunnel: 403 Forbidden; it forbids push.test:443"))
  }

  @Test("keeps the status of an answer that is cut off")
  func cutOff() throws {
    var tunnel = try tunnel()
    #expect(tunnel.refusal("closes") == "the proxy http://proxy.test:3128 closes" && tunnel.answer == 0)
    #expect(tunnel.receive(Array("HTTP/1.1 504 Timeout\r\nVia".utf8)) == .incomplete)
    #expect(tunnel.refusal("closes").contains("refuses the tunnel: 504 Timeout") && tunnel.answer == 504)
  }
}
