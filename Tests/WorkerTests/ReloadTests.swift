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
  var credentialStore = CredentialStore()

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
    let setup = try credentialStore.setup(try configuration("{ \(text.joined(separator: ",")) }"))
    let contexts = setup.credentials.values.compactMap { credential in
      if case .apns(let apns) = credential.value { apns.target.tls.map { ObjectIdentifier($0) } } else { nil }
    }
    #expect(contexts.count == 300 && Set(contexts).count == 2)
  }

  @Test("loads only changed parts")
  func onlyChanges() throws {
    let settings = try configuration("{ a: { \(apns()), \(try fcm()) }, b: { \(apns("second.p8")) } }")
    let before = try credentialStore.setup(settings)
    let pools = PoolSet(before, host: try EventLoop())
    #expect(pools.reload(try credentialStore.setup(settings)) == [])
    try copy(files.otherP8, to: "key.p8")
    let after = try credentialStore.setup(settings)
    #expect(before.credentials.filter { after.credentials[$0.key] !== $0.value }.map(\.key.name) == ["a APNs production"])
    #expect(pools.reload(after) == ["a APNs production"])
    #expect(pools.reload(try credentialStore.setup(settings)) == [])
  }

  @Test("an unusable file affects only its own application, which keeps its credential")
  func oneBadFile() throws {
    let settings = try configuration("{ a: { \(apns()), \(try fcm()) }, b: { \(apns("second.p8")) } }")
    let before = try credentialStore.setup(settings)
    try Data("no key".utf8).write(to: folder.appendingPathComponent("key.p8"))
    try copy(files.otherP8, to: "second.p8")
    let errors = credentialStore.load(settings)
    #expect(errors.map(\.key) == ["apps.a.apns.key"])
    for (place, credential) in credentialStore.credentials {
      #expect((before.credentials[place] !== credential) == (place.app == "b"), "\(place.name)")
    }
    try copy(files.p384Key, to: "second.p8")
    #expect(credentialStore.load(settings).map(\.key) == ["apps.a.apns.key", "apps.b.apns.key"])
    #expect(throws: ConfigurationError.self) { try ShardSetup(settings) }
  }

  @Test("an unusable passphrase file affects only its own credential, and is watched")
  func badPassphrase() throws {
    func write(_ text: [UInt8]) throws { try Data(text).write(to: folder.appendingPathComponent("pass.txt")) }
    try write(Array((files.passphrase + "\n").utf8))
    let sealed =
      "certificate: '\(files.client)', key: '\(files.clientEncryptedKey)', passphraseFile: 'pass.txt', ca: '\(files.authority)'"
    let text = "{ a: { apns: { \(sealed) } }, b: { \(apns()) } }"
    let before = try credentialStore.setup(try configuration(text))
    for broken: [UInt8]? in [nil, [0xFF, 0xFE], Array("another".utf8), []] {
      try FileManager.default.removeItem(atPath: file("pass.txt"))
      if let broken { try write(broken) }
      try copy(broken == nil ? files.otherP8 : files.p8, to: "key.p8")
      let next = try configuration(text)
      #expect(next.watchedFiles.contains(file("pass.txt")))
      let b = try #require(credentialStore.credentials.first { $0.key.app == "b" }?.value)
      let errors = credentialStore.load(next)
      #expect(errors.count == 1 && errors[0].key.hasPrefix("apps.a.apns."), "\(errors)")
      #expect(!errors.contains { "\($0)".contains("another") })
      for (place, credential) in credentialStore.credentials where place.app == "a" {
        #expect(before.credentials[place] === credential)
      }
      if broken == nil { #expect(!credentialStore.credentials.values.contains { $0 === b }) }
      try write(Array(files.passphrase.utf8))
    }
    #expect(credentialStore.load(try configuration(text)).isEmpty)
  }

  @Test("a topic that is no bundle ID is refused before anything is reloaded", arguments: ["", "a.b ", "a\\nb", "###"])
  func badTopic(topic: String) throws {
    _ = try configuration("{ a: { \(apns("key.p8", ", topic: 'a.b'")) } }")
    let error = #expect(throws: ConfigurationError.self) {
      try configuration("{ a: { \(apns("key.p8", ", topic: '\(topic)'")) } }")
    }
    #expect(error?.key == "apps.a.apns.topic")
  }

  @Test("a sender with a new credential uses it, and the others of the old one are unaffected")
  func apart() throws {
    let shared = "{ a: { \(apns()), senders: { '1001': { \(apns()) }, '1002': { \(apns()) } } } }"
    let pools = PoolSet(try credentialStore.setup(try configuration(shared)), host: try EventLoop())
    let app = pools.apps[0]
    let sender = try #require(app.senders[Array("1001".utf8)])
    #expect(pools.accounts.count == 1 && sender.apns?.pool == 0)
    let own = "{ a: { \(apns()), senders: { '1001': { \(apns("second.p8")) }, '1002': { \(apns()) } } } }"
    #expect(pools.reload(try credentialStore.setup(try configuration(own))) == ["a.senders.1001 APNs production"])
    #expect(pools.accounts.count == 2 && sender.apns?.pool == 1 && app.routes.apns?.pool == 0)
    // Requests that waited for the shared pool can still be translated.
    #expect(sender.apnsSettings(of: 0) != nil)
    // The application changes its key, and the sender stays.
    try copy(files.otherP8, to: "key.p8")
    #expect(
      pools.reload(try credentialStore.setup(try configuration(own))) == [
        "a APNs production", "a.senders.1002 APNs production",
      ])
    #expect(pools.accounts.count == 2 && app.routes.apns?.pool == 0)
    // Back to one key for all.
    #expect(pools.reload(try credentialStore.setup(try configuration(shared))) == ["a.senders.1001 APNs production"])
    #expect(pools.accounts.count == 2 && sender.apns?.pool == 0)
  }

  @Test("a shared pool keeps its waiting requests when its users separate, and each user gets its own pool")
  func twoWays() throws {
    func apps(_ a: String, _ b: String) -> String {
      "{ a: { \(apns(a, ", topic: 'x'")) }, b: { \(apns(b, ", topic: 'x'")) } }"
    }
    try copy(files.otherP8, to: "third.p8")
    let pools = PoolSet(
      try credentialStore.setup(try configuration(apps("key.p8", "key.p8"))), host: try EventLoop())
    #expect(pools.accounts.count == 1)
    #expect(
      pools.reload(try credentialStore.setup(try configuration(apps("second.p8", "third.p8")))) == [
        "a APNs production", "b APNs production",
      ])
    #expect(pools.accounts.count == 3)
    #expect([0, 1].map { pools.apps[$0].routes.apns?.pool } == [1, 2])
    #expect([0, 1].allSatisfy { pools.apps[$0].routes.apnsSettings(of: 0) != nil })
  }

  @Test("applies the rights of producers and the allowed result queues")
  func rights() throws {
    let pools = PoolSet(try credentialStore.setup(try configuration("{ a: { \(apns()) } }")), host: try EventLoop())
    let granted = try credentialStore.setup(
      try configuration("{ a: { producers: ['billing'], \(apns("key.p8", ", topics: ['b']")) } }"))
    #expect(pools.apps[0].rights.producers == nil && pools.reload(granted) == ["a rights"])
    #expect(pools.apps[0].rights.producers == [Array("billing".utf8)])
    #expect(pools.apps[0].rights.topics?.contains(Array("b".utf8)) == true)
    let open = try configuration("{ a: { \(apns()) } }")
    let closed = try configuration("{ a: { \(apns()) } }", "broker: 'amqp://h/', replyTo: []")
    #expect(closed.changesForRestart(from: open) == [])
  }

  @Test("applies topics, default priorities, quotas, timeouts and platforms")
  func settings() throws {
    let pools = PoolSet(
      try credentialStore.setup(try configuration("{ a: { \(apns()), \(try fcm()) } }")), host: try EventLoop())
    let routes = pools.apps[0].routes
    func reload(_ app: String) throws -> [String] {
      pools.reload(try credentialStore.setup(try configuration("{ a: { \(app) } }")))
    }

    #expect(try reload("\(apns("key.p8", ", topic: 'a.beta'")), \(try fcm())") == ["a rights", "a APNs production"])
    #expect(routes.apns?.settings.topic == Array("a.beta".utf8))
    #expect(
      try reload("\(apns()), \(try fcm(", messagesPerMinute: 600"))") == ["a rights", "a APNs production", "a FCM"])
    #expect(try reload("\(apns("key.p8", ", timeout: 5")), \(try fcm(", messagesPerMinute: 600"))") == ["a APNs production"])
    #expect(try reload("defaultPriority: 'high', \(apns()), \(try fcm())") == ["a APNs production", "a FCM"])
    #expect(routes.apns?.settings.defaultPriority == .high && routes.fcmSettings.defaultPriority == .high)
    #expect(try reload(apns("key.p8", ", environment: 'sandbox'")) == ["a APNs production", "a APNs sandbox", "a FCM"])
    #expect(routes.production == nil && routes.fcm == nil && routes.apns?.pool == routes.sandbox?.pool)
    #expect(pools.accounts.count == 3)
  }

  @Test("applies brokers, their authorities and passwords; an amqps address never loses TLS")
  func brokers() throws {
    let apps = "{ a: { \(apns()) } }"
    #expect(try credentialStore.setup(try configuration(apps)).brokers.map { $0.tls == nil } == [true])
    let two = "broker: ['amqps://one/', 'amqp://two/', 'amqps://three/'], ca: '\(files.authority)'"
    let secure = try credentialStore.setup(try configuration(apps, two))
    #expect(secure.brokers.map { $0.tls == nil } == [false, true, false])
    // An unusable list of authorities leaves the addresses unchanged.
    #expect(
      credentialStore.load(try configuration(apps, "broker: 'amqps://four/', ca: '\(files.serverKey)'")).map(\.key) == ["ca"])
    #expect(credentialStore.brokers.map(\.uri.host) == ["one", "two", "three"])
    let other = try credentialStore.setup(try configuration(apps, "broker: 'amqps://one/', ca: '\(files.otherAuthority)'"))
    #expect(other.brokers[0].tls !== secure.brokers[0].tls)
  }

  @Test("names the changes that a running worker can't apply")
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
    PoolSet(try site.credentialStore.setup(try site.configuration(apps)), host: loop)
  }

  private func reload(_ pools: PoolSet, _ apps: String) throws -> [String] {
    pools.reload(try site.credentialStore.setup(try site.configuration(apps)))
  }

  private func index(_ id: String, _ pools: PoolSet) -> Int? { pools.apps.index(of: Array(id.utf8)) }

  @Test("keep their index, and removed ones are no applications")
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
    // Its requests in hand keep their routes and the name.
    #expect(pools.apps[1].id == Array("a".utf8) && pools.apps[1].routes.apns != nil)
    #expect(try reload(pools, two).first == "a (added)")
    #expect(index("a", pools) == 1 && pools.apps.count == 2)
  }

  @Test("bring and remove their senders and packages")
  func senders() throws {
    let plain = "{ a: { \(site.apns()) } }"
    let more = "{ a: { \(site.apns()), senders: { '1': { \(site.apns("second.p8")) } }, \(try site.fcm(", package: 'a.b'")) } }"
    let pools = try pools(plain)
    let sender = Array("1".utf8)
    #expect(pools.apps[0].senders.isEmpty && pools.accounts.count == 1)
    #expect(try reload(pools, more) == ["a FCM", "a.senders.1 APNs production", "a.senders.1 FCM"])
    let pool = try #require(pools.apps[0].senders[sender]?.apns?.pool)
    #expect(pools.apps[0].packages.contains(Array("a.b".utf8)) && pools.apps[0].pools.count == 3)
    #expect(try reload(pools, plain) == ["a FCM"])
    #expect(pools.apps[0].senders[sender] == nil && !pools.apps[0].packages.contains(Array("a.b".utf8)))
    // Earlier requests can still be translated.
    #expect(pools.apps[0].formerSenders.contains { $0.apnsSettings(of: pool) != nil })
    #expect(pools.letGo(inHand: ([], [])) == [1, 2] && pools.apps[0].formerSenders.isEmpty)
  }

  @Test("a removed sender's own pool is closed; requests in its other pool are still translated")
  func poolByPool() throws {
    let plain = "{ a: { \(site.apns()) } }"
    let pools = try pools("{ a: { \(site.apns()), senders: { '1': { \(site.apns("second.p8")), \(try site.fcm()) } } } }")
    let sender = try #require(pools.apps[0].senders[Array("1".utf8)])
    let (apns, fcm) = (try #require(sender.apns?.pool), try #require(sender.fcm))
    _ = try reload(pools, plain)
    #expect(pools.letGo(inHand: ([0], [apns])) == [fcm])
    #expect(pools.apps[0].formerSenders.contains { $0.apnsSettings(of: apns) != nil })
    #expect(pools.apps.withFormerSenders == [0])
    // Nothing is searched any longer, although the application has requests.
    #expect(pools.letGo(inHand: ([0], [])) == [apns])
    #expect(pools.apps.withFormerSenders.isEmpty && pools.apps[0].formerSenders.isEmpty)
  }

  @Test("a removed sender with its application's credential leaves nothing to wait for")
  func sharedSender() throws {
    let pools = try pools("{ a: { \(site.apns()), senders: { '1': { \(site.apns()) } } } }")
    _ = try reload(pools, "{ a: { \(site.apns()) } }")
    #expect(pools.apps.withFormerSenders.isEmpty && pools.apps[0].formerSenders.isEmpty)
    // Another sender's request to that one's device can still be translated.
    let pipeline = Pipeline(
      apps: pools.apps, outbox: Outbox(time: loop.time, log: Log(level: .error)), time: loop.time)
    let entry = InFlight(index: 0)
    entry.identity.app = 0
    #expect(pipeline.translations.translator.otherSettings(of: 0, entry) != nil)
  }

  @Test("an unused pool is closed when no request in hand uses it, and its number is reused")
  func closed() throws {
    let one = "{ a: { \(site.apns()) } }"
    let pools = try pools("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")), senders: { '1': { \(site.apns()) } } } }")
    #expect(pools.accounts.count == 3)
    #expect(try reload(pools, one) == ["b (removed)"])
    #expect(pools.apps.unusedPools == [1, 2])
    #expect(pools.letGo(inHand: ([], [1])) == [2])
    #expect(pools.apps.unusedPools == [1] && pools.apps.gone.isEmpty && pools.apps[1].routes.apns == nil)
    #expect(pools.letGo(inHand: ([], [])) == [1])
    #expect(pools.apps.unusedPools.isEmpty)
    let accounts = pools.accounts
    _ = try reload(pools, "{ a: { \(site.apns()) }, c: { \(site.apns("second.p8")) } }")
    #expect(pools.accounts.count == 3 && zip(pools.accounts, accounts).count { $0.pool !== $1.pool } == 1)
  }

  @Test("a request of a removed application keeps its routes, and those of its senders")
  func inHand() throws {
    let pools = try pools("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")), senders: { '1': { \(site.apns()) } } } }")
    _ = try reload(pools, "{ a: { \(site.apns()) } }")
    #expect(pools.letGo(inHand: ([1], [])) == [])
    #expect(pools.apps.unusedPools == [1, 2] && pools.apps[1].routes.apns != nil)
    // It comes back before that has ended, and continues with its pools.
    _ = try reload(pools, "{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) } }")
    #expect(pools.apps.unusedPools == [2] && pools.apps[1].routes.apns?.pool == 1)
  }

  @Test("with an unusable file are applied without that credential, and don't hold up the others")
  func unusable() throws {
    let pools = try pools("{ a: { \(site.apns()) } }")
    try Data("no key".utf8).write(to: site.folder.appendingPathComponent("second.p8"))
    let next = try site.configuration("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) }, c: { \(site.apns()) } }")
    #expect(
      site.credentialStore.load(next).map(\.key) == ["apps.b.apns.key"] && site.credentialStore.missing == ["apps.b.apns"])
    let setup = ShardSetup(
      configuration: next, credentials: site.credentialStore.credentials, brokers: site.credentialStore.brokers)
    #expect(pools.reload(setup) == ["b (added)", "c (added)"])
    #expect(index("b", pools).map { pools.apps[$0].routes.apns == nil } == true)
    #expect(index("c", pools).map { pools.apps[$0].routes.apns != nil } == true)
  }

  @Test("are applied a few in a turn, and only the latest configuration counts")
  func portions() throws {
    func apps(_ count: Int, _ key: String) -> String {
      "{ " + (0..<count).map { "'app\($0)': { \(site.apns(key)) }" }.joined(separator: ", ") + " }"
    }
    var latest: ShardSetup?
    func setup(_ text: String) throws -> ShardSetup {
      let settings = try site.configuration(text)
      #expect(site.credentialStore.load(settings).isEmpty)
      let next = ShardSetup(
        configuration: settings, credentials: site.credentialStore.credentials, brokers: site.credentialStore.brokers,
        after: latest)
      latest = next
      return next
    }
    let pools = PoolSet(try setup(apps(1, "key.p8")), host: loop)
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

  @Test("unchanged ones keep the same object")
  func same() throws {
    let before = try site.credentialStore.setup(
      try site.configuration("{ a: { \(site.apns()) }, b: { \(site.apns("second.p8")) } }"))
    let settings = try site.configuration(
      "{ a: { \(site.apns()) }, b: { \(site.apns("second.p8", ", topic: 'x'")) }, c: { \(site.apns()) } }")
    #expect(site.credentialStore.load(settings).isEmpty)
    let after = ShardSetup(
      configuration: settings, credentials: site.credentialStore.credentials, brokers: site.credentialStore.brokers,
      after: before)
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

  @Test("are checked again after a rewrite or replacement, but not when missing for a moment")
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

  @Test("are checked again when a link leads to another file, as for mounted secrets")
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

  @Test("may appear later, and a new list of files forgets no change")
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

  @Test("are those of credentials, authorities and of every value in its own file")
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
