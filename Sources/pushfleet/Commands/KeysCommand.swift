import DeviceRegistry
import Foundation
import PushCore
import Reactor
import Settings
import TLS

enum KeysCommand: Command {
  static let page = CommandPage(
    "keys", "create, list and revoke the gateway's keys",
    forms: [
      .action(
        "create", "--config", ["--name"], ["--app"], "--rights", ["--rate"], ["--sender"], ["--environment"],
        ["--service-account", ["--url"]], ["--reason"], ["--json"]),
      .action("list", "--config", ["--json"]),
      .action("revoke", "ID", "--config", ["--reason"], ["--json"]),
    ],
    """
    A key gives a backend access to the gateway, for the key's applications and rights: send (requests, and groups and topics of
    tokens), register (devices, users, groups and topics), ack (acknowledgements on behalf of devices), view (see the fleet),
    operate (pause, resume and the like). `create` prints the key once; the registry keeps only its hash. With --service-account it prints no key. Instead it writes a file for Firebase's
    libraries, whose private key is not in the registry. Running gateways refuse a revoked key within five seconds. The audit
    records who created and revoked a key.
    """,
    [
      .config(), .option("name", "NAME", "a name for people, up to 64 bytes; shown with the id in the audit and the console"),
      .option("app", "APP", in: "APP[,APP]", "the applications; may be left out when only one is configured"),
      .option("rights", "LIST", in: "RIGHT[,RIGHT]", "of send, register, ack, view, operate"),
      .option("rate", "N", "the most requests per second that a gateway accepts with the key, up to 1000000 (5000)"),
      .option("sender", "SENDER", "send as this sender of the application"),
      .option("environment", "E", "production or sandbox: the APNs environment of its tokens"),
      .option(
        "service-account", "FILE",
        "write a service account for one application, for the gateway's endpoint /token"),
      .option("url", "URL", "for that file, the gateway's address as senders know it (gateway.http.listen)"),
      RegistrySession.reasonOption, .json("one JSON object per line"),
    ],
    example: "pushfleet keys create --config pushfleet.json5 --app com.example.app --rights send")

  static func run(_ options: Options) throws {
    switch options.action {
    case "create": try create(options)
    case "list": try list(options)
    default: try revoke(options)
    }
  }

  /// Requests per second. The rate bounds the data that a key's holder can store in the registry.
  private static let defaultRate = 5_000

  private static func create(_ options: Options) throws {
    let rights = try self.rights(try options.required("rights", "what the key is for, of send, register, ack, view, operate"))
    let rate = try options.integer("rate", in: 1...1_000_000) ?? defaultRate
    let session = try RegistrySession(options, isReading: false)
    let apps = try self.apps(options, session.configuration)
    let key = NewSecret(.key)
    var kept = GatewayKey(
      id: key.id, hash: key.hash, apps: apps.map { Array($0.utf8) }, rights: rights, rate: Int64(rate),
      createdAt: RegistrySession.now)
    kept.name = options["name"].map { Array($0.utf8) }
    guard kept.name.map({ (1...64).contains($0.count) && FleetOperation.isReason($0) }) != false else {
      throw CommandFailure(.usage, "--name: expected 1 to 64 bytes, without control characters")
    }
    try choose(options, apps, session.configuration, for: &kept)
    if let file = options["service-account"] {
      return try create(kept, file, try tokenURI(options, session.configuration), session, options)
    }
    if options["url"] != nil { throw CommandFailure(.usage, "--url needs --service-account") }
    try session.perform(.createKey(kept))
    let shown = options.asJSON ? (description(kept) + ["key": key.text]).line : key.text
    do throws(StandardOutput.Failure) { try StandardOutput.write(shown + [UInt8(ascii: "\n")]) } catch {
      let id = String(decoding: key.id, as: UTF8.self)
      let isRevoked = (try? session.perform(.revokeKey(id: key.id))) != nil
      throw CommandFailure(
        .unavailable,
        "standard output can't be written: the key was not shown, and it is "
          + (isRevoked ? "revoked" : "still valid: revoke it by `pushfleet keys revoke \(id)`"))
    }
    if !options.asJSON {
      Terminal.notice("this is the only time that the key is shown; its id is \(String(printing: key.id))")
    }
  }

  private static func description(_ key: GatewayKey) -> JSONObject {
    [
      "id": key.id, "name": JSONOptional(key.name), "apps": key.apps,
      "rights": key.rightNames,
      "sender": JSONOptional(key.sender), "environment": JSONOptional(key.environment?.name),
    ]
  }

  /// Sets sender and environment, which each of the applications must have.
  private static func choose(
    _ options: Options, _ apps: [String], _ configuration: Configuration, for key: inout GatewayKey
  ) throws(CommandFailure) {
    let configured = configuration.apps.filter { apps.contains($0.id) }
    if let sender = options["sender"] {
      for app in configured where app.senders[sender] == nil {
        throw CommandFailure(
          .badInput, "--sender: \(SafeText.value(app.id)) has no sender \(SafeText.value(sender)) in the configuration")
      }
      key.sender = Array(sender.utf8)
    }
    guard let word = options["environment"] else { return }
    guard let environment = APNsConfiguration.Environment(rawValue: word) else {
      throw CommandFailure(.usage, "--environment: expected production or sandbox")
    }
    for app in configured {
      let own = options["sender"].flatMap { app.senders[$0]?.apns } ?? []
      guard (own.isEmpty ? app.credentials.apns : own).contains(where: { $0.environment == environment }) else {
        throw CommandFailure(
          .badInput, "--environment: \(SafeText.value(app.id)) has no APNs credential for \(word) in the configuration")
      }
    }
    key.environment = environment == .sandbox ? .sandbox : .production
  }

  /// Creates a key as a service account file, without printing a key.
  private static func create(
    _ key: GatewayKey, _ file: String, _ tokenURI: [UInt8], _ session: RegistrySession, _ options: Options
  ) throws {
    guard key.apps.count == 1, let app = key.apps.first else {
      throw CommandFailure(.usage, "--service-account is for one application: name it with --app")
    }
    let privateKey = try SelfSignedCertificates.privateKey(.rsa)
    let account = JSONObject.serviceAccount(
      project: app, keyID: key.id, privateKey: privateKey, email: key.id + Array("@".utf8) + app + Array(".pushfleet".utf8),
      tokenURI: tokenURI)
    do throws(SystemError) { try FileContents.create(file, account.line + [UInt8(ascii: "\n")]) } catch {
      let words = error.code == EEXIST ? "exists already" : "can't be written: \(error.reason)"
      throw CommandFailure(.badInput, "--service-account: \(SafeText.path(file)) \(words)")
    }
    var kept = key
    do {
      kept.account = GatewayAccount(
        publicKey: try SelfSignedCertificates.publicKey(of: privateKey), tokenURI: tokenURI)
      try session.perform(.createKey(kept))
    } catch {
      try? FileManager.default.removeItem(atPath: file)
      throw error
    }
    options.print(
      description(kept) + ["service_account": file, "token_uri": tokenURI],
      notice: "\(SafeText.path(file)) is the only copy of the key; its id is \(String(decoding: key.id, as: UTF8.self))")
  }

  /// The address of the gateway's endpoint for tokens.
  private static func tokenURI(_ options: Options, _ configuration: Configuration) throws(CommandFailure) -> [UInt8] {
    var base: String
    if let url = options["url"] {
      guard url.hasPrefix("https://") || url.hasPrefix("http://"), url.utf8.count <= 512,
        url.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), let host = URL(string: url)?.host(), !host.isEmpty
      else { throw CommandFailure(.usage, "--url: expected an address like https://push.example.com") }
      base = url
    } else {
      let http = configuration.gateway?.http
      guard let http, !["0.0.0.0", "::"].contains(http.listen.host) else {
        throw CommandFailure(.usage, "--url must name the gateway as its senders know it, such as https://push.example.com")
      }
      base = "\(http.identity == nil ? "http" : "https")://\(http.listen)"
    }
    while base.hasSuffix("/") { base.removeLast() }
    return Array((base + "/token").utf8)
  }

  private static func rights(_ text: String) throws(CommandFailure) -> Set<KeyRight> {
    let words = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    for word in words { try Options.check(word, among: KeyRight.allCases.map(\.rawValue), of: "--rights: ") }
    return Set(words.compactMap(KeyRight.init))
  }

  private static func apps(_ options: Options, _ configuration: Configuration) throws(CommandFailure) -> [String] {
    let known = configuration.apps.map(\.id)
    guard let text = options["app"] else {
      guard known.count == 1 else { throw CommandFailure(.usage, "--app must name some of \(known.joined(separator: ", "))") }
      return known
    }
    let words = text.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    for word in words where !known.contains(word) { throw configuration.noApplication(word) }
    return words.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
  }

  private static func list(_ options: Options) throws {
    let keys = try RegistrySession(options).store.keys()
    guard options.asJSON || !keys.isEmpty else { return Terminal.say("no keys") }
    let objects = keys.map { key in
      description(key) + [
        "rate": key.rate, "token_uri": JSONOptional(key.account?.tokenURI), "created_at": Timestamp.text(key.createdAt),
        "used_at": key.usedAt.map(Timestamp.text), "revoked_at": key.revokedAt.map(Timestamp.text),
      ]
    }
    options.print(objects.map(\.line), text: TextTable(keys).text(width: Terminal.width))
  }

  private static func revoke(_ options: Options) throws {
    guard options.operands.count == 1 else {
      throw CommandFailure(.usage, "name the id of one key; `pushfleet keys list` shows them")
    }
    let id = Array(options.operands[0].utf8)
    let session = try RegistrySession(options)
    guard let key = try session.store.key(id) else { throw CommandFailure(.badInput, "there is no key of this id") }
    guard key.revokedAt == nil else { return Terminal.notice("it has been revoked before") }
    try session.perform(.revokeKey(id: id))
    options.print(["id": id], notice: "revoked; running gateways refuse it within five seconds")
  }
}

extension TextTable {
  init(_ keys: [GatewayKey]) {
    func use(_ key: GatewayKey) -> String {
      key.revokedAt.map { "revoked \(Figures.time($0))" } ?? key.usedAt.map(Figures.time) ?? "never"
    }
    self.init(
      [
        (.text("ID", least: .max), { String(printing: $0.id) }),
        (.text("NAME", least: 8, rank: 4), { $0.name.map { String(printing: $0) } ?? "-" }),
        (.name("APPS", least: 12, rank: 2), { $0.apps.map { String(printing: $0) }.joined(separator: ",") }),
        (.text("RIGHTS", least: .max, rank: 1), { $0.rightNames.map { String(printing: $0) }.joined(separator: ",") }),
        (.figure("RATE", rank: 5), { $0.rate.map { "\(Figures.count($0))/s" } ?? "-" }),
        (.figure("CREATED", rank: 6), { Figures.time($0.createdAt) }), (.text("USED", least: .max, rank: 3), use),
      ], of: keys)
  }
}
