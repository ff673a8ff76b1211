import HTTP2
import PushCore
import Reactor
import Simulator
import TLS
import TestSupport
import Testing

@testable import Providers

/// As a shard has it: an event loop, sockets and TLS, against the simulator and its token endpoint.
@Suite("An FCM pool over TLS", .serialized)
struct FCMOverTLSTests {
  final class Shard: Sender {
    let loop: EventLoop
    let fcm: FCMProvider

    init(port: UInt16, ca: String) throws {
      loop = try EventLoop()
      let file = TestKeys.serviceAccountFile(tokenURI: "https://127.0.0.1:\(port)/token")
      let credentials = try FCMCredentials(
        account: ServiceAccount(file: file), endpoint: Endpoint(host: "127.0.0.1", port: port),
        tls: .provider(trust: TrustStore(file: ca)))
      fcm = FCMProvider(credentials, time: loop.time, dialer: loop)
      super.init(ProviderPool(.fcm(fcm), settings: .fcm, time: loop.time, dialer: loop))
    }

    override func hand(_ tag: Int) {
      fcm.send(
        payload: Array("{\"message\":{\"token\":\"device-\(tag)\",\"data\":{\"n\":\"\(tag)\"}}}".utf8), for: account,
        tag: tag, wantsName: true)
    }
  }

  let files: TestCertificates

  init() throws { files = try TestCertificates.make() }

  private func simulate(_ adjust: (inout FCMConfiguration) -> Void = { _ in }) throws -> RunningSimulator {
    var configuration = FCMConfiguration()
    configuration.project = "example-project"
    configuration.clientEmail = "sender@example-project.iam.gserviceaccount.com"
    configuration.accountKey = TestKeys.rsa
    adjust(&configuration)
    return try RunningSimulator(files) { [configuration] in
      try FCMService(configuration: configuration, journal: $0, time: $1)
    }
  }

  @Test("a thousand pushes arrive once each, with one access token bought by a verified assertion")
  func delivers() throws {
    let simulator = try simulate()
    let shard = try Shard(port: simulator.port, ca: files.authority)
    shard.offer(0..<1000)
    #expect(shard.loop.run { shard.answers.count == 1000 })
    #expect(shard.delivered == 1000)
    #expect(Set(shard.names.values).count == 1000)
    #expect(shard.events.count { $0 == .tokenRefreshed } == 1)
    shard.pool.shutdown()
    #expect(shard.loop.run { shard.pool.state == .closed })
    simulator.stop()
    #expect(simulator.journal.violations.isEmpty)
  }

  @Test("an account that the endpoint doesn't know gets no token, and nothing is sent")
  func wrongAccount() throws {
    let simulator = try simulate { $0.clientEmail = "somebody@else.example" }
    let shard = try Shard(port: simulator.port, ca: files.authority)
    shard.offer(0..<10)
    #expect(shard.loop.run { shard.events.contains { if case .tokenRefused = $0 { true } else { false } } })
    #expect(shard.answers.isEmpty)
    if case .backingOff(let reason) = shard.pool.state {
      #expect(reason.contains("invalid_grant"))
    } else {
      Issue.record("state is \(shard.pool.state)")
    }
    simulator.stop()
  }

  @Test("each device's answer reaches its own push")
  func answers() throws {
    let script = try Script(
      parsing: Array(
        """
        {"device-3": {"status": 404, "reason": "UNREGISTERED"}, "device-5": {"status": 403, "reason": "SENDER_ID_MISMATCH"},
         "device-7": {"status": 500, "reason": "INTERNAL"}}
        """.utf8))
    let simulator = try simulate {
      $0.script = script
    }
    let shard = try Shard(port: simulator.port, ca: files.authority)
    shard.offer(0..<20)
    #expect(shard.loop.run { shard.answers.count == 20 })
    #expect(shard.delivered == 17)
    #expect(shard.answers[3]?.reaction == .gone(.notRegistered))
    #expect(shard.answers[5]?.reaction == .suspect(.mismatchSenderID))
    #expect(shard.answers[7]?.reaction == .retry(.fcm, .internalServerError))
    simulator.stop()
  }
}
