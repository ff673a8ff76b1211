import Testing
import Wire

@testable import Providers
@testable import PushCore

@Suite("A pool's health")
struct PoolHealthTests {
  var health = PoolHealth()
  var random = RandomSource(seed: 1)
  let start = MonotonicTime(nanoseconds: 1_000_000_000)

  private func at(_ seconds: Double) -> MonotonicTime { start.advanced(bySeconds: seconds) }

  private mutating func answer(_ reaction: Reaction, _ reason: String = "r", retryAfter: Int? = nil, at seconds: Double)
    -> PoolHealth.Pause?
  {
    let meaning = ReplyMeaning(reaction: reaction, reason: reason, status: 0, retryAfter: retryAfter)
    return health.answered(meaning, at: at(seconds), using: &random)
  }

  /// The seconds of a pause that has begun.
  private func begun(_ pause: PoolHealth.Pause?) -> Double? {
    if case .begun(let seconds, _) = pause { seconds } else { nil }
  }

  @Test("sets no limit while pushes are taken, or refused for what they are")
  mutating func good() {
    for second in 0..<100 {
      #expect(answer(.delivered, at: Double(second)) == nil)
      #expect(answer(.drop(.invalidParameters), at: Double(second)) == nil)
      #expect(answer(.retry(.connection, .unavailable), at: Double(second)) == nil)
    }
    #expect(health.allowance == .max && health.refusal == nil && health.deadline == .distantFuture)
  }

  @Test("pauses for as long as an answer asks, at most ten minutes, then lets one probe through")
  mutating func throttled() throws {
    let pause = try #require(begun(answer(.retry(.outage, .unavailable), "Shutdown", retryAfter: 30, at: 0)))
    #expect((30...33).contains(pause) && health.isPaused && health.pauseReason == "Shutdown")
    #expect(health.allowance == 0 && health.refusal == .unreachable && health.deadline == at(pause))
    // A pause under way is only ever lengthened.
    #expect(answer(.retry(.outage, .unavailable), retryAfter: 1, at: 1) == nil)
    #expect(answer(.retry(.outage, .unavailable), "later", retryAfter: 9_999, at: 1) == .lengthened)
    #expect(health.pauseReason == "Shutdown")
    var hasEnded = health.advance(to: at(600))
    #expect(!hasEnded)
    hasEnded = health.advance(to: at(662))
    #expect(hasEnded && health.isProbing && health.allowance == 1 && health.refusal == nil)
    #expect(answer(.delivered, at: 663) == nil)
    #expect(!health.isProbing && health.allowance == 2)
  }

  @Test("takes ten refusals for quota in a row for the pool's, with no push taken between")
  mutating func quota() throws {
    for _ in 1..<PoolHealth.quotaTrip { #expect(answer(.retry(.quota, .unavailable), at: 0) == nil) }
    health.hasQuota()
    for _ in 1..<PoolHealth.quotaTrip { #expect(answer(.retry(.quota, .unavailable), at: 0) == nil) }
    let pause = try #require(begun(answer(.retry(.quota, .unavailable), at: 0)))
    #expect((60...66).contains(pause))
  }

  @Test("takes many refusals in a row that each speak of one device for the provider's, until a push is taken")
  mutating func devices() throws {
    for _ in 1..<PoolHealth.deviceTrip { #expect(answer(.retry(.perDevice, .unavailable), at: 0) == nil) }
    #expect(answer(.delivered, at: 0) == nil && !health.hasFailed)
    for _ in 1..<PoolHealth.deviceTrip { #expect(answer(.retry(.perDevice, .unavailable), at: 0) == nil) }
    let pause = try #require(begun(answer(.retry(.perDevice, .unavailable), at: 0)))
    #expect((1...1.1).contains(pause) && health.hasFailed)
    // It goes on: whoever would be served may be behind them.
    _ = health.advance(to: at(2))
    for _ in 1..<PoolHealth.deviceTrip { #expect(answer(.retry(.perDevice, .unavailable), at: 2) == nil) }
    #expect(health.hasFailed && health.allowance == PoolHealth.deviceTrip)
    #expect(answer(.retry(.perDevice, .unavailable), at: 2) != nil)
    _ = health.advance(to: at(4))
    #expect(answer(.delivered, at: 4) == nil && !health.hasFailed)
  }

  @Test("opens after twenty failures or silences in a row")
  mutating func failing() {
    for _ in 1..<Circuit.tripAfter { #expect(answer(.retry(.outage, .unavailable), at: 0) == nil) }
    let pause = health.timedOut(at: at(0), using: &random)
    #expect(begun(pause) != nil && health.pauseReason == "requests time out")
  }

  @Test("asks once a minute whether a stopped credential is taken again, and still keeps to a pause")
  mutating func stopped() {
    func refusal(at seconds: Double) -> PoolHealth.Stop {
      .init("InvalidProviderToken", .invalidAPNsCredential, yields: false, isCertain: true, at: at(seconds))
    }
    health.stopCredential(refusal(at: 0))
    #expect(health.hasFailed && health.allowance == 0 && health.refusal == .unauthorised && health.deadline == at(60))
    health.stopCredential(refusal(at: 10))
    #expect(health.deadline == at(70))
    #expect(answer(.retry(.outage, .unavailable), retryAfter: 100, at: 20) != nil)
    _ = health.advance(to: at(70))
    #expect(health.stop?.isDue == true && health.isPaused)
    let hasEnded = health.advance(to: at(131))
    #expect(hasEnded && health.allowance == 0 && health.refusal == .unauthorised)
    health.resumeCredential()
    #expect(health.stop == nil && health.allowance == 1 && health.refusal == nil)
  }

  @Test("asks at once where a refusal may concern one push alone")
  func suspected() {
    let suspected = PoolHealth.Stop("TopicDisallowed", .invalidPackageName, yields: true, isCertain: false, at: at(0))
    #expect(suspected.isDue && suspected.askAt == at(0))
    let certain = PoolHealth.Stop("TopicDisallowed", .invalidPackageName, yields: true, isCertain: true, at: at(1))
    #expect(!certain.isDue && certain.askAt == at(61))
  }

  @Test("sends a probe first after an outage of the connection")
  mutating func outage() {
    var wasOut = health.connected()
    #expect(!wasOut)
    health.lostProvider()
    wasOut = health.connected()
    #expect(wasOut && health.isProbing && health.allowance == 1)
    wasOut = health.connected()
    #expect(!wasOut)
  }
}

@Suite("Trust in authorisations")
struct AuthorisationTrustTests {
  @Test("one that nobody has been taken with is to blame at its second refusal, one that is taken at the twenty-first")
  func blame() {
    var trust = AuthorisationTrust()
    #expect(!trust.hasBeenTaken && !trust.isTrusted(1) && trust.blamesPush(1))
    trust.refused()
    #expect(!trust.blamesPush(1))
    trust.took(1)
    #expect(trust.hasBeenTaken && trust.isTrusted(1) && !trust.isTrusted(2))
    for _ in 0..<AuthorisationTrust.refusalTrip {
      #expect(trust.blamesPush(1) && trust.isTakenFromOthers)
      trust.refused()
    }
    #expect(!trust.blamesPush(1) && !trust.isTakenFromOthers)
    // A push that an earlier credential was taken with says that the provider answers, not which authorisation it takes.
    trust.took(nil)
    #expect(trust.isTakenFromOthers && !trust.isTrusted(2))
  }

  @Test("is lost when push after push asks for another one")
  func renewals() {
    var trust = AuthorisationTrust()
    trust.took(1)
    for _ in 0..<AuthorisationTrust.refusalTrip {
      #expect(trust.isTrusted(1))
      trust.renewed()
    }
    #expect(!trust.isTrusted(1))
    trust.took(1)
    #expect(trust.isTrusted(1))
  }
}
