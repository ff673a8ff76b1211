import TestSupport
import Testing
import Wire

@Suite("The order of idle connections")
struct IdleOrderTests {
  @Test("the one that was silent for longest goes first, and none that is busy")
  func order() {
    var order = IdleOrder<String>()
    let (a, b, c) = (order.open("a"), order.open("b"), order.open("c"))
    order.idle(a)
    order.busy(b)
    #expect(order.takeOldest() == "c" && order.takeOldest() == "a" && order.takeOldest() == nil)
    order.idle(b)
    order.idle(c)
    order.close(b)
    #expect(order.count == 2 && order.takeOldest() == "c" && order.takeOldest() == nil)
    #expect(order.open("d") == b && order.takeOldest() == "d")
  }

  @Test("whatever happens in whatever order, it is as a list would have it")
  func model() {
    var random = SeededGenerator(seed: 7)
    var order = IdleOrder<Int>()
    var open: [Int: Int] = [:]
    var idle: [Int] = []
    for step in 0..<20_000 {
      let chosen = open.keys.sorted().randomElement(using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0 where open.count < 50:
        let id = order.open(step)
        #expect(open[id] == nil)
        open[id] = step
        idle.append(id)
      case 1:
        guard let chosen else { continue }
        order.close(chosen)
        open[chosen] = nil
        idle.removeAll { $0 == chosen }
      case 2:
        guard let chosen else { continue }
        order.busy(chosen)
        idle.removeAll { $0 == chosen }
      case 3:
        guard let chosen else { continue }
        order.idle(chosen)
        idle.removeAll { $0 == chosen }
        idle.append(chosen)
      default:
        let expected = idle.isEmpty ? nil : open[idle.removeFirst()]
        #expect(order.takeOldest() == expected)
      }
      #expect(order.count == open.count)
    }
  }
}
