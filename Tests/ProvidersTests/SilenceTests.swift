import HTTP2
import Reactor
import Testing
import Wire

@testable import Providers

@Suite("A provider that falls silent")
struct SilenceTests {
  /// Answers a canary as APNs does, and everything else with 200; nothing while it is silent.
  private final class Behaviour {
    var isSilent = false
    /// To canaries; nil: as to a device that is none.
    var canaryStatus: Int?
    private(set) var canaries: [MonotonicTime] = []

    func install(in bench: APNsBench) {
      bench.provider.answer = { [unowned self, unowned bench] in
        if $0.isCanary { canaries.append(bench.world.now) }
        if isSilent { return .stall }
        return $0.isCanary ? .status(canaryStatus ?? 400, #"{"reason":"BadDeviceToken"}"#) : .status(200)
      }
    }
  }

  private func make() throws -> (APNsBench, Behaviour) {
    let bench = try APNsBench()
    bench.warmUp()
    let behaviour = Behaviour()
    behaviour.install(in: bench)
    return (bench, behaviour)
  }

  /// Still silent after so many seconds, in which so many pushes wanted to go out.
  private func makeSilent(offering count: Int, for seconds: Double) throws -> (APNsBench, Behaviour) {
    let (bench, behaviour) = try make()
    behaviour.isSilent = true
    bench.offer(0..<count)
    bench.world.advance(by: seconds)
    return (bench, behaviour)
  }

  @Test(
    "with all streams taken: pushes go out within 2 s of its return, not when those in flight have timed out",
    arguments: [6.0, 13])
  func streamsTaken(silence: Double) throws {
    let (bench, behaviour) = try makeSilent(offering: 300, for: silence)
    #expect(bench.pool.inFlight == 100 && bench.delivered == 1 && !behaviour.canaries.isEmpty)
    behaviour.isSilent = false
    bench.world.advance(by: 2.1)
    #expect(bench.delivered == 201 && bench.unknown.isEmpty)
    // The provider hasn't answered those: nothing is said of them before their time, and nothing follows for the others.
    bench.world.advance(by: 30)
    #expect(bench.unknown.count == 100 && bench.unknown.allSatisfy { $0.reason == "no answer in time" })
    #expect(bench.pool.state == .open && bench.pool.inFlight == 0)
    bench.offer(300..<400)
    bench.world.settle()
    #expect(bench.delivered == 301)
  }

  @Test("a probe that isn't answered is not waited for either")
  func unansweredProbe() throws {
    let (bench, behaviour) = try makeSilent(offering: 300, for: 40)
    // All in flight have timed out, and what went out as they did has 20 s to go.
    #expect(bench.unknown.count == 100 && bench.pool.state == .probing)
    #expect((1...19).contains(bench.pool.inFlight))
    behaviour.isSilent = false
    bench.world.advance(by: 2.1)
    #expect(bench.delivered > 100)
  }

  @Test("connections that have died under it are replaced")
  func deadConnection() throws {
    let (bench, behaviour) = try make()
    behaviour.isSilent = true
    bench.world.connections[0].isDead = true
    bench.world.answerDial = { _ in .hang }
    bench.offer(0..<50)
    bench.world.advance(by: 9)
    bench.world.answerDial = { [provider = bench.provider] _ in .accept(provider.accept()) }
    behaviour.isSilent = false
    bench.world.advance(by: 4)
    bench.offer(50..<60)
    bench.world.settle()
    #expect(bench.delivered == 11)
    #expect(bench.world.openConnections.count == 2)
  }

  @Test("it is asked by one request at a time, whose answers come soon or count for nothing")
  func slow() throws {
    let (bench, behaviour) = try makeSilent(offering: 200, for: 15.5)
    #expect(behaviour.canaries.count == 6)
    for request in bench.provider.requests.filter({ $0.isCanary }).dropLast() {
      bench.provider.give(.status(400), to: request)
    }
    bench.world.settle()
    #expect(bench.pool.inFlight == 100 && bench.delivered == 1)
  }

  @Test("answers that speak of its own trouble let nothing out", arguments: [429, 500, 503])
  func inTrouble(status: Int) throws {
    let (bench, behaviour) = try makeSilent(offering: 200, for: 5)
    behaviour.isSilent = false
    behaviour.canaryStatus = status
    bench.world.advance(by: 10)
    #expect(bench.delivered == 1 && behaviour.canaries.count <= 8)
    behaviour.canaryStatus = nil
    bench.world.advance(by: 2.1)
    #expect(bench.delivered == 101)
  }

  @Test("of what GOAWAY has turned away, one push probes the provider that answers a canary again")
  func turnedAway() throws {
    let bench = try APNsBench(certificate: true)
    bench.warmUp()
    bench.provider.answer = { $0.isCanary ? .status(400) : .stall }
    bench.provider.streamLimit = 4
    bench.offer(0..<60)
    bench.world.settle()
    func pushes() -> Int { bench.provider.requests.count { !$0.isCanary } }
    bench.provider.sessions[0].goAway(lastStreamID: 1)
    bench.world.settle()
    let before = pushes()
    #expect(before == 65)
    bench.world.advance(by: 4.5)
    #expect(pushes() == before + 1)
    bench.world.advance(by: 3)
    #expect(pushes() == before + 1)
  }

  @Test("is asked again after each silence, also where the credential was replaced under load")
  func replacedCredential() throws {
    let (bench, behaviour) = try make()
    behaviour.isSilent = true
    bench.offer(0..<10)
    bench.world.settle()
    bench.apns.replaceCredentials(
      APNsCredentials(
        authentication: .token(try TestKeys.tokenCredential()),
        target: DialTarget(Endpoint(host: "apns.test", port: 443), tls: nil)))
    bench.offer(10..<20)
    bench.world.advance(by: 7)
    #expect(behaviour.canaries.count >= 1)
  }

  @Test("one that has asked for a pause isn't asked in it")
  func pause() throws {
    let (bench, behaviour) = try make()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<10)
    bench.world.settle()
    bench.provider.give(.status(503, "{}", [("retry-after", "20")]), to: bench.provider.requests[1])
    behaviour.install(in: bench)
    bench.world.advance(by: 19)
    #expect(behaviour.canaries.isEmpty && bench.delivered == 1)
    bench.offer(10..<20)
    bench.world.advance(by: 5)
    #expect(bench.delivered == 11)
  }

  @Test("one that answers canaries alone is given a push now and then, and ever more seldom")
  func canariesAlone() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { $0.isCanary ? .status(400) : .stall }
    bench.offer(0..<500)
    bench.world.advance(by: 29)
    #expect(bench.provider.requests.count { !$0.isCanary } <= 101 + 3)
    #expect(bench.world.connections.count <= 8)
  }

  @Test("nobody is asked who owes nothing, or answers")
  func noneOwed() throws {
    let (bench, behaviour) = try make()
    bench.world.advance(by: 60)
    for second in 0..<20 {
      bench.offer(second..<(second + 1))
      bench.world.advance(by: 1)
    }
    #expect(behaviour.canaries.isEmpty && bench.world.connections.count == 1 && bench.delivered == 21)
    behaviour.isSilent = true
    bench.offer([50])
    bench.world.advance(by: 5)
    #expect(behaviour.canaries.count == 1)
    bench.world.advance(by: 27)
    let asked = behaviour.canaries.count
    bench.world.advance(by: 60)
    #expect(bench.unknown.count == 1 && behaviour.canaries.count <= asked + 1)
    #expect(bench.world.openConnections.count <= 1)
  }

  @Test("stays in trouble while one push after the other gets no answer", arguments: [30.0, 3])
  func oneAfterAnother(timeout: Double) throws {
    var settings = PoolSettings.apns
    settings.requestTimeout = timeout
    let bench = try APNsBench(settings: settings)
    bench.warmUp()
    let behaviour = Behaviour()
    behaviour.install(in: bench)
    behaviour.isSilent = true
    var untroubled: [Int] = []
    for second in 0..<100 {
      if bench.pool.inFlight == 0 { bench.offer([second]) }
      if second > Int(timeout), !bench.pool.isInTrouble(at: bench.world.now) { untroubled.append(second) }
      bench.world.advance(by: 1)
    }
    #expect(untroubled.isEmpty && bench.unknown.count >= 3 && !behaviour.canaries.isEmpty)
    behaviour.isSilent = false
    bench.offer([100])
    bench.world.advance(by: 60)
    bench.offer([101])
    bench.world.settle()
    #expect(!bench.pool.isInTrouble(at: bench.world.now) && bench.delivered >= 3)
  }

  @Test("FCM is asked to validate a message to nobody")
  func fcm() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<2_000)
    bench.world.advance(by: 11)
    #expect(bench.pool.inFlight == 800)
    let canaries = bench.provider.requests.filter { String(decoding: $0.body, as: UTF8.self).contains("not a device") }
    #expect(canaries.count == 4 && canaries.allSatisfy { $0.authorization == "Bearer token-1" })
    bench.provider.answer = { request in
      String(decoding: request.body, as: UTF8.self).contains("canary")
        ? FCMBench.error(400, "INVALID_ARGUMENT") : FCMBench.success(request)
    }
    bench.world.advance(by: 2.1)
    #expect(bench.delivered > 1)
    bench.world.advance(by: 60)
    #expect(bench.delivered == 1_201 && bench.unknown.count == 800)
  }
}
