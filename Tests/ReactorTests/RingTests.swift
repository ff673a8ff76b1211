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

  @Test("is read without being emptied, and takes in what belongs before others, wrapped or not")
  func places() {
    var ring = Ring<Int>()
    for number in 0..<14 { ring.append(number) }
    for _ in 0..<10 { _ = ring.popFirst() }
    for number in [20, 30, 40] { ring.append(number) }
    ring.insert(25) { $0 > 25 }
    ring.insert(50) { $0 > 50 }
    ring.insert(5) { $0 > 5 }
    #expect(Array(ring) == [5, 10, 11, 12, 13, 20, 25, 30, 40, 50] && ring.count == 10)
    #expect(ring.first == 5 && ring.last == 50)
    var none = Ring<Int>()
    none.insert(1) { _ in true }
    #expect(Array(none) == [1] && Ring<Int>().last == nil)
  }
}
