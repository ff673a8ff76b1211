import Testing
import Wire

@testable import Providers

@Suite("A rate limiter")
struct RateLimiterTests {
  let start = MonotonicTime(nanoseconds: 5_000_000_000)

  /// Takes all it can every 10 ms from `from` to `until` seconds; counts per second.
  private func drain(_ rateLimiter: inout RateLimiter, from: Int = 0, seconds: Int) -> [Int] {
    (from..<from + seconds).map { second in
      var taken = 0
      for step in 0..<100 {
        let now = start.advanced(bySeconds: Double(second) + Double(step) / 100)
        while rateLimiter.available(at: now) > 0 {
          rateLimiter.take()
          taken += 1
        }
      }
      return taken
    }
  }

  @Test("never lets more than the quota through in any minute")
  func quota() {
    var rateLimiter = RateLimiter(perMinute: 6000, at: start)
    let perSecond = drain(&rateLimiter, seconds: 180)
    for minute in 0..<120 { #expect(perSecond[minute..<minute + 60].reduce(0, +) <= 6001) }
    #expect(perSecond.reduce(0, +) > 17_500)
  }

  @Test("idle time saves up no more than the burst")
  func burst() {
    var rateLimiter = RateLimiter(perMinute: 6000, at: start)
    let saved = rateLimiter.available(at: start.advanced(bySeconds: 3600))
    #expect(saved <= 99)
  }

  @Test("rises from next to nothing to the full rate over a minute after an outage")
  func ramp() {
    var rateLimiter = RateLimiter(perMinute: 60_000, at: start)
    rateLimiter.ramp(from: start)
    let perSecond = drain(&rateLimiter, seconds: 80)
    #expect(perSecond[0] < 30)
    #expect((380...620).contains(perSecond[30]))
    #expect((900...1000).contains(perSecond[70]))
    for (earlier, later) in zip(perSecond[..<55], perSecond[5..<60]) { #expect(earlier <= later + 2) }
  }

  @Test("says when the next push may leave, and then it may")
  func nextToken() {
    var rateLimiter = RateLimiter(perMinute: 600, at: start)
    while rateLimiter.available(at: start) > 0 { rateLimiter.take() }
    let next = rateLimiter.nextToken(after: start)
    #expect(next > start)
    #expect(next.seconds(since: start) < 0.2)
    let available = rateLimiter.available(at: next.advanced(bySeconds: 0.001))
    #expect(available == 1)
  }

  @Test("a quota of one is still a pace: one push, and the next more than a minute later", arguments: [0, 1])
  func tiny(_ perMinute: Int) {
    var rateLimiter = RateLimiter(perMinute: perMinute, at: start)
    let available = [0, 60, 61.01].map { seconds in
      let available = rateLimiter.available(at: start.advanced(bySeconds: seconds))
      if available > 0 { rateLimiter.take() }
      return available
    }
    #expect(available == [1, 0, 1])
  }

  @Test("a small quota that is lowered is not exceeded either", arguments: 1...4)
  func smallAndLowered(_ perMinute: Int) {
    for lowered in 0...3 {
      var rateLimiter = RateLimiter(perMinute: perMinute, at: start)
      for _ in 0..<lowered { rateLimiter.lower(at: start) }
      // The burst, and a minute's refill.
      let most = max(Int(Double(perMinute) * rateLimiter.granted), 1)
      let most60 = Int(rateLimiter.burst + rateLimiter.perSecond * 60)
      #expect(most60 <= most, "\(lowered)")
    }
  }

  @Test("sends a quarter less each time the quota is used up, and a hundredth of it more in each minute after")
  func lowered() {
    var rateLimiter = RateLimiter(perMinute: 6000, at: start)
    rateLimiter.lower(at: start)
    let lowered = drain(&rateLimiter, seconds: 20)
    #expect(lowered.dropFirst().allSatisfy { (72...76).contains($0) }, "\(lowered)")
    for _ in 0..<20 { rateLimiter.lower(at: start.advanced(bySeconds: 20)) }
    #expect(rateLimiter.granted == RateLimiter.leastShare)
    let rested = rateLimiter.available(at: start.advanced(bySeconds: 20 + 61 * 60))
    #expect(rested > 0 && (0.6...0.7).contains(rateLimiter.granted))
    _ = rateLimiter.available(at: start.advanced(bySeconds: 1e5))
    #expect(rateLimiter.granted == 1 && rateLimiter.burst > 98)
  }

  @Test("takes another rate from now on, without a burst of its own")
  func change() {
    var rateLimiter = RateLimiter(perMinute: 6000, at: start)
    _ = drain(&rateLimiter, seconds: 1)
    rateLimiter.change(perMinute: 600, at: start.advanced(bySeconds: 1))
    #expect(drain(&rateLimiter, from: 1, seconds: 10).allSatisfy { $0 <= 11 })
    rateLimiter.change(perMinute: 12_000, at: start.advanced(bySeconds: 11))
    let faster = drain(&rateLimiter, from: 11, seconds: 10)
    #expect(faster.allSatisfy { (150...201).contains($0) }, "\(faster)")
  }
}
