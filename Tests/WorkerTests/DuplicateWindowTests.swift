import Testing
import Wire

@testable import Delivery

@Suite("The duplicate window")
struct DuplicateWindowTests {
  @Test("distinguishes a retransmission from a different body, id, round, application or sender")
  func fingerprints() {
    var window = DuplicateWindow(seed: 1)
    let body = Array("{\"to\":\"x\",\"data\":{\"n\":\"1234567890\"}}".utf8)
    func isNew(_ id: UInt8, _ body: [UInt8], _ round: Int, app: Int = 0, sender: [UInt8]? = nil) -> Bool {
      window.insert(window.fingerprint(app: app, sender: sender, messageID: [id], body: body, round: round), at: 0)
    }
    let verdicts = [isNew(1, body, 0), isNew(1, body, 0), isNew(2, body, 0), isNew(1, body, 1)]
    #expect(verdicts == [true, false, true, true])
    let others = [isNew(1, body, 0, app: 1), isNew(1, body, 0, sender: [1]), isNew(1, body, 0, sender: [2])]
    #expect(others == [true, true, true])
    let again = [isNew(1, body, 0, app: 1), isNew(1, body, 0, sender: [1]), isNew(1, body, 0, sender: [2])]
    #expect(again == [false, false, false])
    for index in body.indices {
      var other = body
      other[index] ^= 1
      let isOtherNew = isNew(1, other, 0)
      #expect(isOtherNew)
    }
  }

  @Test("forgets removed requests and those beyond its capacity")
  func forgets() {
    var window = DuplicateWindow(seed: 1)
    var verdicts = [window.insert(1, at: 0)]
    window.remove(1)
    verdicts.append(window.insert(1, at: 0))
    for print in 2..<UInt64(DuplicateWindow.capacity + 3) { verdicts.append(window.insert(print, at: 0)) }
    verdicts.append(window.insert(1, at: 0))
    #expect(verdicts.allSatisfy { $0 })
  }

  @Test("keeps a waiting request until it is due, and an expected redelivery for one recognition")
  func waits() {
    var window = DuplicateWindow(seed: 1)
    let new = [window.insert(1, at: 0), window.insert(2, at: 0)]
    window.keep(1, until: 100)
    window.keep(2, until: 100, isForOne: true)
    let waiting = [window.insert(1, at: 0), window.insert(1, at: 99), window.insert(1, at: 100), window.insert(1, at: 300)]
    let once = [window.insert(2, at: 1), window.insert(2, at: 2), window.insert(2, at: 300)]
    #expect(new == [true, true] && waiting == [false, false, true, false] && once == [false, true, false])
  }

  @Test("keeps a request that was removed and came again for the whole window")
  func removedAndInserted() {
    var window = DuplicateWindow(seed: 1)
    var isNew = window.insert(1, at: 0)
    #expect(isNew)
    for print in 2...UInt64(DuplicateWindow.capacity / 2) { isNew = window.insert(print, at: 0) }
    window.remove(1)
    isNew = window.insert(1, at: 0)
    #expect(isNew)
    let later = UInt64(DuplicateWindow.capacity)
    for print in later..<later + UInt64(DuplicateWindow.capacity) - 1 { isNew = window.insert(print, at: 0) }
    isNew = window.insert(1, at: 0)
    #expect(!isNew)
    isNew = window.insert(later - 1, at: 0)
    isNew = window.insert(1, at: 0)
    #expect(isNew)
  }
}

@Suite("A throttle of log lines")
struct ThrottleTests {
  @Test("lets one line a minute through for each subject, counts the others, and limits the number of subjects")
  func throttle() {
    var throttle = Throttle<[UInt8]>(seconds: 60, most: 1_000)
    var now = MonotonicTime(nanoseconds: 1)
    var admitted: [Int?] = []
    for _ in 0..<5 { admitted.append(throttle.admit([1], at: now)) }
    admitted.append(throttle.admit([2], at: now))
    now = now.advanced(bySeconds: 61)
    admitted.append(throttle.admit([1], at: now))
    #expect(admitted == [0, nil, nil, nil, nil, 0, 4])
    var lines = 0
    for number in 0..<UInt64(100_000) {
      if throttle.admit(withUnsafeBytes(of: number) { Array($0) }, at: now) != nil { lines += 1 }
    }
    #expect(lines <= 1_000)
  }
}
