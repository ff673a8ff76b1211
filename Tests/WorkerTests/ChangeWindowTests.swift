import AMQP
import DeviceRegistry
import TestSupport
import Testing

@testable import Broker

@Suite("What a shard takes of the registry's changes")
struct ChangeWindowTests {
  @Test("is bounded by bytes: the first that doesn't fit is left to the broker with all behind it, and comes again")
  func full() {
    var window = ChangeWindow()
    for _ in 0..<4 { #expect(window.take(4 << 20) == true) }
    #expect(!window.take(1) && !window.done(4 << 20) && !window.take(1))
    #expect(!window.done(4 << 20) && !window.done(4 << 20) && window.done(4 << 20))
  }

  @Test("however large one is, it is taken when nothing else is in hand; as long as all fit, the connection stays")
  func one() {
    var window = ChangeWindow()
    #expect(window.take(ChangeWindow.budget * 2) && !window.done(ChangeWindow.budget * 2))
    for _ in 0..<1_000 { #expect(window.take(1 << 20) && !window.done(1 << 20)) }
  }

  @Test(
    "whatever their sizes, each is done in its place, and far fewer returns than the queue's limit lie before it",
    arguments: 0..<20)
  func order(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    let largest = [RegistryChange.mostBytes, 2 << 20, 300 << 10][Int(seed % 3)]
    var queue = (0..<500).map { (number: $0, size: Int.random(in: largest / 8...largest, using: &generator), returns: 0) }
    if seed == 0 { for index in queue.indices { queue[index].size = RegistryChange.mostBytes } }
    var done: [Int] = []
    var most = 0
    while !queue.isEmpty {
      // One connection, with a registry that takes nothing before the prefetch is there.
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
