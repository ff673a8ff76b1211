import Testing
import Wire

@testable import Worker

@Suite("The lag of a shard's loop")
struct LoopLagTests {
  @Test("is the maximum of the last half minute")
  func forgotten() {
    var lag = LoopLag()
    func note(_ seconds: Double, at time: Double) {
      lag.note(seconds, at: MonotonicTime(nanoseconds: 0).advanced(bySeconds: 100 + time))
    }
    note(0.2, at: 0)
    note(0.1, at: 1)
    #expect(lag.most == 0.2)
    note(0.05, at: 16)
    #expect(lag.most == 0.2)
    note(0.01, at: 32)
    #expect(lag.most == 0.05)
  }
}
