import Foundation
import Settings
import Testing

@Suite("Checking a configuration")
struct ConfigurationCheckTests {
  private static let good = #"apns: { certificate: "none.pem" }"#

  /// Checks a file with this text.
  private func check(_ text: String, _ environment: [String: String] = [:]) throws -> ConfigurationCheck {
    // An empty folder, without credential files.
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("check-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let file = folder.appendingPathComponent("check.json5")
    try text.write(to: file, atomically: false, encoding: .utf8)
    return ConfigurationCheck(path: file.path, environment: environment)
  }

  /// `line:column key` of each error, without missing files.
  private func places(_ check: ConfigurationCheck) -> [String] {
    check.findings.filter { $0.isError && !$0.problem.contains("cannot be read") }.map {
      "\($0.line.map { "\($0)" } ?? "-"):\($0.column.map { "\($0)" } ?? "-") \($0.key ?? "")"
    }
  }

  @Test("finds all errors at once, each with its place, and no errors that only follow from others")
  func everything() throws {
    let found = try check(
      """
      {
        broker: "http://x", prefix: "a", prefix: "b",
        Results: "some", prefetch: "many",
        retry: { steps: ["10s", "1s"] },
        apps: {
          "com.a": { apns: { key: "k", keyId: "ABC", teamID: "x" } },
          "com.b": { apns: [{ certificate: "n" }, { certificate: "m" }] },
          "com.c": {},
          "bad id": {},
        },
      }
      """)
    #expect(
      Set(places(found)) == [
        "2:36 ", "3:3 Results", "6:34 apps.com.a.apns.keyId", "2:3 broker", "3:3 results", "3:20 prefetch", "4:12 retry.steps",
        "9:5 apps.bad id", "6:34 apps.com.a.apns.keyID", "6:48 apps.com.a.apns.teamID", "7:45 apps.com.b.apns[1].environment",
        "8:5 apps.com.c.apns",
      ], "\(places(found))")
    #expect(found.configuration == nil)
  }

  @Test("reports each credential file that can't be read, and nothing about values that it filled in itself")
  func files() throws {
    let found = try check(
      """
      { broker: "amqp://localhost", apps: {
        "com.a": { apns: { key: "none/AuthKey_ABCDEFGHIJ.p8", teamID: "DEF123GHIJ", ca: "none.pem" } },
        "com.b": { fcm: { serviceAccount: "none.json", ca: "none.pem" } } } }
      """)
    let unreadable = found.findings.filter { $0.problem.contains("cannot be read") }.compactMap(\.key)
    #expect(
      Set(unreadable) == [
        "apps.com.a.apns.key", "apps.com.a.apns.ca", "apps.com.b.fcm.serviceAccount", "apps.com.b.fcm.ca",
      ], "\(found.findings)")
    #expect(found.findings.filter { !$0.isError } == [])
  }

  @Test(
    "a topic that is no bundle ID is wrong, as requests to it would all be refused", arguments: ["", "a.b ", "a\\nb", "###"])
  func topics(topic: String) throws {
    let found = try check(
      #"{ broker: "amqp://h", apps: { "com.a": { apns: [{ topic: "\#(topic)", certificate: "c" }] } } }"#)
    #expect(found.findings.contains { $0.key == "apps.com.a.apns[0].topic" && $0.isError && $0.line == 1 }, "\(found.findings)")
    let alone = try check(#"{ broker: "amqp://h", apps: { "com.a": { apns: { topic: "\#(topic)", certificate: "c" } } } }"#)
    #expect(places(alone) == ["1:50 apps.com.a.apns.topic"], "\(alone.findings)")
  }

  @Test("goes on after a port that no endpoint can have")
  func portOutOfRange() throws {
    let found = try check(
      #"{ broker: "amqp://h", apps: { "com.a": { fcm: { serviceAccount: "{}", endpoint: "https://h:70000" } } } }"#)
    #expect(found.findings.compactMap(\.key) == ["apps.com.a.fcm.endpoint", "apps.com.a.fcm.serviceAccount"])
  }

  @Test(
    "one error hides no other error of the same object",
    arguments: [
      (
        "gateway: { http: { listen: '8080', certificate: 'x' } }",
        ["gateway.http.listen", "gateway.http.key", "registry", "gateway.http.certificate"]
      ),
      (
        "gateway: { http: { listen: 'h:1', certificate: 'x', key: 'y' } }, registry: 'sqlite:r.db'",
        [
          "gateway.http.certificate", "gateway.http.key",
        ]
      ),
      (
        "gateway: { apns: { listen: 'h:1', clients: 'x' } }",
        ["gateway.apns.certificate", "gateway.apns.clients"]
      ),
      (
        "gateway: { apns: { listen: '1', key: 'y', app: 'b' } }",
        [
          "gateway.apns.listen", "gateway.apns.certificate", "gateway.apns.key", "gateway.apns.app",
        ]
      ),
      (
        "gateway: { apns: { listen: 'h:1', certificate: 'x' } }",
        [
          "gateway.apns.key", "gateway.apns.clients", "gateway.apns.certificate",
        ]
      ),
      ("richPages: { keep: '1', bytes: 1, url: 'ftp://x' }", ["richPages.keep", "richPages.bytes", "richPages.url"]),
      ("broker: 'amqp://h', brokerFile: 'nosuch'", ["broker", "brokerFile"]),
    ])
  func collected(settings: String, keys: [String]) throws {
    let broker = settings.hasPrefix("broker") ? "" : "broker: 'amqp://h',"
    let found = try check("{ \(broker) \(settings), apps: { 'com.a': { \(Self.good) } } }")
    #expect(Set(found.findings.filter(\.isError).compactMap(\.key)) == Set(keys + ["apps.com.a.apns.certificate"]))
    #expect(found.findings.count(where: \.isError) == keys.count + 1, "\(found.findings)")
  }

  @Test("suggests the name that was meant")
  func meant() throws {
    let found = try check(#"{ broker: "amqp://h", Apps: { "com.a": { apns: { certificate: "c", topc: "t" } } } }"#)
    #expect(
      found.findings.map(\.problem).filter { $0.contains("did you mean apps?") || $0.contains("did you mean topic?") }.count
        >= 1)
  }

  @Test("accepts each setting that a document shows, except for missing files")
  func documents() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
    let documents = try ["docs", "docs/send", "docs/operate", "docs/internals"].flatMap { folder in
      try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path).map { "\(folder)/\($0)" }
    }
    var shown = 0
    for document in ["README.md"] + documents.filter({ $0.hasSuffix(".md") }).sorted() {
      let text = try String(contentsOf: root.appending(path: document), encoding: .utf8)
      for match in text.matches(of: /```json5\n((?s:.*?))```/) {
        let block = String(match.1)
        let isWhole = block.hasPrefix("{")
        let whole =
          isWhole ? block : #"{ broker: "amqp://h", registry: "sqlite:r.db", apps: { "com.a": { \#(Self.good) } }, \#(block) }"#
        let found = try check(whole).findings.filter { $0.isError }.map { "\($0.key ?? "-") \($0.problem)" }
        let unknown = found.filter { problem in
          // Without values that were left out and missing files.
          !["cannot be read", "is missing", "is needed", "needs"].contains { problem.contains($0) }
        }
        #expect(unknown.isEmpty, "\(document): \(unknown)")
        shown += 1
      }
    }
    #expect(shown >= 5)
  }

  @Test("reports syntax errors together with the settings' errors unless it had to guess")
  func syntax() throws {
    let found = try check("{\n broker: amqp://h,\n prefetch: 0,\n shards: 01\n logg: 'info' }")
    #expect(places(found) == ["2:10 ", "4:10 ", "5:2 ", "5:2 logg", "3:2 prefetch", "-:- apps"], "\(places(found))")
    for (text, place) in [("", "1:1 "), ("{ a: 1 ", "1:8 "), ("# x", "1:1 "), ("{\n a: 'x,\n prefetch: 0 }", "2:5 ")] {
      let found = try check(text)
      #expect(places(found) == [place] && found.findings.count == 1, "\(text): \(found.findings)")
    }
    #expect(try check("[]").findings.first?.problem == "must hold an object, not a list")
    #expect(ConfigurationCheck(path: "/no/such/file", environment: [:]).findings.count == 1)
  }

  @Test("names the environment variable of an error, and variables that are no setting")
  func environment() throws {
    let found = try check(
      #"{ broker: "amqp://h", apps: { "com.a": { \#(Self.good) } } }"#,
      ["PUSHFLEET_PREFECH": "1", "PUSHFLEET_SHARD": "2", "PUSHFLEET_LOG": "loud", "HOME": "/"])
    #expect(found.findings.compactMap(\.variable) == ["PUSHFLEET_SHARD", "PUSHFLEET_PREFECH", "PUSHFLEET_LOG"])
    #expect(found.findings.filter { $0.variable != nil }.allSatisfy { $0.line == nil && $0.file == nil })
    let alone = ConfigurationCheck(path: nil, environment: ["PUSHFLEET_BROKER": "amqp://h"])
    #expect(alone.findings.map(\.key) == ["apps"])
    let nothing = ConfigurationCheck(path: nil, environment: ["HOME": "/"]).findings
    #expect(nothing.count == 1 && nothing[0].problem.contains("--config or PUSHFLEET_CONFIG"))
    #expect(
      ConfigurationCheck(path: nil, environment: ["PUSHFLEET_CONFG": "x"]).findings[0].problem.contains("PUSHFLEET_CONFIG?"))
  }

  @Test("names the variable that gave a file's name, for errors and for warnings")
  func variablesOfFiles() throws {
    let text = #"{ broker: "amqp://h", apps: { "com.a": { \#(Self.good) } } }"#
    let file = FileManager.default.temporaryDirectory.appendingPathComponent("broker-\(UUID().uuidString)")
    try "http://h".write(to: file, atomically: false, encoding: .utf8)
    defer { try? FileManager.default.removeItem(at: file) }
    for path in [file.path, "/no/such/file"] {
      let found = try check(text, ["PUSHFLEET_BROKER_FILE": path]).findings.filter { $0.key?.hasPrefix("broker") == true }
      #expect(found.map(\.variable) == ["PUSHFLEET_BROKER_FILE"] && found.allSatisfy { $0.line == nil }, "\(found)")
    }
    let far = try check(text, ["PUSHFLEET_BROKER": "amqp://u:p@far.example.com"]).findings.filter { !$0.isError }
    #expect(far.map(\.variable) == ["PUSHFLEET_BROKER"], "\(far)")
  }

  @Test(
    "suggests a setting for a variable with nearly the right prefix",
    arguments: [
      ("PUSHFLET_BROKER", "PUSHFLEET_BROKER"), ("PUSFLEET_PREFETCH", "PUSHFLEET_PREFETCH"),
      ("PUSHFLEETBROKER", "PUSHFLEET_BROKER"),
      ("pushfleet_prefetch", "PUSHFLEET_PREFETCH"),
      ("PUSHFLEET-LOG", "PUSHFLEET_LOG"), ("PUSHGATEWAY_URL", nil), ("PUSH_BROKER", nil), ("PUSHFLET_COLOUR", nil),
    ])
  func misspelledBeginning(variable: String, meant: String?) throws {
    let found = try check(#"{ broker: "amqp://h", apps: { "com.a": { \#(Self.good) } } }"#, [variable: "1"]).findings
    #expect(
      found.filter { $0.variable == variable }.map(\.problem) == (meant.map { ["isn't read: did you mean \($0)?"] } ?? []))
    #expect(found.allSatisfy { $0.variable == nil || !$0.isError })
  }

  @Test("never repeats a secret")
  func secrets() throws {
    let found = try check(
      #"""
      { broker: "amqp://u:geheim@h:0/", registry: "postgresql://u:geheim@h:x/d", apps: { "com.a": { apns: {
        key: "-----BEGIN PRIVATE KEY-----geheim", keyID: "geheim!", teamID: "geheim!", passphrase: 5, passphraseFile: "geheim\n" } } } }
      """#, ["PUSHFLEET_APPS_COM_A_FCM_SERVICEACCOUNT": #"{"private_key":"geheim"}"#])
    #expect(found.findings.count > 4)
    #expect(!found.findings.contains { "\($0)".contains("geheim") }, "\(found.findings)")
  }

  @Test("gives usable settings a configuration, and warnings with their places")
  func usable() throws {
    let found = try check(#"{ broker: "amqp://u:p@far.example.com", apps: { "com.a": { \#(Self.good) } } }"#)
    #expect(found.findings.contains { !$0.isError && $0.line == 1 && $0.column == 3 })
    // The certificate isn't there.
    #expect(found.configuration == nil && found.findings.count(where: \.isError) == 1)
  }
}
