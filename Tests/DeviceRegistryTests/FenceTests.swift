import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Changes of a queue that several workers consume in turn")
struct FenceTests {
  private func registering(_ token: String) -> RegistryChange {
    .register(Registration(app: TestRegistry.app, platform: .fcm, token: Array(token.utf8)))
  }

  @Test("are applied only with the number that was claimed last; changes without a queue always are", arguments: Backend.all)
  func fenced(_ backend: Backend) throws {
    let registry = try backend.open()
    let other = try registry.another()
    let earlier = try registry.store.claimChanges()
    #expect(try registry.store.apply([registering("a")], fence: earlier, now: 1).count == 1)
    let later = try other.claimChanges()
    #expect(later == earlier + 1)
    for changes in [[registering("b")], [registering("b"), registering("c")]] {
      #expect(throws: RegistryError.fenced) { try registry.store.apply(changes, fence: earlier, now: 2) }
    }
    #expect(throws: RegistryError.fenced) { try registry.store.apply([registering("b")], fence: later + 1, now: 2) }
    #expect(try registry.record("b") == nil && registry.record("c") == nil)
    #expect(try other.apply([registering("b")], fence: later, now: 3).count == 1)
    #expect(try registry.store.apply([registering("c")], now: 4).count == 1)
    #expect(try registry.store.claimChanges() == later + 1)
  }

  @Test(
    "A value that PostgreSQL refuses affects only its own change, and the others are fenced too",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func refusedValue() throws {
    let registry = try Backend.postgres.open()
    let earlier = try registry.store.claimChanges()
    let refused = RegistryChange.register(Registration(app: [0], platform: .fcm, token: [1]))
    let answers = try registry.store.apply([registering("a"), refused], fence: earlier, now: 1)
    #expect(answers.map(\.isRefusal) == [false, true])
    _ = try registry.store.claimChanges()
    #expect(throws: RegistryError.fenced) { try registry.store.apply([registering("b"), refused], fence: earlier, now: 2) }
  }

  @Test(
    "Changes that wait for the storing of a claim are fenced by it, at any isolation level",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func claimedMeanwhile() throws {
    let registry = try Backend.postgres.open()
    let claiming = try PostgresConnection(location: registry.location, options: StoreOptions())
    let isolation = "SET default_transaction_isolation = ''repeatable read''"
    try claiming.execute("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I \(isolation)', current_database()); END $$")
    let location = registry.location
    let fence = try registry.store.claimChanges()
    let change = registering("a")
    let results = Collected<String>()
    try claiming.transaction(.devices) { () throws(RegistryError) -> Void in
      Thread.detachNewThread {
        do {
          let store = try Backend.postgres.connect(location)
          results.add("\(try store.apply([change], fence: fence, now: 1))")
        } catch { results.add("\(error)") }
      }
      let waiting = Statement("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
      while results.all.isEmpty, try claiming.firstInt(waiting, []) == 0 {}
      try claiming.run(SQL.claimChanges, [])
    }
    while results.all.isEmpty { sched_yield() }
    #expect(results.all == ["\(RegistryError.fenced)"])
  }
}
