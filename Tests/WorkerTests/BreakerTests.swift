import Testing
import Wire

@testable import Delivery

@Suite("The breaker")
struct BreakerTests {
  /// Notes answers at one time, in milliseconds. Returns true if one of them opened the breaker.
  /// - Parameter skew: the wall clock's error in milliseconds.
  private func note(_ breaker: inout Breaker, refused: Int, taken: Int, at now: Int64, skew: Int64 = 0) -> Bool {
    let time = MonotonicTime(nanoseconds: now * 1_000_000)
    var hasOpened = false
    for _ in 0..<taken { if breaker.note(isRefused: false, at: time, wallClock: now + skew) { hasOpened = true } }
    for _ in 0..<refused { if breaker.note(isRefused: true, at: time, wallClock: now + skew) { hasOpened = true } }
    return hasOpened
  }

  @Test("opens once when more than its share of enough answers is refused")
  func opens() {
    var breaker = Breaker(share: 0.5, sample: 10)
    #expect(!note(&breaker, refused: 5, taken: 5, at: 1_000))
    #expect(note(&breaker, refused: 1, taken: 0, at: 1_000))
    #expect(breaker.isOpen && breaker.percent == 54)
    #expect(!note(&breaker, refused: 1, taken: 0, at: 1_000))
  }

  @Test("ignores a small number of answers, and those of an earlier minute")
  func window() {
    var breaker = Breaker(share: 0.5, sample: 10)
    #expect(!note(&breaker, refused: 9, taken: 0, at: 1_000))
    #expect(!note(&breaker, refused: 9, taken: 0, at: 62_000))
    #expect(!breaker.isOpen)
  }

  @Test("stays open while little is sent, and closes after a minute of enough good answers")
  func closes() {
    var breaker = Breaker(share: 0.5, sample: 10)
    #expect(note(&breaker, refused: 10, taken: 0, at: 1_000))
    _ = note(&breaker, refused: 0, taken: 1, at: 62_000)
    #expect(breaker.isOpen, "the minute that opened it is still the one judged")
    _ = note(&breaker, refused: 0, taken: 4, at: 200_000)
    #expect(breaker.isOpen)
    _ = note(&breaker, refused: 0, taken: 5, at: 300_000)
    #expect(breaker.isOpen)
    _ = note(&breaker, refused: 0, taken: 1, at: 400_000)
    #expect(!breaker.isOpen)
  }

  @Test("counts minutes by the monotonic clock")
  func clockSetBack() {
    var breaker = Breaker(share: 0.5, sample: 10)
    #expect(note(&breaker, refused: 10, taken: 0, at: 7_201_000))
    // The wall clock is set back two hours.
    for time in [7_300_000, 7_400_000] as [Int64] { _ = note(&breaker, refused: 0, taken: 10, at: time, skew: -7_200_000) }
    #expect(!breaker.isOpen)
  }

  @Test("closes when an operator resumes a campaign after it opened")
  func resumed() {
    var breaker = Breaker(share: 0.5, sample: 10)
    #expect(note(&breaker, refused: 10, taken: 0, at: 1_000))
    for (time, closes) in [(999, false), (1_000, true), (2_000, false)] as [(Int64, Bool)] {
      let isClosed = breaker.resumed(at: time)
      #expect(isClosed == closes, "\(time)")
    }
    #expect(!breaker.isOpen)
    #expect(note(&breaker, refused: 10, taken: 0, at: 3_000))
  }
}
