import Foundation
import Settings
import Testing

@Suite("The gateway's settings")
struct SettingsTests {
  private func load(_ gateway: String) throws -> Configuration {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let text = """
      { broker: "amqp://h/", gateway: \(gateway),
        apps: { a: { apns: { key: "k", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } } } }
      """
    try text.write(to: directory.appendingPathComponent("c.json5"), atomically: false, encoding: .utf8)
    return try Configuration.load(path: directory.appendingPathComponent("c.json5").path, environment: [:])
  }

  @Test("name the doors; results are awaited for five seconds by default")
  func doors() throws {
    let settings = try #require(try load("{ http: { listen: '127.0.0.1:8080' } }").gateway)
    let http = try #require(settings.http)
    #expect(http.listen.port == 8080 && http.wait == 5 && http.identity == nil && settings.apns == nil)
    let other = try load("{ http: { listen: '[::1]:80', wait: 0, certificate: 'c.pem', key: 'k.pem' } }").gateway?.http
    #expect(other?.wait == 0 && other?.identity != nil)
  }

  @Test(
    "with unusable values are refused by name",
    arguments: [
      ("{}", "gateway.http"), ("{ http: {} }", "gateway.http.listen"), ("{ http: { listen: '8080' } }", "gateway.http.listen"),
      ("{ http: { listen: 'h:1', wait: 301 } }", "gateway.http.wait"),
      ("{ http: { listen: 'h:1', key: 'k' } }", "gateway.http.certificate"),
      ("{ http: { listen: 'h:1', certificate: 'c' } }", "gateway.http.key"),
      ("{ http: { listen: 'h:1', port: 3 } }", "gateway.http.port"),
      ("{ http: { listen: 'h:1', login: { viewKey: 'k', userHeader: 'u' } } }", "gateway.http.login.proxies"),
      (
        "{ http: { listen: 'h:1', login: { viewKey: 'k', userHeader: 'u', proxies: 'proxy.example' } } }",
        "gateway.http.login.proxies"
      ),
      (
        "{ http: { listen: 'h:1', login: { viewKey: 'k', userHeader: 'u', proxies: '10.0.0.0/33' } } }",
        "gateway.http.login.proxies"
      ),
      ("{ http: { listen: 'h:1', login: { proxies: '::1', userHeader: 'u' } } }", "gateway.http.login.viewKey"),
      ("{ http: { listen: 'h:1', login: { proxies: '::1', viewKey: 'k' } } }", "gateway.http.login.userHeader"),
      (
        "{ http: { listen: 'h:1', login: { proxies: '::1', viewKey: 'k', userHeader: 'Remote User' } } }",
        "gateway.http.login.userHeader"
      ),
      (
        "{ http: { listen: 'h:1', login: { proxies: '::1', viewKey: 'k', userHeader: 'u', groupsHeader: 'g:' } } }",
        "gateway.http.login.groupsHeader"
      ),
      (
        "{ http: { listen: 'h:1', login: { proxies: '::1', userHeader: 'u', operateKey: 'k', operators: ['o'] } } }",
        "gateway.http.login.groupsHeader"
      ),
      (
        "{ http: { listen: 'h:1', login: { proxies: '::1', userHeader: 'u', groupsHeader: 'g', operateKey: 'k' } } }",
        "gateway.http.login.operators"
      ),
      ("{ apns: { listen: 'h:1', app: 'a' } }", "gateway.apns.certificate"),
      ("{ apns: { listen: 'h:1', certificate: 'c', key: 'k' } }", "gateway.apns.clients"),
    ])
  func refused(text: String, key: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try load(text) }
    #expect(error?.key == key)
  }
}
