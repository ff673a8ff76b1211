import Testing
import Wire

@testable import Gateway

@Suite("Devices' rates")
struct DeviceRatesTests {
  private let app = Array("a".utf8)
  private let start = MonotonicTime(nanoseconds: 0)

  @Test("allow a hundred requests at once, then ten a second, for each installation")
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

  @Test("accept all if there are too many installations to distinguish")
  func many() {
    var rates = DeviceRates()
    for number in 0..<40_000 {
      let isTaken = rates.admits(app, Array("\(number)".utf8), at: start)
      #expect(isTaken)
    }
  }
}
