import Foundation
import Providers
import Reactor
import TestSupport
import Testing

@testable import Settings

@Suite("The settings of proxies")
struct ProxySettingsTests {
  static let keys = "key: 'k', keyID: 'ABC123DEFG', teamID: 'DEF123GHIJ'"

  func load(_ settings: String = "", app: String = "apns: { \(keys) }", _ environment: [String: String] = [:]) throws
    -> Configuration
  {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("proxy-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try "http://me:secret@filed:1\n".write(to: folder.appendingPathComponent("proxy"), atomically: false, encoding: .utf8)
    let file = folder.appendingPathComponent("c.json5")
    try "{ broker: 'amqp://h/', \(settings) apps: { a: { \(app) } } }".write(to: file, atomically: false, encoding: .utf8)
    return try Configuration.load(path: file.path, environment: environment)
  }

  func proxy(_ configuration: Configuration, of host: String = "api.push.apple.com") -> String? {
    configuration.apps[0].credentials.apns.first?.proxy.proxy(for: Endpoint(host: host, port: 443))?.endpoint.host
  }

  @Test("apply to every credential that names no proxy of its own")
  func inherited() throws {
    let app = """
      apns: [{ \(Self.keys), proxy: 'none' }, { \(Self.keys), environment: 'sandbox', proxy: 'http://apple:8080' }],
      fcm: { serviceAccount: 'f' }, webpush: { key: 'k', subject: 'mailto:a@b.c', proxy: 'none' },
      senders: { s: { fcm: { serviceAccount: 'g' } } }
      """
    let configuration = try load("proxy: 'http://me:secret@fleet:3128', traces: 'http://collector',", app: app)
    let set = configuration.apps[0].credentials
    #expect(set.apns.map { $0.proxy.address?.endpoint.host } == [nil, "apple"])
    #expect(
      set.fcm?.proxy.address?.endpoint.host == "fleet" && set.fcm?.proxy.address?.endpoint.port == 3128
        && set.webpush?.proxy == ProxyChoice.direct)
    #expect(configuration.apps[0].senders["s"]?.fcm?.proxy.address?.endpoint.host == "fleet")
    #expect(configuration.traces?.proxy.address?.endpoint.host == "fleet")
    // Part of the credential, so that a reload applies it.
    let direct = try load("proxy: 'none',", app: app).apps[0].credentials
    let proxies = [direct, set].map { $0.sources.map(\.source.proxy) }
    #expect(proxies[0] != proxies[1] && direct.webpush?.proxy == set.webpush?.proxy)
  }

  @Test("can come from a file and from variables")
  func files() throws {
    #expect(proxy(try load("proxyFile: 'proxy',")) == "filed")
    #expect(proxy(try load(["PUSHFLEET_PROXY": "http://given:1"])) == "given")
    #expect(proxy(try load(["PUSHFLEET_PROXY_FILE": "proxy"])) == "filed")
    #expect(proxy(try load("proxy: 'http://fleet:1',", ["PUSHFLEET_APPS_A_APNS_PROXY": "none"])) == nil)
  }

  func load(_ environment: [String: String]) throws -> Configuration { try load("", environment) }

  @Test("are by default those of HTTPS_PROXY, except for the hosts of NO_PROXY")
  func environment() throws {
    let capitals = ["HTTPS_PROXY": "http://capitals:1", "NO_PROXY": ".example.com,10.0.0.0/8"]
    #expect(proxy(try load(capitals)) == "capitals")
    for host in ["a.example.com", "10.9.9.9"] { #expect(proxy(try load(capitals), of: host) == nil) }
    #expect(proxy(try load(["https_proxy": "small:3128", "no_proxy": "*"])) == nil)
    #expect(proxy(try load(["https_proxy": "small:3128"])) == "small")
    #expect(proxy(try load(["HTTPS_PROXY": "", "HTTP_PROXY": "http://other:1", "ALL_PROXY": "http://other:1"])) == nil)
    // A setting wins, and `NO_PROXY` has no effect on it.
    #expect(proxy(try load("proxy: 'http://fleet:1',", capitals), of: "a.example.com") == "fleet")
    #expect(proxy(try load("proxy: 'none',", capitals)) == nil)
    #expect(proxy(try load("proxy: 'none',", ["HTTPS_PROXY": "socks5://h:1"])) == nil)
  }

  @Test("of HTTPS_PROXY are not for a collector without TLS")
  func collector() throws {
    let variables = ["HTTPS_PROXY": "http://proxy:1", "NO_PROXY": "near.example"]
    func host(_ traces: String, _ settings: String = "") throws -> String? {
      let read = try #require(try load("\(settings) traces: '\(traces)',", variables).traces)
      return read.proxy.proxy(for: read.address.endpoint)?.endpoint.host
    }
    #expect(
      try host("http://far.example") == nil && host("https://far.example") == "proxy" && host("https://near.example") == nil)
    #expect(try host("http://far.example", "proxy: 'http://fleet:1',") == "fleet")
  }

  @Test(
    "explain errors without the value",
    arguments: [
      ("https://me:hunter2@h:1", "proxy is an address with https://; only proxies with http:// addresses are supported"),
      ("socks5://me:hunter2@h:1", "proxy is an address with socks5://; only proxies with http:// addresses are supported"),
      ("hunter2", "proxy must be http://host:port, http://user:password@host:port or none"),
      ("http://me:hunter2@h:x", "proxy must be http://host:port"), ("http://h/hunter2", "proxy must be http://host:port"),
      ("hunter2 x://h", "proxy must be http://host:port"), ("", "proxy must be http://host:port"),
    ])
  func errors(text: String, said: String) throws {
    for (settings, app) in [("proxy: '\(text)',", ""), ("", ", proxy: '\(text)'")] {
      let error = try #require(throws: ConfigurationError.self) {
        try load(settings, app: "apns: { \(Self.keys)\(app) }", [:])
      }
      #expect("\(error)".contains(said) && !"\(error)".contains("hunter2"), "\(error)")
      #expect(error.key == (app.isEmpty ? "proxy" : "apps.a.apns.proxy"))
    }
  }

  @Test("name a wrong variable")
  func wrongVariable() throws {
    let error = try #require(throws: ConfigurationError.self) { try load(["https_proxy": "socks5://me:hunter2@h:1"]) }
    #expect(error.variable == "https_proxy" && error.problem.contains("socks5://") && !"\(error)".contains("hunter2"))
  }

  @Test("reach the connections of credentials, with token endpoints")
  func targets() throws {
    let proxy = ProxyChoice(ProxyAddress("http://proxy:1"), except: ProxyExceptions("oauth2.googleapis.com"))
    let files = try TestCertificates.make()
    let account = try JSONSerialization.data(withJSONObject: [
      "type": "service_account", "project_id": "p", "client_email": "a@b", "token_uri": "https://oauth2.googleapis.com/token",
      "private_key": try String(contentsOfFile: files.rsaKey, encoding: .utf8),
    ])
    let path = FileManager.default.temporaryDirectory.appendingPathComponent("account-\(UUID().uuidString).json")
    try account.write(to: path)
    defer { try? FileManager.default.removeItem(at: path) }
    let source = CredentialSource(
      kind: .fcm(serviceAccount: .file(path.path), nil), ca: nil, proxy: proxy)
    var trusts = TrustCache()
    let cache = MaterialCache()
    let trust = try trusts.trust(.file(files.authority), cache, for: "ca")
    guard case .fcm(let fcm) = try source.load("apps.a.fcm", cache, trust) else {
      throw ConfigurationError(key: "apps.a.fcm", problem: "is another")
    }
    #expect(fcm.target.options.proxy?.endpoint.host == "proxy" && fcm.tokenTarget.options.proxy == nil)
  }
}
