import Testing
import Wire

@testable import Providers

@Suite("Doubts about suspect tokens")
struct SuspicionGaugeTests {
  let start = MonotonicTime(nanoseconds: 1_000_000_000)

  @Test("rise once when most of at least fifty answers call the token wrong")
  func raises() {
    var gauge = SuspicionGauge()
    let alarms = (0..<200).compactMap { _ in gauge.counted(isSuspect: true, at: start) }
    #expect(alarms == [100])
    #expect(gauge.isRaised)
  }

  @Test("don't rise for a few, nor for half")
  func tolerates() {
    var few = SuspicionGauge()
    var half = SuspicionGauge()
    let alarms =
      (0..<49).compactMap { _ in few.counted(isSuspect: true, at: start) }
      + (0..<1000).compactMap { half.counted(isSuspect: !$0.isMultiple(of: 2), at: start) }
    #expect(alarms.isEmpty)
  }

  @Test("end when a whole window has gone well")
  func ends() {
    var gauge = SuspicionGauge()
    for _ in 0..<100 { _ = gauge.counted(isSuspect: true, at: start) }
    for _ in 0..<100 { _ = gauge.counted(isSuspect: false, at: start.advanced(bySeconds: 301)) }
    #expect(gauge.isRaised)
    _ = gauge.counted(isSuspect: false, at: start.advanced(bySeconds: 602))
    #expect(!gauge.isRaised)
  }
}
