import Testing
import Wire

@testable import Worker

@Suite("What a batch waits for")
struct BatchNoticeTests {
  @Test("is logged at once and every half minute, with the queues that aren't empty")
  func said() {
    var notice = BatchNotice()
    let start = MonotonicTime(nanoseconds: 0)
    func due(_ seconds: Double, _ ready: Int) -> [String] {
      notice.due([("push.send.normal", 0), ("push.retry.1m", ready)], at: start.advanced(bySeconds: seconds))
    }
    #expect(due(0, 0) == [])
    #expect(due(1, 3) == ["push.retry.1m: 3"])
    #expect(due(30, 2) == [] && due(31, 0) == [])
    #expect(due(32, 1) == ["push.retry.1m: 1"] && due(33, 1) == [])
  }
}
