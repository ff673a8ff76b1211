import TLS
import TestSupport
import Testing
import Wire

@testable import Reactor

@Suite struct TLSTests {
  let files: TestCertificates

  init() throws { files = try TestCertificates.make() }

  /// How the client's link ends against a server with the given certificate.
  private func outcome(
    server: TLSServerContext, ca: String? = nil, identity: Identity? = nil, alpn: [String] = ["h2"], name: String? = nil
  ) throws -> (client: Peer, server: Peer) {
    let network = try Network(tls: server, make: { Peer(isEcho: true) })
    let client = Peer(sending: [1])
    let context = try TLSClientContext(ca: ca ?? files.authority, identity: identity, alpn: alpn)
    _ = network.connect(client, tls: context, serverName: name)
    #expect(network.loop.run { !client.ends.isEmpty || !client.incoming.isEmpty })
    #expect(client.incoming.isEmpty || client.ends.isEmpty)
    #expect(client.reentrances == 0)
    return (client, network.accepted[0])
  }

  private func refusal(
    _ certificate: String, _ key: String, ca: String? = nil, alpn: [String] = ["h2"], name: String? = nil
  ) throws -> String {
    let server = try TLSServerContext(certificate: certificate, key: key, alpn: alpn)
    let (client, _) = try outcome(server: server, ca: ca, name: name)
    #expect(!client.isOpen, "a machine hears nothing of a connection that was not verified")
    guard case .handshakeFailed(let why)? = client.ends.first else { return "\(client.ends)" }
    return why
  }

  @Test("every way in which a server's certificate is wrong has its own plain reason")
  func certificates() throws {
    #expect(try refusal(files.expired, files.expiredKey) == "the server's certificate has expired")
    #expect(try refusal(files.selfSigned, files.selfSignedKey) == "the server's certificate is self-signed and not trusted")
    #expect(
      try refusal(files.server, files.serverKey, ca: files.otherAuthority)
        == "the server's certificate was issued by no trusted authority")
    #expect(try refusal(files.wrongHost, files.wrongHostKey) == "the server's certificate is not for 127.0.0.1")
    #expect(
      try refusal(files.server, files.serverKey, name: "api.push.apple.com")
        == "the server's certificate is not for api.push.apple.com")
    #expect(
      try refusal(files.commonNameOnly, files.commonNameOnlyKey, name: "localhost")
        == "the server's certificate is not for localhost")
  }

  @Test("the system's authorities are used where no file is named, and do not know a test's")
  func systemStore() throws {
    let network = try Network(tls: Security.tls.server())
    let client = Peer()
    _ = network.connect(client, tls: try TLSClientContext(alpn: ["h2"]))
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.handshakeFailed("the server's certificate was issued by no trusted authority")])
  }

  @Test("names and addresses of the certificate are accepted", arguments: ["localhost", "127.0.0.1", "::1"])
  func names(_ name: String) throws {
    let server = try TLSServerContext(certificate: files.server, key: files.serverKey, alpn: ["h2"])
    let (client, _) = try outcome(server: server, name: name)
    #expect(client.incoming == [1])
  }

  @Test("a server of TLS 1.1 is refused")
  func obsolete() throws {
    let server = try TLSServerContext(identity: .pem(files.server, key: files.serverKey), isObsolete: true)
    let (client, _) = try outcome(server: server)
    #expect(client.ends == [.handshakeFailed("the peer does not speak TLS 1.2 or newer")])
  }

  @Test("a server without the wanted application protocol is refused", arguments: [["http/1.1"], []])
  func alpn(_ protocols: [String]) throws {
    #expect(try refusal(files.server, files.serverKey, alpn: protocols) == "no common application protocol (ALPN)")
  }

  @Test(
    "a client that requires no application protocol learns which one the server selected",
    arguments: [(["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "h2"), (["http/1.1", "h2"], "http/1.1"), ([], nil)])
  func optionalALPN(_ protocols: [String], selected: String?) throws {
    let network = try Network(tls: TLSServerContext(certificate: files.server, key: files.serverKey, alpn: protocols))
    let context = try TLSClientContext(
      trust: TrustStore(file: files.authority), alpn: ["h2", "http/1.1"], requiresALPN: false)
    let client = Peer(sending: [1])
    let link = network.connect(client, tls: context)
    #expect(network.loop.run { !client.ends.isEmpty || !client.incoming.isEmpty })
    #expect(client.incoming == [1])
    #expect(link.tlsSession?.applicationProtocol == selected)
  }

  @Test("a server that selects none of the client's application protocols ends the handshake")
  func foreignALPN() throws {
    let network = try Network(tls: TLSServerContext(certificate: files.server, key: files.serverKey, alpn: ["h3"]))
    let context = try TLSClientContext(
      trust: TrustStore(file: files.authority), alpn: ["h2", "http/1.1"], requiresALPN: false)
    let client = Peer()
    _ = network.connect(client, tls: context)
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.handshakeFailed("no common application protocol (ALPN)")])
  }

  @Test("a server that does not speak TLS is refused")
  func notTLS() throws {
    let network = try Network(make: { Peer(sending: Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) })
    let client = Peer()
    _ = network.connect(client, tls: try Security.tls.client())
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.handshakeFailed("the peer does not speak TLS")])
  }

  @Test("a server that hangs up during the handshake is named so")
  func hangUp() throws {
    let network = try Network(make: {
      let peer = Peer()
      peer.whenReceiving = { $0.isFinished = true }
      return peer
    })
    let client = Peer()
    _ = network.connect(client, tls: try Security.tls.client())
    #expect(network.loop.run { !client.ends.isEmpty })
    #expect(client.ends == [.handshakeFailed("the peer closed the connection during the handshake")])
  }

  @Test("a client certificate is presented where the server asks for one")
  func clientCertificate() throws {
    let server = try TLSServerContext(
      certificate: files.server, key: files.serverKey, clientCA: files.authority, alpn: ["h2"])
    let (client, _) = try outcome(server: server, identity: .pem(files.clientCombined))
    #expect(client.incoming == [1])
  }

  @Test("a server that refuses the client's certificate, or the lack of one, is a failed handshake")
  func refusedClient() throws {
    func outcome(clientCA: String, _ identity: Identity?) throws -> [TransportEnd] {
      let server = try TLSServerContext(
        certificate: files.server, key: files.serverKey, clientCA: clientCA, alpn: ["h2"])
      return try self.outcome(server: server, identity: identity).client.ends
    }
    #expect(
      try outcome(clientCA: files.otherAuthority, .pem(files.clientCombined)) == [
        .handshakeFailed("the server refused the client certificate: issued by no authority it trusts")
      ])
    #expect(try outcome(clientCA: files.authority, nil) == [.handshakeFailed("the server demands a client certificate")])
  }

  @Test("a CA file that is none is refused when the context is made")
  func wrongCA() throws {
    let none = CredentialError(file: files.path("none"), reason: "cannot be read (open: No such file or directory)")
    #expect(throws: none) { try TLSClientContext(ca: files.path("none")) }
    #expect(throws: CredentialError(file: files.serverKey, reason: "holds no certificate in PEM form")) {
      try TLSClientContext(ca: files.serverKey)
    }
  }
}
