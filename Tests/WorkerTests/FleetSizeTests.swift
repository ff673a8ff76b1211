import Testing
import Wire

@testable import Worker

@Suite("The fleet's size")
struct FleetSizeTests {
  private let start = MonotonicTime(nanoseconds: 0)

  @Test("rises at once and falls after half a minute with fewer workers")
  func counts() {
    var size = FleetSize()
    let seen = [(0.0, 1), (3, 4), (6, 1), (9, 2), (30, 1), (33, 1), (36, 1), (39, 1), (42, 5)].map { seconds, consumers in
      size.counted(consumers, at: start.advanced(bySeconds: seconds))
    }
    #expect(seen == [1, 4, 4, 4, 4, 2, 2, 1, 5])
  }
}
