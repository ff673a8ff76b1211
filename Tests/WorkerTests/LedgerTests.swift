import Testing

@testable import Delivery

/// A request is acknowledged when every consequence is confirmed, and at no other moment.
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

  @Test("is acknowledged at once where nothing follows")
  mutating func nothingFollows() {
    open(1)
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.concluded() == .acknowledge)
  }

  @Test("a feedback that is confirmed before the last recipient has ended acknowledges nothing")
  mutating func earlyConfirm() {
    open(2)
    ledger.owes()
    #expect(ledger.closed() == .nothing)
    #expect(ledger.met() == .nothing)
    #expect(ledger.closed() == .conclude)
  }

  @Test("concludes once, however many ends are counted")
  mutating func once() {
    open(1)
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    ledger.owes()
    #expect(ledger.stepOfRecipients == .nothing)
  }

  @Test("doesn't end under a loop over its recipients")
  mutating func loop() {
    open(2)
    ledger.opened()
    #expect(ledger.closed() == .nothing)
    #expect(ledger.closed() == .nothing)
    #expect(ledger.closed() == .conclude)
  }

  @Test("a page is reported when what its devices led to is safe, and acknowledged after that")
  mutating func page() {
    open(1)
    ledger.owes()
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.owesReport() == .nothing)
    #expect(ledger.concluded() == .nothing)
    #expect(ledger.met() == .report)
    ledger.owes()
    #expect(ledger.met() == .acknowledge)
  }

  @Test("a page that owes nothing is reported at once")
  mutating func pageAtOnce() {
    open(1)
    _ = ledger.closed()
    ledger.conclude()
    #expect(ledger.owesReport() == .report)
  }

  @Test("a copy that says what has ended leaves when that is safe, and isn't made where the original comes back")
  mutating func copy() {
    open(2)
    ledger.owes()
    _ = ledger.closed()
    #expect(ledger.closed() == .conclude)
    ledger.conclude()
    #expect(ledger.owesCopy() == .nothing)
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
    #expect(ledger.owesCopy() == .putOff)
  }

  @Test("an orphan is let go of instead of concluded, and goes on when it is delivered again")
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

  @Test("an orphan that is concluded waits for its confirms, whichever comes first")
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

  @Test("a copy for the ladder that is taken back before it left opens the decision again")
  mutating func withdrawn() {
    open(1)
    _ = ledger.closed()
    ledger.conclude()
    ledger.owes()
    ledger.channelLost()
    ledger.withdrawn()
    #expect(ledger.isSettled && ledger.redelivered() == .resume)
    // The registry's word that it waits may still be owed.
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
