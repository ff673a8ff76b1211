import Foundation
import Testing

@testable import Settings

@Suite("The settings of pages")
struct RichPageSettingsTests {
  private func load(_ pages: String, registry: Bool = true) throws -> Configuration {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: directory) }
    let text = """
      { broker: "amqp://h/", \(registry ? "registry: 'sqlite:r.db'," : "") \(pages)
        apps: { a: { upmc: true, apns: { key: "k", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } },
          b: { apns: { key: "k", keyID: "ABC123DEFG", teamID: "DEF123GHIJ" } } } }
      """
    try text.write(to: directory.appendingPathComponent("c.json5"), atomically: false, encoding: .utf8)
    return try Configuration.load(path: directory.appendingPathComponent("c.json5").path, environment: [:])
  }

  @Test(
    "name the gateway's address; by default a page lives 30 days and has 64 KiB, and an application's pages have a GiB"
  )
  func taken() throws {
    let settings = try #require(try load("richPages: { url: 'https://push.example.com/' },").usedRichPages)
    #expect(settings == RichPageSettings(url: "https://push.example.com", keep: 30 * 86_400_000, bytes: 65_536, most: 1 << 30))
    #expect(settings.address(of: Array("n".utf8)) == Array("https://push.example.com/pages/n".utf8))
    let other = try load("richPages: { url: 'http://[::1]:80/a/b', keep: '90s', bytes: 2000, megabytes: 2 },").richPages
    #expect(other == RichPageSettings(url: "http://[::1]:80/a/b", keep: 90_000, bytes: 2_000, most: 2 << 20))
  }

  @Test("are used if there is an address and a registry, for applications with mps")
  func used() throws {
    #expect(try load("").usedRichPages == nil && load("richPages: { keep: '1d' },").usedRichPages == nil)
    let lonely = try load("richPages: { url: 'https://h' },", registry: false)
    #expect(lonely.usedRichPages == nil && lonely.warnings.contains { $0.hasPrefix("richPages") })
    let configuration = try load("richPages: { url: 'https://h', bytes: 5000 },")
    #expect(configuration.apps.map { configuration.limits(of: $0).extensionBytes } == [5_000, nil])
    #expect(lonely.limits(of: lonely.apps[0]).extensionBytes == nil)
  }

  @Test(
    "with unusable values are refused by name",
    arguments: [
      ("{ url: 'push.example.com' }", "url"), ("{ url: 'ftp://h' }", "url"), ("{ url: 'https://' }", "url"),
      ("{ url: 'https://u:p@h' }", "url"), ("{ url: 'https://h/?q' }", "url"), ("{ url: 'https://h/#f' }", "url"),
      ("{ url: 'https://h/a b' }", "url"), ("{ url: 'https://h/é' }", "url"), ("{ url: 'https://h:0' }", "url"),
      ("{ url: 'https://h/\"' }", "url"), ("{ url: 'https://h//a' }", "url"), ("{ url: 3 }", "url"),
      ("{ url: 'https://\(String(repeating: "h", count: 200))' }", "url"),
      ("{ url: 'https://h', keep: '0d' }", "keep"), ("{ keep: '1w' }", "keep"), ("{ keep: '99999999999999999999d' }", "keep"),
      ("{ url: 'https://h', bytes: 1 }", "bytes"), ("{ bytes: 262145 }", "bytes"), ("{ path: 'x' }", "path"),
    ])
  func refused(text: String, key: String) throws {
    let error = #expect(throws: ConfigurationError.self) { try load("richPages: \(text),") }
    #expect(error?.key == "richPages.\(key)")
  }
}
