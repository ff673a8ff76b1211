import Testing
import Wire

@testable import Worker

@Suite("A bulkhead")
struct BulkheadTests {
  private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("closes with the provider's trouble, and opens when that is over and what was held is gone")
  func trouble() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, waitingSince: nil, at: at(1))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 0, waitingSince: nil, at: at(2))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: true, grace: 0, waitingSince: nil, at: at(3))
    bulkhead.emptied()
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: false, grace: 0, waitingSince: nil, at: at(4))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == nil)
    bulkhead.emptied()
    #expect(!bulkhead.isClosed)
  }

  @Test("closes when the oldest request has waited too long, and not for one that waits less")
  func waiting() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, waitingSince: at(1), at: at(1 + Bulkhead.longestWait))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: false, grace: 0, waitingSince: at(1), at: at(1.1 + Bulkhead.longestWait))
    #expect(bulkhead.isClosed)
  }

  @Test("stays open for a while where nobody else is held up; trouble that begins anew counts from its beginning")
  func grace() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: true, grace: 5, waitingSince: nil, at: at(0))
    bulkhead.note(isInTrouble: true, grace: 5, waitingSince: nil, at: at(4))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: false, grace: 5, waitingSince: nil, at: at(4.5))
    bulkhead.note(isInTrouble: true, grace: 5, waitingSince: nil, at: at(5))
    bulkhead.note(isInTrouble: true, grace: 5, waitingSince: nil, at: at(9))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 5, waitingSince: nil, at: at(10))
    #expect(bulkhead.isClosed)
  }
}
