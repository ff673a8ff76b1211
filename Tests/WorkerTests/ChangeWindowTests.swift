import AMQP
import DeviceRegistry
import TestSupport
import Testing

@testable import Broker

@Suite("A shard's intake of registry changes")
struct ChangeWindowTests {
  @Test("is limited in bytes: a delivery that doesn't fit returns to the broker with all later ones, and comes again")
  func full() {
    var window = ChangeWindow()
    for _ in 0..<4 { #expect(window.take(4 << 20) == true) }
    #expect(!window.take(1) && !window.done(4 << 20) && !window.take(1))
    #expect(!window.done(4 << 20) && !window.done(4 << 20) && window.done(4 << 20))
  }

  @Test("accepts a delivery of any size if nothing else is in hand; the connection stays while all fit")
  func one() {
    var window = ChangeWindow()
    #expect(window.take(ChangeWindow.budget * 2) && !window.done(ChangeWindow.budget * 2))
    for _ in 0..<1_000 { #expect(window.take(1 << 20) && !window.done(1 << 20)) }
  }

  @Test(
    "applies changes of all sizes in order, with far fewer returns than the queue's limit",
    arguments: 0..<20)
  func order(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let largest = [RegistryChange.mostBytes, 2 << 20, 300 << 10][Int(seed % 3)]
    var queue = (0..<500).map { (number: $0, size: Int.random(in: largest / 8...largest, using: &generator), returns: 0) }
    if seed == 0 { for index in queue.indices { queue[index].size = RegistryChange.mostBytes } }
    var done: [Int] = []
    var most = 0
    while !queue.isEmpty {
      // One connection. The registry accepts nothing before the prefetch is full.
      var window = ChangeWindow()
      let sent = queue.prefix(64)
      let taken = sent.prefix { window.take($0.size) }
      #expect(taken.reduce(0) { $0 + $1.size } <= ChangeWindow.budget)
      for (index, change) in taken.enumerated() {
        #expect(window.done(change.size) == (taken.count < sent.count && index == taken.count - 1))
        most = max(most, change.returns)
      }
      done += taken.map(\.number)
      queue.removeFirst(taken.count)
      for index in 0..<sent.count - taken.count { queue[index].returns += 1 }
    }
    #expect(done == Array(0..<500) && most < Int(Topology.deliveryLimit) / 3, "\(most) returns")
  }
}
