import Foundation
import HTTP2
import PushCore
import Reactor
import Simulator
import TLS
import TestSupport
import Testing

@testable import Providers

/// The pool as a shard has it: an event loop, sockets and TLS, against the simulator.
@Suite("An APNs pool over TLS", .serialized)
struct APNsOverTLSTests {
  /// A caller with a pool on a loop of its own.
  final class Shard: Sender {
    let loop: EventLoop
    let apns: APNsProvider

    init(_ credentials: APNsCredentials, on loop: EventLoop? = nil) throws {
      let loop = try loop ?? EventLoop()
      self.loop = loop
      apns = APNsProvider(credentials, time: loop.time)
      super.init(ProviderPool(.apns(apns), settings: .apns, time: loop.time, dialer: loop))
    }

    var push: (Int) -> APNsPush = { APNsBench.push($0) }
    override func hand(_ tag: Int) { apns.send(push(tag), for: account, tag: tag) }
  }

  let files: TestCertificates

  init() throws { files = try TestCertificates.make() }

  private func simulate(_ adjust: (inout APNsConfiguration) -> Void = { _ in }) throws -> RunningSimulator {
    var configuration = APNsConfiguration()
    adjust(&configuration)
    return try RunningSimulator(files) { [configuration] in
      try APNsService(configuration: configuration, journal: $0, time: $1)
    }
  }

  private func token(_ simulator: RunningSimulator, ca: String? = nil) throws -> APNsCredentials {
    try APNsCredentials(
      authentication: .token(TestKeys.tokenCredential()),
      target: DialTarget(
        Endpoint(host: "127.0.0.1", port: simulator.port), tls: .provider(trust: TrustStore(file: ca ?? files.authority))))
  }

  @Test("a thousand pushes arrive once each, with a token that the key's public half verifies")
  func delivers() throws {
    let simulator = try simulate { $0.providerKey = TestKeys.p256 }
    let shard = try Shard(token(simulator))
    shard.offer(0..<1000)
    #expect(shard.loop.run { shard.answers.count == 1000 })
    #expect(shard.delivered == 1000)
    shard.pool.shutdown()
    #expect(shard.loop.run { shard.pool.state == .closed })
    simulator.stop()
    let entries = simulator.journal.entries
    #expect(entries.count == 1000)
    #expect(Set(entries.map(\.tokenText)).count == 1000)
    #expect(simulator.journal.violations.isEmpty)
    #expect(entries.allSatisfy { $0.authorization?.keyID == Array("ABC123DEFG".utf8) })
  }

  @Test("a push has the headers of its own translation, however many had other headers before it")
  func headersOfTranslations() throws {
    let simulator = try simulate()
    let shard = try Shard(token(simulator))
    let kinds: [(Int) -> APNsPush] = [
      { APNsBench.push($0) }, { APNsBench.push($0, expiration: 7) }, { APNsBench.push($0, #","apns-priority":"5""#) },
      { APNsBench.push($0, #","apns-collapse-id":"a""#) }, { APNsBench.push($0, #","apns-collapse-id":"b""#) },
      { APNsBench.push($0, topic: "com.example.other") }, { APNsBench.push($0, #","apns-push-type":"voip""#) },
    ]
    // The lengths of the runs are on both sides of the count after which headers become constants.
    let runs = [40, 3, 20, 1, 17, 18, 16].enumerated().flatMap { run, count in
      kinds.indices.flatMap { Array(repeating: ($0 + run) % kinds.count, count: count) }
    }
    shard.push = { kinds[runs[$0]]($0) }
    shard.offer(runs.indices)
    #expect(shard.loop.run { shard.answers.count == runs.count })
    simulator.stop()
    #expect(simulator.journal.violations.isEmpty)
    let entries = Dictionary(grouping: simulator.journal.entries, by: \.tokenText)
    for (tag, kind) in runs.enumerated() {
      let entry = try #require(entries[APNsBench.device(tag)]?.first)
      let names = ["apns-expiration", "apns-priority", "apns-collapse-id", "apns-topic", "apns-push-type"]
      var expected = ["0", "10", nil, "com.example.app", "alert"]
      switch kind {
      case 1: expected[0] = "7"
      case 2: expected[1] = "5"
      case 3: expected[2] = "a"
      case 4: expected[2] = "b"
      case 5: expected[3] = "com.example.other"
      case 6: (expected[3], expected[4]) = ("com.example.app.voip", "voip")
      default: break
      }
      #expect(names.map(entry.header) == expected, "push \(tag) of kind \(kind)")
    }
  }

  @Test("a token signed by another key stops the credential")
  func wrongKey() throws {
    let simulator = try simulate { $0.providerKey = TestKeys.otherP256 }
    let shard = try Shard(token(simulator))
    shard.offer(0..<10)
    #expect(shard.loop.run { shard.isStopped })
    #expect(shard.pool.state == .stopped(reason: "InvalidProviderToken"))
    #expect(shard.answers.isEmpty && shard.notSent.map(\.why) == [.unauthorised])
    simulator.stop()
  }

  @Test("a certificate from a PKCS#12 file is presented, and its end is known")
  func certificate() throws {
    let simulator = try simulate { $0.clientAuthority = files.authority }
    let identity = try Identity.pkcs12(files.clientP12, passphrase: files.passphrase)
    let shard = try Shard(
      APNsCredentials(
        authentication: .certificate(notAfter: identity.notAfter, topics: identity.topics),
        target: DialTarget(
          Endpoint(host: "127.0.0.1", port: simulator.port),
          tls: .provider(trust: TrustStore(file: files.authority), identity: identity))))
    shard.offer(0..<100)
    #expect(shard.loop.run { shard.answers.count == 100 })
    #expect(shard.delivered == 100)
    #expect(shard.apns.credentials.notAfter == identity.notAfter)
    simulator.stop()
    #expect(simulator.journal.entries.allSatisfy { $0.authorization == nil })
  }

  @Test("a server whose certificate nobody vouches for gets nothing, and the reason says why")
  func untrusted() throws {
    let simulator = try simulate()
    let shard = try Shard(token(simulator, ca: files.otherAuthority))
    shard.offer([1])
    #expect(shard.loop.run { if case .backingOff = shard.pool.state { true } else { false } })
    if case .backingOff(let reason) = shard.pool.state { #expect(reason.contains("issued by no trusted authority")) }
    #expect(shard.answers.isEmpty)
    simulator.stop()
    #expect(simulator.journal.count == 0)
  }

  @Test("GOAWAY and refused streams under load lose and double nothing")
  func faults() throws {
    func once(_ fault: String, _ device: Int) -> String {
      #""\#(APNsBench.device(device))": [{"\#(fault)": true, "times": 1}]"#
    }
    let script = try Script(
      parsing: Array("{\(once("goaway", 300)), \(once("goaway", 700)), \(once("refuse", 500))}".utf8))
    let simulator = try simulate { $0.script = script }
    let shard = try Shard(token(simulator))
    // One push meets all three, and so may come back unsent.
    shard.sendsAgain = true
    shard.offer(0..<2000)
    #expect(shard.loop.run { shard.answers.count == 2000 })
    #expect(shard.unknown.isEmpty)
    #expect(shard.delivered == 2000)
    simulator.stop()
    let delivered = simulator.journal.entries.filter { $0.status == 200 }.map(\.tokenText)
    #expect(delivered.count == 2000)
    #expect(Set(delivered).count == 2000)
  }

  @Test("the key is replaced under load without a failed push")
  func reload() throws {
    let simulator = try simulate()
    let shard = try Shard(token(simulator))
    shard.offer(0..<500)
    #expect(shard.loop.run { shard.delivered > 100 })
    shard.apns.replaceCredentials(
      try APNsCredentials(
        authentication: .token(TokenCredential(pem: TestKeys.otherP256, keyID: "HIJ456KLMN", teamID: "DEF123GHIJ")),
        target: DialTarget(
          Endpoint(host: "127.0.0.1", port: simulator.port), tls: .provider(trust: TrustStore(file: files.authority)))))
    shard.offer(500..<1000)
    #expect(shard.loop.run { shard.answers.count == 1000 })
    #expect(shard.delivered == 1000)
    simulator.stop()
    #expect(Set(simulator.journal.entries.compactMap(\.authorization?.keyID)).count == 2)
  }
}
