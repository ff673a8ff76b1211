import Testing

@testable import Worker

@Suite("The duplicate window")
struct DuplicateWindowTests {
  @Test("tells a retransmission from a different body, id or round")
  func fingerprints() {
    var window = DuplicateWindow()
    let body = Array("{\"to\":\"x\",\"data\":{\"n\":\"1234567890\"}}".utf8)
    func isNew(_ id: UInt8, _ body: [UInt8], _ round: Int) -> Bool {
      window.insert(window.fingerprint(messageID: [id], body: body, round: round))
    }
    let verdicts = [isNew(1, body, 0), isNew(1, body, 0), isNew(2, body, 0), isNew(1, body, 1)]
    #expect(verdicts == [true, false, true, true])
    for index in body.indices {
      var other = body
      other[index] ^= 1
      let isOtherNew = isNew(1, other, 0)
      #expect(isOtherNew)
    }
  }

  @Test("forgets what was removed and what is older than its capacity")
  func forgets() {
    var window = DuplicateWindow()
    var verdicts = [window.insert(1)]
    window.remove(1)
    verdicts.append(window.insert(1))
    for print in 2..<UInt64(DuplicateWindow.capacity + 3) { verdicts.append(window.insert(print)) }
    verdicts.append(window.insert(1))
    #expect(verdicts.allSatisfy { $0 })
  }
}

@Suite("A ring")
struct RingTests {
  @Test("keeps its order while it grows and wraps, from either end")
  func order() {
    var ring = Ring<Int>(capacity: 2)
    for number in 0..<5 { ring.append(number) }
    var seen: [Int] = []
    if let first = ring.popFirst() { seen.append(first) }
    ring.prepend(-1)
    for number in 5..<40 { ring.append(number) }
    while let number = ring.popFirst() { seen.append(number) }
    #expect(seen == [0, -1] + Array(1..<40))
    #expect(ring.isEmpty)
  }
}
