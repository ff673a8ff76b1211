import Testing
import Wire

@testable import Gateway

@Suite("Callers' rates")
struct CallerRatesTests {
  private let start = MonotonicTime(nanoseconds: 0)

  @Test("allow a hundred requests at once, then ten a second, for each caller")
  func rates() {
    var rates = CallerRates(rate: 10, burst: 100)
    func taken(_ caller: String, at seconds: Double) -> Int {
      (0..<200).count { _ in rates.admits([Array(caller.utf8)], at: start.advanced(bySeconds: seconds)) }
    }
    #expect(taken("one", at: 0) == 100)
    #expect(taken("two", at: 0) == 100)
    #expect(taken("one", at: 0.55) == 5)
    #expect(taken("one", at: 60) == 100)
  }

  @Test("allow ten failures within a minute, and any number of requests that are given back")
  func failures() {
    var rates = CallerRates(rate: 1 / 60, burst: 10)
    func taken(at seconds: Double) -> Int {
      (0..<20).count { _ in rates.admits([[1]], at: start.advanced(bySeconds: seconds)) }
    }
    for _ in 0..<50 {
      let isTaken = rates.admits([[1]], at: start)
      #expect(isTaken)
      rates.giveBack([[1]])
    }
    #expect(taken(at: 0) == 10 && taken(at: 59) == 0 && taken(at: 61) == 1)
  }

  @Test("accept all if there are too many callers to distinguish")
  func many() {
    var rates = CallerRates(rate: 10, burst: 100)
    for number in 0..<40_000 {
      let isTaken = rates.admits([Array("\(number)".utf8)], at: start)
      #expect(isTaken)
    }
  }
}
