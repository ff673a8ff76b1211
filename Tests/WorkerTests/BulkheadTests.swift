import Testing
import Wire

@testable import Worker

@Suite("A bulkhead")
struct BulkheadTests {
  private func at(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("closes with the provider's trouble, and opens when that is over and what was held is gone")
  func trouble() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(1))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(2))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(3))
    bulkhead.emptied()
    #expect(bulkhead.isClosed && bulkhead.troubledSince == at(2))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(4))
    #expect(bulkhead.isClosed && bulkhead.troubledSince == nil)
    bulkhead.emptied()
    #expect(!bulkhead.isClosed)
  }

  @Test("closes when a request has waited too long; to the high lane, only when one of its own has")
  func waiting() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: true, high: .short, at: at(1))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .overdue, at: at(2))
    #expect(bulkhead.isClosed(to: .sendNormal) && bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(3))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
    bulkhead.emptied()
    #expect(!bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
  }

  @Test("lets the high lane pass what is held as soon as the provider is out of trouble")
  func highFirst() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: true, grace: 0, isOverdue: false, high: .none, at: at(1))
    #expect(bulkhead.isClosed(to: .sendHigh))
    bulkhead.note(isInTrouble: false, grace: 0, isOverdue: false, high: .none, at: at(2))
    #expect(bulkhead.isClosed(to: .sendNormal) && !bulkhead.isClosed(to: .sendHigh))
  }

  @Test("stays open for a while where nobody else is held up; trouble that begins anew counts from its beginning")
  func grace() {
    var bulkhead = Bulkhead()
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(0))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(4))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: false, grace: 5, isOverdue: false, high: .none, at: at(4.5))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(5))
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(9))
    #expect(!bulkhead.isClosed)
    bulkhead.note(isInTrouble: true, grace: 5, isOverdue: false, high: .none, at: at(10))
    #expect(bulkhead.isClosed)
  }
}
