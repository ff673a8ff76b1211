import Reactor
import TLS
import TestSupport
import Testing
import Wire

@testable import Providers

@Suite("A server that breaks HTTP/2 while a push is free to be sent again")
struct BrokenServerTests {
  /// Answers the first push of a connection, holds the second, and at the third turns that one away and breaks the session.
  private static func breaking(_ how: GivenUp) -> ByteServer {
    ByteServer { stream, number in
      switch number {
      case 1: frame(1, flags: 5, stream: stream, status200)
      case 3: how.bytes(refusing: stream - 2, open: stream)
      default: []
      }
    }
  }

  @Test("loses a connection, not the process: what it refused goes over the next one", arguments: GivenUp.allCases)
  func pool(_ how: GivenUp) throws {
    let bench = try APNsBench()
    bench.world.answerDial = { [unowned bench] _ in
      .accept(bench.world.connections.count == 1 ? Self.breaking(how) : bench.provider.accept())
    }
    bench.warmUp()
    bench.offer([1, 2])
    bench.world.advance(by: 5)
    #expect(bench.delivered == 2)
    #expect(bench.provider.delivered == [APNsBench.device(1)])
    #expect(bench.unknown.map(\.tag) == [2])
    #expect(bench.events.contains { if case .disconnected(let reason) = $0 { reason.contains("HTTP/2") } else { false } })
  }

  @Test("a token endpoint that floods instead of answering is asked again")
  func tokenEndpoint() throws {
    let bench = try FCMBench()
    var isFirst = true
    bench.world.answerDial = { [unowned bench] target in
      guard target.endpoint.host == "oauth.test" else { return .accept(bench.provider.accept()) }
      defer { isFirst = false }
      return .accept(isFirst ? ByteServer(greeting: (0..<1002).flatMap { _ in emptySettings }) : bench.oauth.accept())
    }
    bench.offer([1])
    bench.world.advance(by: 5)
    #expect(bench.events.contains { if case .tokenFailed(let reason) = $0 { reason.contains("HTTP/2") } else { false } })
    #expect(bench.delivered == 1)
  }

  @Test("over TLS as well", arguments: GivenUp.allCases)
  func overTLS(_ how: GivenUp) throws {
    let files = try TestCertificates.make()
    let loop = try EventLoop()
    let tls = try TLSServerContext(certificate: files.server, key: files.serverKey, alpn: ["h2"])
    var connections = 0
    let listener = try Listener(loop: loop, host: "127.0.0.1", port: 0, tls: tls) { _ in
      connections += 1
      return connections == 1
        ? Self.breaking(how) : ByteServer { stream, _ in frame(1, flags: 5, stream: stream, status200) }
    }
    let shard = try APNsOverTLSTests.Shard(
      try APNsCredentials(
        authentication: .token(TestKeys.tokenCredential()),
        target: DialTarget(listener.endpoint, tls: .provider(trust: TrustStore(file: files.authority)))), on: loop)
    shard.offer([0])
    #expect(loop.run { shard.answers.count == 1 })
    shard.offer([1, 2])
    #expect(loop.run { shard.answers.count == 2 && shard.unknown.count == 1 })
    #expect(shard.delivered == 2 && connections == 2)
    listener.close()
    listener.closeConnections()
  }
}
