import Testing
import Wire

@Suite("A ring")
struct RingTests {
  @Test("keeps its order while it grows and wraps, from either end")
  func order() {
    var ring = Ring<Int>()
    for number in 0..<5 { ring.append(number) }
    var seen: [Int] = []
    if let first = ring.popFirst() { seen.append(first) }
    ring.prepend(-1)
    for number in 5..<40 { ring.append(number) }
    while let number = ring.popFirst() { seen.append(number) }
    #expect(seen == [0, -1] + Array(1..<40))
    for number in 0..<20 { ring.append(number) }
    ring.removeAll { $0 % 3 == 0 }
    seen = []
    while let number = ring.popFirst() { seen.append(number) }
    #expect(seen == (0..<20).filter { $0 % 3 != 0 })
    #expect(ring.isEmpty)
  }
}
