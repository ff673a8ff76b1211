import PushCore
import Testing

@testable import Providers

@Suite("A pool of web push")
struct WebPushPoolTests {
  @Test("sends a push again with its subscription's key, in whatever order a reload has put the keys")
  func reloadedKeys() throws {
    let keys = try [TestKeys.p256, TestKeys.otherP256].map { try VAPIDKey(pem: $0, subject: "mailto:push@example.com") }
    let bench = try WebPushBench(keys)
    bench.provider.answer = { _ in .stall }
    bench.offer([1])
    bench.world.settle()
    let first = try #require(bench.provider.requests.first)
    bench.webpush.replaceCredentials(try WebPushBench.credentials(keys.reversed()))
    bench.world.settle()
    bench.provider.answer = { _ in .status(201) }
    bench.provider.give(.refuse, to: first)
    bench.world.settle()
    #expect(bench.delivered == 1 && bench.provider.requests.count == 2)
    let suffix = ",k=" + String(decoding: keys[0].applicationServerKey, as: UTF8.self)
    #expect(bench.provider.requests.allSatisfy { $0.authorization.hasSuffix(suffix) })
  }

  @Test("tries a server that is gone ever more rarely, and only if a push waits")
  func goneServer() throws {
    let bench = try WebPushBench([VAPIDKey(pem: TestKeys.p256, subject: "mailto:push@example.com")], .webpushOfStranger)
    bench.world.answerDial = { _ in .fail(.connectFailed("refused")) }
    bench.account.wantsCapacity()
    bench.world.advance(by: 600)
    #expect(bench.world.connections.count == 1 && bench.account.isInTrouble(at: bench.world.now))
    for _ in 0..<600 {
      bench.account.wantsCapacity()
      bench.world.advance(by: 1)
    }
    #expect((15...30).contains(bench.world.connections.count), "\(bench.world.connections.count)")
    #expect(bench.pool.nextTrial.map { $0.seconds(since: bench.world.now) <= 60 } == true)
    bench.world.answerDial = { [provider = bench.provider] _ in .accept(provider.accept()) }
    bench.world.advance(by: 60)
    bench.offer([1])
    bench.world.settle()
    #expect(bench.delivered == 1 && bench.pool.nextTrial == nil)
  }

  @Test("stops if the service refuses every token, and blames no subscription", arguments: [false, true])
  func refusedTokens(wasAccepted: Bool) throws {
    let bench = try WebPushBench([VAPIDKey(pem: TestKeys.p256, subject: "mailto:push@example.com")])
    if wasAccepted {
      bench.provider.answer = { _ in .status(201) }
      bench.offer([0])
      bench.world.settle()
    }
    bench.provider.answer = { _ in .status(403, "permission denied: invalid JWT provided") }
    bench.offer(1...30)
    bench.world.settle()
    #expect(bench.account.isCredentialRefused && bench.delivered == (wasAccepted ? 1 : 0))
    #expect(!bench.answers.values.contains { $0.reaction == .suspect(.mismatchSenderID) }, "\(bench.answers)")
  }

  @Test("names a message by the server's id, unless that is long")
  func names() throws {
    let bench = try WebPushBench([VAPIDKey(pem: TestKeys.p256, subject: "mailto:push@example.com")])
    bench.provider.answer = { .status(201, "", [("apns-id", String(repeating: "a", count: $0.device == "1" ? 64 : 65))]) }
    bench.offer([1, 2])
    bench.world.settle()
    #expect(bench.names[1]?.count == 64 && bench.names[2] == nil && bench.delivered == 2)
  }
}

/// A pool of web push with its push service, clock and caller.
private final class WebPushBench: Sender {
  let world = VirtualWorld()
  let provider = ScriptedProvider()
  let webpush: WebPushProvider
  /// Of all subscriptions.
  private let key: VAPIDKey

  init(_ keys: [VAPIDKey], _ settings: PoolSettings = .webpush) throws {
    key = keys[0]
    let origin = try #require(WebPushOrigin("https://push.test".utf8))
    webpush = WebPushProvider(try Self.credentials(keys), origin: origin, time: world.time)
    super.init(ProviderPool(.webpush(webpush), settings: settings, time: world.time, dialer: world))
    world.answerDial = { [provider] _ in .accept(provider.accept()) }
  }

  static func credentials(_ keys: [VAPIDKey]) throws -> WebPushCredentials {
    WebPushCredentials(keys: keys, hosts: try #require(HostPolicy(["push.test"])), tls: nil)
  }

  override func hand(_ tag: Int) {
    let message = WebPushMessage(
      path: Array("/p/\(tag)".utf8), key: key, timeToLive: 60, urgency: Array("normal".utf8), topic: nil, body: [1])
    webpush.send(message, for: account, tag: tag, wantsName: true)
  }
}
