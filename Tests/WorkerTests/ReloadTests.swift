import Broker
import Foundation
import Logging
import Providers
import Reactor
import TestSupport
import Testing

@testable import Settings
@testable import Delivery
@testable import Worker

@Suite("Reloading")
final class ReloadTests {
  let files: TestCertificates
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("reload-\(UUID().uuidString)")
  var shelf = CredentialShelf()

  init() throws {
    files = try TestCertificates.make()
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try copy(files.p8, to: "key.p8")
    try copy(files.p8, to: "second.p8")
  }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func file(_ name: String) -> String { folder.appendingPathComponent(name).path }

  func copy(_ path: String, to name: String) throws {
    try Data(contentsOf: URL(fileURLWithPath: path)).write(to: folder.appendingPathComponent(name))
  }

  func configuration(_ apps: String, _ settings: String = "broker: 'amqp://h/'") throws -> Configuration {
    try "{ \(settings), apps: \(apps) }".write(toFile: file("c.json5"), atomically: false, encoding: .utf8)
    return try Configuration.load(path: file("c.json5"), environment: [:])
  }

  /// - Parameter key: its name's first letter is the last of the key's id.
  func apns(_ key: String = "key.p8", _ more: String = "") -> String {
    "apns: { key: '\(key)', keyID: 'ABC123DEF\(key.prefix(1))', teamID: 'DEF123GHIJ', ca: '\(files.authority)'\(more) }"
  }

  func fcm(_ more: String = "") throws -> String {
    let fields = [
      "type": "service_account", "project_id": "example-project", "client_email": "sender@example.com",
      "private_key": try String(contentsOfFile: files.rsaKey, encoding: .utf8),
    ]
    try JSONSerialization.data(withJSONObject: fields, options: .sortedKeys).write(
      to: folder.appendingPathComponent("account.json"))
    return "fcm: { serviceAccount: 'account.json', ca: '\(files.authority)'\(more) }"
  }

  @Test("three hundred applications share one list of authorities for each `ca`")
  func sharedAuthorities() throws {
    try copy(files.otherAuthority, to: "other.pem")
    let text = (0..<300).map { number in
      "'app\(number)': { apns: { key: 'key.p8', keyID: 'ABC123DEFG', teamID: 'TEAM\(String(format: "%06d", number))'"
        + (number % 3 == 0 ? "" : number % 3 == 1 ? ", ca: 'other.pem'" : ", ca: '\(files.otherAuthority)'") + " } }"
    }
    let setup = try shelf.setup(try configuration("{ \(text.joined(separator: ",")) }"))
    let contexts = setup.credentials.values.compactMap { credential in
      if case .apns(let apns) = credential.value { apns.target.tls.map { ObjectIdentifier($0) } } else { nil }
    }
    #expect(contexts.count == 300 && Set(contexts).count == 2)
  }

  @Test("loads only what has changed")
  func onlyChanges() throws {
    let settings = try configuration("{ a: { \(apns()), \(try fcm()) }, b: { \(apns("second.p8")) } }")
    let before = try shelf.setup(settings)
    let pools = PoolSet(before, host: LoopHost(try EventLoop()))
    #expect(pools.reload(try shelf.setup(settings)) == [])
    try copy(files.otherP8, to: "key.p8")
    let after = try shelf.setup(settings)
    #expect(before.credentials.filter { after.credentials[$0.key] !== $0.value }.map(\.key.name) == ["a APNs production"])
    #expect(pools.reload(after) == ["a APNs production"])
    #expect(pools.reload(try shelf.setup(settings)) == [])
  }

  @Test("a file that can't be used costs only its own application, which keeps its credential")
  func oneBadFile() throws {
    let settings = try configuration("{ a: { \(apns()), \(try fcm()) }, b: { \(apns("second.p8")) } }")
    let before = try shelf.setup(settings)
    try Data("no key".utf8).write(to: folder.appendingPathComponent("key.p8"))
    try copy(files.otherP8, to: "second.p8")
    let errors = shelf.load(settings)
    #expect(errors.map(\.key) == ["apps.a.apns.key"])
    for (place, credential) in shelf.credentials {
      #expect((before.credentials[place] !== credential) == (place.app == "b"), "\(place.name)")
    }
    try copy(files.p384Key, to: "second.p8")
    #expect(shelf.load(settings).map(\.key) == ["apps.a.apns.key", "apps.b.apns.key"])
    #expect(throws: ConfigurationError.self) { try ShardSetup(settings) }
  }

  @Test("a passphrase's file that can't be used costs only its own credential, and is watched")
  func badPassphrase() throws {
    func write(_ text: [UInt8]) throws { try Data(text).write(to: folder.appendingPathComponent("pass.txt")) }
    try write(Array((files.passphrase + "\n").utf8))
    let sealed =
      "certificate: '\(files.client)', key: '\(files.clientEncryptedKey)', passphraseFile: 'pass.txt', ca: '\(files.authority)'"
    let text = "{ a: { apns: { \(sealed) } }, b: { \(apns()) } }"
    let before = try shelf.setup(try configuration(text))
    for broken: [UInt8]? in [nil, [0xFF, 0xFE], Array("another".utf8), []] {
      try FileManager.default.removeItem(atPath: file("pass.txt"))
      if let broken { try write(broken) }
      try copy(broken == nil ? files.otherP8 : files.p8, to: "key.p8")
      let next = try configuration(text)
      #expect(next.watchedFiles.contains(file("pass.txt")))
      let b = try #require(shelf.credentials.first { $0.key.app == "b" }?.value)
      let errors = shelf.load(next)
      #expect(errors.count == 1 && errors[0].key.hasPrefix("apps.a.apns."), "\(errors)")
      #expect(!errors.contains { "\($0)".contains("another") })
      for (place, credential) in shelf.credentials where place.app == "a" {
        #expect(before.credentials[place] === credential)
      }
      if broken == nil { #expect(!shelf.credentials.values.contains { $0 === b }) }
      try write(Array(files.passphrase.utf8))
    }
    #expect(shelf.load(try configuration(text)).isEmpty)
  }

  @Test("a topic that is no bundle ID is refused before anything is reloaded", arguments: ["", "a.b ", "a\\nb", "###"])
  func badTopic(topic: String) throws {
    _ = try configuration("{ a: { \(apns("key.p8", ", topic: 'a.b'")) } }")
    let error = #expect(throws: ConfigurationError.self) {
      try configuration("{ a: { \(apns("key.p8", ", topic: '\(topic)'")) } }")
    }
    #expect(error?.key == "apps.a.apns.topic")
  }

  @Test("a sender that gets a credential of its own is served by it, and those it shared one with are left alone")
  func apart() throws {
    let shared = "{ a: { \(apns()), senders: { '1001': { \(apns()) }, '1002': { \(apns()) } } } }"
    let pools = PoolSet(try shelf.setup(try configuration(shared)), host: LoopHost(try EventLoop()))
    let app = pools.apps[0]
    let sender = try #require(app.senders[Array("1001".utf8)])
    #expect(pools.lanes.count == 1 && sender.apns?.pool == 0)
    let own = "{ a: { \(apns()), senders: { '1001': { \(apns("second.p8")) }, '1002': { \(apns()) } } } }"
    #expect(pools.reload(try shelf.setup(try configuration(own))) == ["a.senders.1001 APNs production"])
    #expect(pools.lanes.count == 2 && sender.apns?.pool == 1 && app.routes.apns?.pool == 0)
    // What was waiting for the pool that it shared is still translated.
    #expect(sender.apnsSettings(of: 0) != nil)
    // The application goes over to another key: the sender stays where it is.
    try copy(files.otherP8, to: "key.p8")
    #expect(
      pools.reload(try shelf.setup(try configuration(own))) == ["a APNs production", "a.senders.1002 APNs production"])
    #expect(pools.lanes.count == 2 && app.routes.apns?.pool == 0)
    // And back to one for all.
    #expect(pools.reload(try shelf.setup(try configuration(shared))) == ["a.senders.1001 APNs production"])
    #expect(pools.lanes.count == 2 && sender.apns?.pool == 0)
  }

  @Test("a shared pool whose users go two ways stays as it is for what waits there, and each gets its own")
  func twoWays() throws {
    func apps(_ a: String, _ b: String) -> String {
      "{ a: { \(apns(a, ", topic: 'x'")) }, b: { \(apns(b, ", topic: 'x'")) } }"
    }
    try copy(files.otherP8, to: "third.p8")
    let pools = PoolSet(
      try shelf.setup(try configuration(apps("key.p8", "key.p8"))), host: LoopHost(try EventLoop()))
    #expect(pools.lanes.count == 1)
    #expect(
      pools.reload(try shelf.setup(try configuration(apps("second.p8", "third.p8")))) == [
        "a APNs production", "b APNs production",
      ])
    #expect(pools.lanes.count == 3)
    #expect([0, 1].map { pools.apps[$0].routes.apns?.pool } == [1, 2])
    #expect([0, 1].allSatisfy { pools.apps[$0].routes.apnsSettings(of: 0) != nil })
  }

  @Test("the rights of producers are taken over, and so is where results may go")
  func rights() throws {
    let pools = PoolSet(try shelf.setup(try configuration("{ a: { \(apns()) } }")), host: LoopHost(try EventLoop()))
    let granted = try shelf.setup(
      try configuration("{ a: { producers: ['billing'], \(apns("key.p8", ", topics: ['b']")) } }"))
    #expect(pools.apps[0].rights.producers == nil && pools.reload(granted) == ["a rights"])
    #expect(pools.apps[0].rights.producers == [Array("billing".utf8)])
    #expect(pools.apps[0].rights.topics?.contains(Array("b".utf8)) == true)
    let open = try configuration("{ a: { \(apns()) } }")
    let closed = try configuration("{ a: { \(apns()) } }", "broker: 'amqp://h/', replyTo: []")
    #expect(closed.changesForRestart(from: open) == [])
  }

  @Test("topics, default priorities, quotas, timeouts and the platforms of an application are taken over")
  func settings() throws {
    let pools = PoolSet(
      try shelf.setup(try configuration("{ a: { \(apns()), \(try fcm()) } }")), host: LoopHost(try EventLoop()))
    let routes = pools.apps[0].routes
    func reload(_ app: String) throws -> [String] { pools.reload(try shelf.setup(try configuration("{ a: { \(app) } }"))) }

    #expect(try reload("\(apns("key.p8", ", topic: 'a.beta'")), \(try fcm())") == ["a rights", "a APNs production"])
    #expect(routes.apns?.settings.topic == Array("a.beta".utf8))
    #expect(
      try reload("\(apns()), \(try fcm(", messagesPerMinute: 600"))") == ["a rights", "a APNs production", "a FCM"])
    #expect(try reload("\(apns("key.p8", ", timeout: 5")), \(try fcm(", messagesPerMinute: 600"))") == ["a APNs production"])
    #expect(try reload("defaultPriority: 'high', \(apns()), \(try fcm())") == ["a APNs production", "a FCM"])
    #expect(routes.apns?.settings.defaultPriority == .high && routes.fcmSettings.defaultPriority == .high)
    #expect(try reload(apns("key.p8", ", environment: 'sandbox'")) == ["a APNs production", "a APNs sandbox", "a FCM"])
    #expect(routes.production == nil && routes.fcm == nil && routes.apns?.pool == routes.sandbox?.pool)
    #expect(pools.lanes.count == 3)
  }

  @Test("brokers, their authorities and passwords are taken over: no amqps address is ever without TLS")
  func brokers() throws {
    let apps = "{ a: { \(apns()) } }"
    #expect(try shelf.setup(try configuration(apps)).brokers.map { $0.tls == nil } == [true])
    let two = "broker: ['amqps://one/', 'amqp://two/', 'amqps://three/'], ca: '\(files.authority)'"
    let secure = try shelf.setup(try configuration(apps, two))
    #expect(secure.brokers.map { $0.tls == nil } == [false, true, false])
    // A list of authorities that can't be used leaves the addresses as they were.
    #expect(shelf.load(try configuration(apps, "broker: 'amqps://four/', ca: '\(files.serverKey)'")).map(\.key) == ["ca"])
    #expect(shelf.brokers.map(\.uri.host) == ["one", "two", "three"])
    let other = try shelf.setup(try configuration(apps, "broker: 'amqps://one/', ca: '\(files.otherAuthority)'"))
    #expect(other.brokers[0].tls !== secure.brokers[0].tls)
  }

  @Test("what a running worker can't take over is named")
  func restart() throws {
    let running = try configuration("{ a: { \(apns()) } }")
    #expect(running.changesForRestart(from: running) == [])
    let next = try configuration(
      "{ a: { \(apns("second.p8")), \(try fcm(", package: 'a.b'")) }, c: { \(apns()) } }",
      "broker: 'amqp://other/', prefetch: 5, log: 'debug', retry: { attempts: 3 }, registry: 'sqlite:r.db'")
    #expect(next.changesForRestart(from: running) == ["log", "prefetch", "registry", "retry"])
  }
}

@Suite("Applications that come and go")
final class ComingAndGoingTests {
  private let site: ReloadTests
  private let loop: EventLoop

  init() throws {
    site = try ReloadTests()
    loop = try EventLoop()
  }

  private func pools(_ apps: String) throws -> PoolSet {
    PoolSet(try site.shelf.setup(try site.configuration(apps)), host: LoopHost(loop))
  }

  private func reload(_ pools: PoolSet, _ apps: String) throws -> [String] {
    pools.reload(try site.shelf.setup(try site.configuration(apps)))
  }

  private func index(_ id: String, _ pools: PoolSet) -> Int? { pools.apps.index(of: Array(id.utf8)) }

  @Test("keep their index, and what is configured no longer is no application")
  func indices() throws {
    let one = "{ b: { \(site.apns()) } }"
    let two = "{ a: { \(site.apns("second.p8")) }, b: { \(site.apns()) } }"
    let pools = try pools(one)
    #expect(pools.apps.only == 0 && index("a", pools) == nil)
    #expect(try reload(pools, two) == ["a (added)"])
    #expect(index("a", pools) == 1 && index("b", pools) == 0 && pools.apps.only == nil && pools.apps.count == 2)
    #expect(pools.apps.index(ofPackage: Array("a".utf8)) == 1)
    #expect(try reload(pools, one) == ["a (removed)"])
    #expect(index("a", pools) == nil && pools.apps.only == 0 && pools.apps.index(ofPackage: Array("a".utf8)) == nil)
    // What is in hand of it still has its routes and its name.
    #expect(pools.apps[1].id == Array("a".utf8) && pools.apps[1].routes.apns != nil)
    #expect(try reload(pools, two).first == "a (added)")
    #expect(index("a", pools) == 1 && pools.apps.count == 2)
  }

  @Test("bring senders and packages, and take them along")
  func senders() throws {
    let plain = "{ a: { \(site.apns()) } }"
    let more = "{ a: { \(site.apns()), senders: { '1': { \(site.apns("second.p8")) } }, \(try site.fcm(", package: 'a.b'")) } }"
    let pools = try pools(plain)
    let sender = Array("1".utf8)
    #expect(pools.apps[0].senders.isEmpty && pools.lanes.count == 1)
    #expect(try reload(pools, more) == ["a FCM", "a.senders.1 APNs production", "a.senders.1 FCM"])
    let pool = try #require(pools.apps[0].senders[sender]?.apns?.pool)
    #expect(pools.apps[0].packages.contains(Array("a.b".utf8)) && pools.apps[0].pools.count == 3)
    #expect(try reload(pools, plain) == ["a FCM"])
    #expect(pools.apps[0].senders[sender] == nil && !pools.apps[0].packages.contains(Array("a.b".utf8)))
    // Requests that were here before are still translated.
    #expect(pools.apps[0].formerSenders.contains { $0.apnsSettings(of: pool) != nil })
    #expect(pools.letGo(inHand: ([], [])) == [1, 2] && pools.apps[0].formerSenders.isEmpty)
  }

  @Test("a removed sender's pool is closed alone: what waits for its other one is still translated")
  func poolByPool() throws {
    let plain = "{ a: { \(site.apns()) } }"
    let pools = try pools("{ a: { \(site.apns()), senders: { '1': { \(site.apns("second.p8")), \(try site.fcm()) } } } }")
    let sender = try #require(pools.apps[0].senders[Array("1".utf8)])
    let (apns, fcm) = (try #require(sender.apns?.pool), try #require(sender.fcm))
    _ = try reload(pools, plain)
    #expect(pools.letGo(inHand: ([0], [apns])) == [fcm])
    #expect(pools.apps[0].formerSenders.contains { $0.apnsSettings(of: apns) != nil })
    #expect(pools.apps.withFormerSenders == [0])
    // Nothing is looked for any longer, though the application is busy.
    #expect(pools.letGo(inHand: ([0], [])) == [apns])
    #expect(pools.apps.withFormerSenders.isEmpty && pools.apps[0].formerSenders.isEmpty)
  }

  @Test("a removed sender that had its application's credential leaves nothing to be waited for")
  func sharedSender() throws {
    let pools = try pools("{ a: { \(site.apns()), senders: { '1': { \(site.apns()) } } } }")
    _ = try reload(pools, "{ a: { \(site.apns()) } }")
    #expect(pools.apps.withFormerSenders.isEmpty && pools.apps[0].formerSenders.isEmpty)
    // What another sender's request sends to that one's device is still translated.
    let pipeline = Pipeline(
      apps: pools.apps, outbox: Outbox(time: loop.time, log: Log(level: .error)), time: loop.time)
    let entry = InFlight(index: 0)
    entry.identity.app = 0
    #expect(pipeline.translations.translator.apnsSettings(of: 0, entry) != nil)
  }

  @Test("a pool that nobody uses is closed when nothing in hand goes by it, and its number is another's")
  func closed() throws {
    let one = "{ a: { \(site.apns()) } }"
    let pools = try pools("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")), senders: { '1': { \(site.apns()) } } } }")
    #expect(pools.lanes.count == 3)
    #expect(try reload(pools, one) == ["b (removed)"])
    #expect(pools.apps.unusedPools == [1, 2])
    #expect(pools.letGo(inHand: ([], [1])) == [2])
    #expect(pools.apps.unusedPools == [1] && pools.apps.gone.isEmpty && pools.apps[1].routes.apns == nil)
    #expect(pools.letGo(inHand: ([], [])) == [1])
    #expect(pools.apps.unusedPools.isEmpty)
    _ = pools.takeMade()
    _ = try reload(pools, "{ a: { \(site.apns()) }, c: { \(site.apns("second.p8")) } }")
    #expect(pools.takeMade().map(\.number).count == 1 && pools.lanes.count == 3)
  }

  @Test("a request in hand of one that is gone keeps its routes, those of its senders' devices as well")
  func inHand() throws {
    let pools = try pools("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")), senders: { '1': { \(site.apns()) } } } }")
    _ = try reload(pools, "{ a: { \(site.apns()) } }")
    #expect(pools.letGo(inHand: ([1], [])) == [])
    #expect(pools.apps.unusedPools == [1, 2] && pools.apps[1].routes.apns != nil)
    // It comes back before that has ended, and goes on with its pools.
    _ = try reload(pools, "{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) } }")
    #expect(pools.apps.unusedPools == [2] && pools.apps[1].routes.apns?.pool == 1)
  }

  @Test("with a file that can't be used are taken over without that credential, and the others are not held up")
  func unusable() throws {
    let pools = try pools("{ a: { \(site.apns()) } }")
    try Data("no key".utf8).write(to: site.folder.appendingPathComponent("second.p8"))
    let next = try site.configuration("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) }, c: { \(site.apns()) } }")
    #expect(site.shelf.load(next).map(\.key) == ["apps.b.apns.key"] && site.shelf.missing == ["apps.b.apns"])
    let setup = ShardSetup(configuration: next, credentials: site.shelf.credentials, brokers: site.shelf.brokers)
    #expect(pools.reload(setup) == ["b (added)", "c (added)"])
    #expect(index("b", pools).map { pools.apps[$0].routes.apns == nil } == true)
    #expect(index("c", pools).map { pools.apps[$0].routes.apns != nil } == true)
  }

  @Test("are taken over a few in a turn, and what another setup says meanwhile is what counts")
  func portions() throws {
    func apps(_ count: Int, _ key: String) -> String {
      "{ " + (0..<count).map { "'app\($0)': { \(site.apns(key)) }" }.joined(separator: ", ") + " }"
    }
    var latest: ShardSetup?
    func setup(_ text: String) throws -> ShardSetup {
      let settings = try site.configuration(text)
      #expect(site.shelf.load(settings).isEmpty)
      let next = ShardSetup(
        configuration: settings, credentials: site.shelf.credentials, brokers: site.shelf.brokers, after: latest)
      latest = next
      return next
    }
    let pools = PoolSet(try setup(apps(1, "key.p8")), host: LoopHost(loop))
    pools.begin(try setup(apps(10, "key.p8")))
    let isDone = pools.advance(4)
    #expect(!isDone && pools.apps.count == 5)
    pools.begin(try setup(apps(8, "key.p8")))
    let (first, second) = (pools.advance(2), pools.advance(2))
    #expect(!first && second && pools.apps.count == 8 && pools.changes.count == 3)
    pools.begin(try setup(apps(3, "key.p8")))
    let (third, last) = (pools.advance(4), pools.advance(4))
    #expect(!third && last && pools.apps.count == 3 && pools.changes.allSatisfy { $0.hasSuffix("(removed)") })
  }

  @Test("what has not changed is the same object, whatever else has")
  func same() throws {
    let before = try site.shelf.setup(try site.configuration("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) } }"))
    let settings = try site.configuration(
      "{ a: { \(site.apns()) }, b: { \(site.apns("second.p8", ", topic: 'x'")) }, c: { \(site.apns()) } }")
    #expect(site.shelf.load(settings).isEmpty)
    let after = ShardSetup(
      configuration: settings, credentials: site.shelf.credentials, brokers: site.shelf.brokers, after: before)
    #expect(after.apps[0] === before.apps[0] && after.apps[1] !== before.apps[1])
    #expect(after.apps.map(\.settings.id) == ["a", "b", "c"])
  }
}

@Suite("Watched files")
final class FileWatchTests {
  let folder = FileManager.default.temporaryDirectory.appendingPathComponent("watch-\(UUID().uuidString)")

  init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }
  deinit { try? FileManager.default.removeItem(at: folder) }

  func path(_ name: String) -> String { folder.appendingPathComponent(name).path }
  func write(_ text: String, _ name: String) throws { try Data(text.utf8).write(to: folder.appendingPathComponent(name)) }

  @Test("are looked at again when one was rewritten or replaced, but not when it is missing for a moment")
  func rewritten() throws {
    try write("one", "watched")
    var watch = FileWatch([path("watched")])
    var changes = [watch.hasChanged()]
    try write("longer", "watched")
    changes += [watch.hasChanged(), watch.hasChanged()]
    try FileManager.default.moveItem(atPath: path("watched"), toPath: path("other"))
    changes.append(watch.hasChanged())
    try FileManager.default.moveItem(atPath: path("other"), toPath: path("watched"))
    changes.append(watch.hasChanged())
    #expect(changes == [false, true, false, false, false])
  }

  @Test("are looked at again when what a link leads to is exchanged, as mounted secrets are")
  func exchanged() throws {
    let manager = FileManager.default
    for version in ["1", "2"] {
      try manager.createDirectory(atPath: path(version), withIntermediateDirectories: true)
      try write("same size \(version)", "\(version)/key.p8")
    }
    try manager.createSymbolicLink(atPath: path("data"), withDestinationPath: "1")
    try manager.createSymbolicLink(atPath: path("key.p8"), withDestinationPath: "data/key.p8")
    var watch = FileWatch([path("key.p8")])
    try manager.removeItem(atPath: path("data"))
    try manager.createSymbolicLink(atPath: path("data"), withDestinationPath: "2")
    let isNoticed = watch.hasChanged()
    #expect(isNoticed)
  }

  @Test("may come later, and a new list of them forgets no change")
  func later() throws {
    try write("one", "a")
    var watch = FileWatch([path("a"), path("b")])
    try write("more", "a")
    watch.follow([path("a"), path("b"), path("c")])
    var changes = [watch.hasChanged(), watch.hasChanged()]
    try write("now", "b")
    changes.append(watch.hasChanged())
    #expect(changes == [true, false, true])
  }

  @Test("are those of credentials, authorities and every value that stands in a file of its own")
  func listed() throws {
    try write("amqp://h/", "broker.txt")
    try write("secret", "pass.txt")
    try write("sqlite:r.db", "registry.txt")
    let text = """
      { brokerFile: 'broker.txt', registryFile: 'registry.txt', ca: 'broker-ca.pem',
        apps: { a: { apns: { certificate: 'c.p12', passphraseFile: 'pass.txt', ca: 'ca.pem' } } } }
      """
    try write(text, "c.json5")
    let configuration = try Configuration.load(path: path("c.json5"), environment: [:])
    let names = configuration.watchedFiles.map { URL(fileURLWithPath: $0).lastPathComponent }
    #expect(names == ["broker-ca.pem", "broker.txt", "c.p12", "ca.pem", "pass.txt", "registry.txt"])
  }
}
