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
      size.counted(consumers, orElse: 9, at: start.advanced(bySeconds: seconds))
    }
    #expect(seen == [1, 4, 4, 4, 4, 2, 2, 1, 5])
    #expect(size.counted(nil, orElse: 9, at: start.advanced(bySeconds: 50)) == nil)
  }

  @Test("is the worker's own if the broker doesn't tell it for some seconds")
  func unknown() {
    var size = FleetSize()
    let seen = [0.0, 1, 5, 6].map { size.counted(nil, orElse: 2, at: start.advanced(bySeconds: $0)) }
    #expect(seen == [nil, nil, nil, 2])
  }
}
