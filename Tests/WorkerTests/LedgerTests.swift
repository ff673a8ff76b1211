import Testing

@testable import Delivery

/// A request is acknowledged when all consequences are confirmed, and never before.
@Suite("A request's ledger")
struct LedgerTests {
  private var ledger = Ledger()

  private mutating func open(_ count: Int) {
    ledger.startRound()
    for _ in 0..<count { ledger.opened() }
  }

  @Test("concludes with its last recipient, and is acknowledged with its last confirm")
  mutating func straight() {
    open(2)
    ledger.pushed()
    ledger.pushed()
    ledger.pushReturned()
    #expect(ledger.closed() == .nothing)
    ledger.pushReturned()
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    ledger.owes()
    ledger.owes()
    #expect(ledger.concluded() == .nothing)
    #expect(ledger.met() == .nothing)
    #expect(ledger.met() == .acknowledge)
  }

  @Test("is acknowledged at once if nothing follows")
  mutating func nothingFollows() {
    open(1)
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.concluded() == .acknowledge)
  }

  @Test("is not acknowledged when a feedback is confirmed before the last recipient has ended")
  mutating func earlyConfirm() {
    open(2)
    ledger.owes()
    #expect(ledger.closed() == .nothing)
    #expect(ledger.met() == .nothing)
    #expect(ledger.closed() == .conclude)
  }

  @Test("concludes once, however many recipients end")
  mutating func once() {
    open(1)
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    ledger.owes()
    #expect(ledger.stepOfRecipients == .nothing)
  }

  @Test("doesn't conclude during a loop over its recipients")
  mutating func loop() {
    open(2)
    ledger.opened()
    #expect(ledger.closed() == .nothing)
    #expect(ledger.closed() == .nothing)
    #expect(ledger.closed() == .conclude)
  }

  @Test("reports a page when the consequences of its devices are confirmed, and is acknowledged after that")
  mutating func page() {
    open(1)
    ledger.owes()
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.owes(.report) == .nothing)
    #expect(ledger.concluded() == .nothing)
    #expect(ledger.met() == .report)
    ledger.owes()
    #expect(ledger.met() == .acknowledge)
  }

  @Test("reports a page at once if nothing is owed")
  mutating func pageAtOnce() {
    open(1)
    _ = ledger.closed()
    ledger.conclude()
    #expect(ledger.owes(.report) == .report)
  }

  @Test("lets a copy leave once earlier consequences are confirmed, and makes none if the original is redelivered")
  mutating func copy() {
    open(2)
    ledger.owes()
    _ = ledger.closed()
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.owes(.putOff) == .nothing)
    #expect(ledger.concluded() == .nothing)
    var lost = ledger
    #expect(ledger.met() == .putOff)
    ledger.owes()
    #expect(ledger.met() == .acknowledge)
    lost.channelLost()
    #expect(lost.met() == .forget)
    #expect(lost.redelivered() == .resume)
    ledger = Ledger()
    ledger.conclude()
    #expect(ledger.owes(.putOff) == .putOff)
  }

  @Test("drops an orphan instead of concluding it, and continues when it is redelivered")
  mutating func orphan() {
    open(2)
    ledger.pushed()
    ledger.channelLost()
    #expect(!ledger.isSettled)
    ledger.pushReturned()
    #expect(ledger.isSettled)
    #expect(ledger.closed() == .forget)
    #expect(ledger.redelivered() == .resume)
    open(1)
    #expect(ledger.closed() == .conclude)
  }

  @Test("waits for the confirms of a concluded orphan, before or after its redelivery")
  mutating func concludedOrphan() {
    open(1)
    _ = ledger.closed()
    ledger.conclude()
    ledger.owes()
    ledger.channelLost()
    #expect(ledger.redelivered() == .nothing)
    #expect(ledger.met() == .acknowledge)
    ledger = Ledger()
    ledger.conclude()
    ledger.owes()
    ledger.channelLost()
    #expect(ledger.met() == .acknowledge)
  }

  @Test("is open again when a copy for the ladder is withdrawn")
  mutating func withdrawn() {
    open(1)
    _ = ledger.closed()
    ledger.conclude()
    ledger.owes()
    ledger.channelLost()
    ledger.withdrawn()
    #expect(ledger.isSettled && ledger.redelivered() == .resume)
    // The registry may still have to store the waiting request's note.
    ledger = Ledger()
    ledger.conclude()
    ledger.owes()
    ledger.owes()
    ledger.withdrawn()
    ledger.channelLost()
    #expect(!ledger.isSettled && ledger.redelivered() == .resume)
    #expect(ledger.met() == .nothing)
  }
}
