import PushCore
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Waiting requests on both databases")
struct CollapseTests {
  private static func place(_ number: UInt64) -> CollapsePlace { CollapsePlace(high: number, low: .max - number) }
  private static func order(_ published: Int64, _ arrived: Int64 = 0, _ message: Int64 = 0) -> CollapseOrder {
    CollapseOrder(published: published, arrived: arrived, message: message)
  }

  @Test("the newest stays, in any order of writing: by the producer's time, then by arrival", arguments: Backend.all)
  func newest(_ backend: Backend) throws {
    let registry = try backend.open()
    func note(_ orders: CollapseOrder...) throws {
      for order in orders { try registry.store.noteWaiting([CollapseNote(place: Self.place(1), order: order, until: 10)]) }
    }
    func newest() throws -> CollapseOrder? { try registry.another().newestWaiting(in: [Self.place(1)])[0] }
    #expect(try newest() == nil)
    try note(Self.order(5, 7), Self.order(4, 9), Self.order(-1, .max))
    #expect(try newest() == Self.order(5, 7))
    try note(Self.order(5, 8, -2), Self.order(5, 8, -3))
    #expect(try newest() == Self.order(5, 8, -2))
    try note(Self.order(.max, .min, .max))
    #expect(try newest() == Self.order(.max, .min, .max))
  }

  @Test("many are read together, each with its own answer, and removed when they no longer wait", arguments: Backend.all)
  func purged(_ backend: Backend) throws {
    let registry = try backend.open()
    let notes = (0..<2_000).map { number in
      CollapseNote(place: Self.place(UInt64(number)), order: Self.order(Int64(number)), until: Int64(number))
    }
    try registry.store.noteWaiting(notes)
    // An older request with a longer lifetime keeps the newest.
    try registry.store.noteWaiting([CollapseNote(place: Self.place(3), order: Self.order(1), until: 10_000)])
    try registry.store.noteWaiting([])
    let places = [1_999, 0, 7_000, 3].map(Self.place)
    #expect(
      try registry.store.newestWaiting(in: places) == [Self.order(1_999), Self.order(0), nil, Self.order(3)])
    #expect(try registry.store.purge(.waiting, before: 1_000, limit: 600) == 600)
    #expect(try registry.store.purge(.waiting, before: 1_000, limit: 600) == 399)
    #expect(
      try registry.store.newestWaiting(in: places) == [Self.order(1_999), nil, nil, Self.order(3)])
  }
}
