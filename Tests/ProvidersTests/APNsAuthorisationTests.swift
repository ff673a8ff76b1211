import HTTP2
import PushCore
import Testing
import Wire

@testable import Providers

@Suite("An APNs pool's authorisation")
struct APNsAuthorisationTests {
  static let expired = ScriptedProvider.Answer.status(403, #"{"reason":"ExpiredProviderToken"}"#)

  @Test("one token serves an hour's pushes and is renewed once at fifty minutes")
  func renewal() throws {
    let bench = try APNsBench()
    for minute in 0..<49 {
      bench.offer([minute])
      bench.world.advance(by: 60)
    }
    #expect(bench.tokensSeen.count == 1)
    for minute in 49..<60 {
      bench.offer([minute])
      bench.world.advance(by: 60)
    }
    #expect(bench.delivered == 60)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.connections.count == 1)
  }

  @Test("a thousand in flight when the token expires: one new token, a new connection, each push again exactly once")
  func expiredStorm() throws {
    let bench = try APNsBench()
    bench.provider.streamLimit = 2000
    bench.warmUp()
    bench.world.advance(by: 1800)
    let first = bench.provider.requests[0].authorization
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<1000)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    #expect(held.count == 1000)
    bench.provider.answer = { $0.authorization == first ? Self.expired : .status(200) }
    for request in held { bench.provider.give(Self.expired, to: request) }
    bench.world.settle()
    #expect(bench.delivered == 1001)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.connections.count == 2)
    #expect(bench.provider.requests.count == 1 + 1000 + 1000)
    #expect(Set(bench.provider.delivered).count == 1001)
  }

  @Test("a token expired at its first use is replaced once, and when that helps nothing the credential stops")
  func expiredForEver() throws {
    let bench = try APNsBench()
    bench.provider.answer = { _ in Self.expired }
    bench.offer(0..<5)
    bench.world.advance(by: 30)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.apns.isStopped)
    #expect(bench.answers.count == 1)
    bench.world.advance(by: 600)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.provider.requests.count < 20)
  }

  @Test("TooManyProviderTokenUpdates: the token stays, nothing is minted for twenty minutes, others go on")
  func tooManyUpdates() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.world.advance(by: 45 * 60)
    bench.provider.answer = {
      $0.device == APNsBench.device(0) ? .status(429, #"{"reason":"TooManyProviderTokenUpdates"}"#) : .status(200)
    }
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 10)
    #expect(bench.answers[0]?.reaction == .retry(.heldToken, .unavailable))
    bench.world.advance(by: 10 * 60)
    bench.offer([20])
    bench.world.settle()
    #expect(bench.tokensSeen.count == 1)
    bench.world.advance(by: 10 * 60)
    bench.offer([21])
    bench.world.settle()
    #expect(bench.tokensSeen.count == 2)
  }

  @Test("a refused credential stops, asks once a minute, and goes on when it is accepted")
  func stopped() throws {
    let bench = try APNsBench()
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(0..<100)
    bench.world.settle()
    #expect(bench.apns.state == .stopped(reason: "InvalidProviderToken"))
    #expect(bench.answers.count == 1)
    #expect(bench.answers[0]?.reaction == .credential(.invalidAPNsCredential))
    #expect(bench.events.contains(.credentialStopped(reason: "InvalidProviderToken")))
    bench.world.advance(by: 305)
    #expect((5...6).contains(bench.provider.requests.count))
    #expect(bench.tokensSeen.count == 1)
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 61)
    #expect(bench.answers.count == 100)
    #expect(bench.apns.state == .open)
    #expect(bench.events.contains(.credentialAccepted))
  }

  @Test("a refused certificate stops the credential with the provider's reason")
  func badCertificate() throws {
    let bench = try APNsBench(certificate: true)
    bench.provider.answer = { _ in .status(403, #"{"reason":"BadCertificateEnvironment"}"#) }
    bench.offer([1])
    bench.world.settle()
    #expect(bench.apns.state == .stopped(reason: "BadCertificateEnvironment"))
  }

  @Test("the provider's date tells an operator that the clock is wrong")
  func clockOff() throws {
    let bench = try APNsBench()
    // 1,800,000,000 s is 2027-01-15 08:00:00 UTC.
    bench.provider.answer = { _ in
      .status(403, #"{"reason":"InvalidProviderToken"}"#, [("date", "Fri, 15 Jan 2027 10:00:00 GMT")])
    }
    bench.offer([1])
    bench.world.settle()
    #expect(bench.events.contains(.clockOff(seconds: 7200)))
  }

  @Test("new credentials take over under load without a failed push")
  func replacement() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<20)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    bench.apns.replaceCredentials(
      APNsCredentials(
        authentication: .token(try TestKeys.tokenCredential(TestKeys.otherP256)),
        target: DialTarget(host: "apns.test", port: 443, tls: nil)))
    bench.provider.answer = { _ in .status(200) }
    bench.offer(20..<40)
    bench.world.settle()
    for (index, request) in held.enumerated() {
      bench.provider.give(index < 10 ? .status(200) : .status(403, #"{"reason":"InvalidProviderToken"}"#), to: request)
    }
    bench.world.settle()
    #expect(bench.delivered == 41)
    #expect(!bench.apns.isStopped)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.openConnections.count == 1)
  }

  @Test("two pools of one key share its token")
  func shared() throws {
    let cache = ProviderTokenCache()
    let one = try APNsBench(tokens: cache)
    let other = try APNsBench(tokens: cache)
    one.warmUp()
    other.warmUp()
    #expect(one.tokensSeen == other.tokensSeen)
  }
}
