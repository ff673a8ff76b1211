import Testing
import Wire

@testable import Gateway

@Suite("Devices' rates")
struct DeviceRatesTests {
  private let app = Array("a".utf8)
  private let start = MonotonicTime(nanoseconds: 0)

  @Test("a hundred requests at once, then ten a second, each installation for itself")
  func rates() {
    var rates = DeviceRates()
    func taken(_ installation: String, at seconds: Double) -> Int {
      (0..<200).count { _ in rates.admits(app, Array(installation.utf8), at: start.advanced(bySeconds: seconds)) }
    }
    #expect(taken("one", at: 0) == 100)
    #expect(taken("two", at: 0) == 100)
    #expect(taken("one", at: 0.55) == 5)
    #expect(taken("one", at: 60) == 100)
  }

  @Test("so many installations that none can be told apart any more are taken")
  func many() {
    var rates = DeviceRates()
    for number in 0..<40_000 {
      let isTaken = rates.admits(app, Array("\(number)".utf8), at: start)
      #expect(isTaken)
    }
  }
}
