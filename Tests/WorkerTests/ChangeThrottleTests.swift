import Testing
import Wire

@testable import Broker

@Suite("When the registry's changes are consumed and given back")
struct ChangeThrottleTests {
  private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: 1_000 + seconds) }

  @Test("Changes are consumed while the registry is usable, and no longer soon after it isn't")
  func usable() {
    var throttle = ChangeThrottle()
    #expect(!throttle.begins(at: time(0)))
    throttle.registryChanged(isUsable: true, at: time(1))
    #expect(throttle.begins(at: time(1)) && !throttle.leaves(at: time(100)))
    throttle.registryChanged(isUsable: false, at: time(100))
    throttle.registryChanged(isUsable: false, at: time(104))
    #expect(!throttle.leaves(at: time(104)) && throttle.leaves(at: time(105)))
    #expect(!throttle.begins(at: time(5_000)))
    throttle.registryChanged(isUsable: true, at: time(5_000))
    #expect(throttle.begins(at: time(5_000)) && !throttle.leaves(at: time(5_000)))
  }

  @Test("Unapplied changes are returned far less often in a day than their queue allows, and before RabbitMQ's timeout")
  func hourlong() {
    var now = 0.0
    var returns: Int64 = 0
    while now < 12 * 3_600 {
      let since = now
      while !ChangeThrottle.givesBack(stuckSince: time(since), returns: returns, at: time(now)) { now += 1 }
      #expect(now - since >= 60 && now - since < 1_800)
      returns += 1
      if returns == 1 { #expect(now == 60) }
    }
    #expect(returns < 40)
    #expect(ChangeThrottle.givesBack(stuckSince: time(0), returns: .max, at: time(1_500)))
    #expect(ChangeThrottle.givesBack(stuckSince: time(0), returns: .min, at: time(60)))
  }

  @Test("After changes are given back, another worker has its turn; the pause grows until the registry accepts a change")
  func rests() {
    var throttle = ChangeThrottle()
    throttle.registryChanged(isUsable: true, at: time(0))
    var rests: [Double] = []
    for _ in 0..<9 {
      throttle.gaveBack(at: time(0))
      rests.append((0...1_000).first { throttle.begins(at: time(Double($0))) }.map(Double.init) ?? .infinity)
    }
    #expect(rests == [10, 20, 40, 80, 160, 320, 600, 600, 600])
    throttle.progressed()
    throttle.gaveBack(at: time(2_000))
    #expect(!throttle.begins(at: time(2_009)) && throttle.begins(at: time(2_010)))
  }
}
