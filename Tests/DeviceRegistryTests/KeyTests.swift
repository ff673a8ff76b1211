import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Keys and secrets of the gateway")
struct KeyTests {
  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test("a key is stored with its purpose, until it is revoked, once", arguments: Backend.all)
  func keys(_ backend: Backend) throws {
    let registry = try backend.open()
    let key = GatewayKey(
      id: bytes("k"), hash: [0, 1, 255], apps: [bytes("a"), bytes("b")], rights: [.send, .ack], rate: 5, createdAt: 7)
    var own = GatewayKey(id: bytes("o"), hash: [2], apps: [bytes("a")], rights: [.send], createdAt: 9)
    (own.sender, own.environment) = (bytes("812345"), .sandbox)
    own.name = bytes("billing")
    #expect(own.title == bytes("billing (o)"))
    own.account = GatewayAccount(publicKey: bytes("PEM"), tokenURI: bytes("https://x/token"))
    try registry.store.createKey(own)
    #expect(try registry.store.key(bytes("o")) == own)
    try registry.store.createKey(key)
    try registry.store.createKey(GatewayKey(id: bytes("l"), hash: [], apps: [bytes("a")], rights: [.register], createdAt: 8))
    #expect(try registry.store.key(bytes("k")) == key && key.title == bytes("k"))
    #expect(try registry.store.key(bytes("m")) == nil)
    try registry.store.keyUsed(bytes("k"), now: 20)
    try registry.store.keyUsed(bytes("k"), now: 10)
    #expect(try registry.store.revokeKey(bytes("k"), now: 30))
    #expect(try !registry.store.revokeKey(bytes("k"), now: 40))
    #expect(try !registry.store.revokeKey(bytes("m"), now: 40))
    let keys = try registry.another().keys()
    #expect(keys.map(\.id) == [bytes("k"), bytes("l"), bytes("o")])
    #expect(keys[0].usedAt == 20 && keys[0].revokedAt == 30 && keys[1].usedAt == nil && keys[1].rate == nil)
  }

  @Test(
    "an installation has one secret, which is replaced only on purpose, and removed with the device",
    arguments: Backend.all)
  func secrets(_ backend: Backend) throws {
    let registry = try backend.open()
    let (app, installation) = (TestRegistry.app, bytes("i"))
    #expect(try registry.store.secret(ofInstallation: installation, app: app) == nil)
    #expect(try registry.store.setSecret([1], ofInstallation: installation, app: app, replacing: false, now: 1))
    #expect(try !registry.store.setSecret([2], ofInstallation: installation, app: app, replacing: false, now: 2))
    #expect(try registry.store.secret(ofInstallation: installation, app: app) == [1])
    #expect(try registry.store.setSecret([3], ofInstallation: installation, app: app, replacing: true, now: 3))
    #expect(try registry.store.secret(ofInstallation: installation, app: app) == [3])
    #expect(try registry.store.secret(ofInstallation: installation, app: bytes("b")) == nil)
    _ = try registry.register("t", #""installation":"i""#)
    #expect(try registry.store.purge(.secrets, before: 10, limit: 10) == 0)
    #expect(try registry.store.setSecret([4], ofInstallation: bytes("j"), app: app, replacing: false, now: 3))
    #expect(try registry.store.purge(.secrets, before: 3, limit: 10) == 0)
    #expect(try registry.store.purge(.secrets, before: 10, limit: 10) == 1)
    #expect(try registry.store.secret(ofInstallation: installation, app: app) == [3])
    #expect(try !registry.store.removeSecret(ofInstallation: installation, app: bytes("b")))
    #expect(try registry.store.removeSecret(ofInstallation: installation, app: app))
    #expect(try registry.store.secret(ofInstallation: installation, app: app) == nil)
  }
}
