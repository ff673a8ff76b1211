import Testing
import Wire

@testable import Worker

@Suite("What waits for a provider that is unreachable")
struct OutageTests {
  private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test(
    "stays for five seconds, and is parked for as long as the outage has lasted, ten seconds at least and five minutes at most")
  func parking() {
    var outage = Outage()
    let times: [(Double, Int64?)] = [
      (0, nil), (1, nil), (4.9, nil), (5, 10_000), (6, 10_000), (60, 60_000), (299, 299_000), (301, 300_000), (90_000, 300_000),
    ]
    for (seconds, delay) in times {
      let parking = outage.note(isOutOfReach: true, at: at(seconds))
      #expect(parking == delay, "\(seconds)")
    }
  }

  @Test("stays again once the provider was back in between")
  func back() {
    var outage = Outage()
    for second in 0..<10 { _ = outage.note(isOutOfReach: true, at: at(Double(second))) }
    let steps: [(Bool, Double)] = [(false, 10), (true, 11), (true, 15.9)]
    for (isOutOfReach, seconds) in steps {
      let parking = outage.note(isOutOfReach: isOutOfReach, at: at(seconds))
      #expect(parking == nil, "\(seconds)")
    }
    let parking = outage.note(isOutOfReach: true, at: at(16))
    #expect(parking == 10_000)
  }
}
