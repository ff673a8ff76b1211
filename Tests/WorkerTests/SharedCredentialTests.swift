import Providers
import Reactor
import Testing

@testable import Delivery
@testable import Worker

@Suite("One credential of several applications")
final class SharedCredentialTests {
  private let site: ReloadTests
  private let loop: EventLoop
  private var pools: PoolSet?

  init() throws {
    site = try ReloadTests()
    loop = try EventLoop()
  }

  deinit { pools?.shutdown() }

  private func setUp(_ apps: String) throws -> PoolSet {
    let setup = try site.credentialStore.setup(try site.configuration(apps))
    if let pools { _ = pools.reload(setup) } else { pools = PoolSet(setup, host: loop) }
    return try #require(pools)
  }

  /// The pool of an application's pushes to devices.
  private func pool(_ id: String) -> ProviderPool? {
    guard let pools, let index = pools.apps.index(of: Array(id.utf8)) else { return nil }
    return pools.apps[index].routes.apns.map { pools.accounts[$0.pool].pool }
  }

  @Test("is one pool with an account for each, whichever file has the key")
  func shared() throws {
    try site.copy(site.files.p8, to: "kept-elsewhere.p8")
    let pools = try setUp(
      "{ a: { \(site.apns()) }, b: { \(site.apns("kept-elsewhere.p8")), senders: { '1': { \(try site.fcm()) } } }, c: { \(site.apns()) } }"
    )
    #expect(pool("a") === pool("b") && pool("b") === pool("c"))
    // A sender with FCM settings only uses its application's account for iPhones.
    #expect(
      pools.accounts.map(\.name) == ["a APNs production", "b APNs production", "b.senders.1 FCM", "c APNs production"])
    #expect(pool("a")?.openAccounts == 3)
    #expect(pool("a")?.name == "a APNs production")
  }

  @Test(
    "is not shared if key, environment, endpoint, authorities or timeout differ",
    arguments: [
      ("keyID", "OTHERKEYID"), ("environment", "sandbox"), ("endpoint", "https://localhost:8443"), ("ca", "other.pem"),
      ("timeout", "5"),
    ])
  func apart(setting: String, value: String) throws {
    try site.copy(site.files.otherAuthority, to: "other.pem")
    var fields = ["key": "key.p8", "keyID": "ABC123DEFk", "teamID": "DEF123GHIJ", "ca": site.files.authority]
    fields[setting] = value
    let other = fields.map { "\($0): \($0 == "timeout" ? $1 : "'\($1)'")" }.joined(separator: ", ")
    _ = try setUp("{ a: { \(site.apns()) }, b: { apns: { \(other) } } }")
    #expect(pool("a") != nil && pool("b") != nil && pool("a") !== pool("b"))
  }

  @Test("stays with the others when one application changes its key, comes back or is removed")
  func oneLeaves() throws {
    let all = "{ a: { \(site.apns()) }, b: { \(site.apns()) }, c: { \(site.apns()) } }"
    let pools = try setUp(all)
    let shared = try #require(pool("a"))
    let accounts = pools.accounts
    _ = try setUp("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) }, c: { \(site.apns()) } }")
    #expect(pools.changes == ["b APNs production"] && pools.accounts.count == 3)
    // Requests in the lanes use the new credential.
    let moved = pools.accounts.indices.filter { pools.accounts[$0].pool !== accounts[$0].pool }
    #expect(moved == [1] && pools.accounts[1].pool === pool("b"))
    #expect(pool("a") === shared && pool("c") === shared && pool("b") !== shared)
    let own = try #require(pool("b"))
    _ = try setUp(all)
    #expect(pool("b") === shared && shared.openAccounts == 3 && own.state == .closed)
    // The application that names it in the log is removed.
    _ = try setUp("{ b: { \(site.apns()) }, c: { \(site.apns()) } }")
    #expect(pools.letGo(inHand: ([], [])) == [0])
    #expect(shared.openAccounts == 2 && shared.state == .idle && shared.name == "b APNs production")
    _ = try setUp("{ d: { \(site.apns("second.p8")) } }")
    #expect(Set(pools.letGo(inHand: ([], []))) == [1, 2] && shared.state == .closed)
  }

  @Test("is replaced for all together when it changes, in portions too")
  func rotated() throws {
    let pools = try setUp("{ a: { \(site.apns()) }, b: { \(site.apns()) }, c: { \(site.apns()) } }")
    let before = try #require(pool("a"))
    try site.copy(site.files.otherP8, to: "key.p8")
    let setup = try site.credentialStore.setup(
      try site.configuration("{ a: { \(site.apns()) }, b: { \(site.apns()) }, c: { \(site.apns()) } }"))
    pools.begin(setup)
    while !pools.advance(1) {}
    #expect(pools.changes == ["a APNs production", "b APNs production", "c APNs production"] && pools.accounts.count == 3)
    let after = try #require(pool("a"))
    #expect(after !== before && before.state == .closed)
    #expect(pool("b") === after && pool("c") === after)
  }

  @Test("of a single application is replaced in its pool")
  func alone() throws {
    let pools = try setUp("{ a: { \(site.apns()) } }")
    let own = try #require(pool("a"))
    let number = pools.accounts[0].number
    _ = try setUp("{ a: { \(site.apns("second.p8", ", timeout: 5")) } }")
    #expect(pool("a") === own && pools.accounts[0].number == number)
    // A new application with the new key shares it.
    _ = try setUp("{ a: { \(site.apns("second.p8", ", timeout: 5")) }, b: { \(site.apns("second.p8", ", timeout: 5")) } }")
    #expect(pool("b") === own)
  }

  @Test("is shared by applications with the same certificate")
  func certificates() throws {
    func app(_ topic: String) -> String {
      "apns: { certificate: '\(site.files.client)', key: '\(site.files.clientKey)', ca: '\(site.files.authority)', topic: '\(topic)' }"
    }
    let pools = try setUp("{ a: { \(app("x")) }, b: { \(app("y")) } }")
    #expect(pool("a") === pool("b") && pools.expiries.map(\.name) == ["a APNs production", "b APNs production"])
  }
}
