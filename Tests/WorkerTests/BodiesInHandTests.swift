import TestSupport
import Testing

@testable import Delivery

@Suite("The bodies that a shard holds")
struct BodiesInHandTests {
  private static let size = 400 << 10

  /// The number of `count` bodies that found room.
  private func keep(_ count: Int, for app: Int, _ bodies: inout BodiesInHand, size: Int = size, isShared: Bool = true) -> Int {
    (0..<count).count { _ in
      bodies.add(size)
      return bodies.keep(size, for: app, isShared: isShared)
    }
  }

  @Test("a single application may use the whole budget")
  func alone() {
    var bodies = BodiesInHand()
    #expect(keep(200, for: 0, &bodies, isShared: false) == BodiesInHand.budget / Self.size)
  }

  @Test("always leave room for another application, and no application has more than half")
  func shares() {
    var bodies = BodiesInHand()
    for app in 0..<49 { #expect(keep(100, for: app, &bodies) <= BodiesInHand.budget / Self.size / 2 + 1) }
    #expect(keep(100, for: 49, &bodies, size: 1000) == 100)
    bodies = BodiesInHand()
    #expect([0, 1, 2].map { keep(1000, for: $0, &bodies) } == [40, 20, 10])
  }

  @Test("count until they have left, and reading pauses until enough have left")
  func reading() {
    var bodies = BodiesInHand()
    #expect(keep(40, for: 0, &bodies) == 40)
    var leaving = 0
    while !bodies.isReadingPaused {
      bodies.add(Self.size)
      leaving += 1
      #expect(bodies.adjustReading() == (bodies.total > BodiesInHand.readingMark))
    }
    while bodies.isReadingPaused {
      bodies.remove(Self.size, keptFor: nil)
      leaving -= 1
      #expect(bodies.adjustReading() == (bodies.total <= BodiesInHand.readingMark / 4 * 3))
    }
    for _ in 0..<leaving { bodies.remove(Self.size, keptFor: nil) }
    for _ in 0..<40 { bodies.remove(Self.size, keptFor: 0) }
    #expect(bodies.total == 0 && keep(40, for: 1, &bodies) == 40)
  }

  @Test("the prefetch fits the budget at the recent body size")
  func fitting() {
    var bodies = BodiesInHand()
    #expect(bodies.fitting == 256)
    for _ in 0..<25 { bodies.add(300) }
    #expect(bodies.fitting > 1_000)
    for _ in 0..<200 { bodies.add(512 << 10) }
    #expect((64...66).contains(bodies.fitting))
  }

  @Test("sums stay right under random operations, and an application without bodies finds room", arguments: 0..<20)
  func sums(_ seed: UInt64) {
    var generator = SeededGenerator(seed: seed)
    var bodies = BodiesInHand()
    var held: [(bytes: Int, app: Int?)] = []
    for _ in 0..<3_000 {
      if Bool.random(using: &generator), let index = held.indices.randomElement(using: &generator) {
        let one = held.remove(at: index)
        bodies.remove(one.bytes, keptFor: one.app)
      } else {
        let bytes = Int.random(in: 0...(1 << 20), using: &generator)
        let app = Int.random(in: 0..<4, using: &generator)
        bodies.add(bytes)
        held.append((bytes, bodies.keep(bytes, for: app, isShared: true) ? app : nil))
      }
      #expect(bodies.total == held.reduce(0) { $0 + $1.bytes })
      let kept = held.reduce(0) { $0 + ($1.app == nil ? 0 : $1.bytes) }
      var probe = bodies
      probe.add(1)
      #expect(kept < BodiesInHand.budget && probe.keep(1, for: 4, isShared: true))
    }
  }
}
