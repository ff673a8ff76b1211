import Foundation
import Providers
import Reactor
import TestSupport
import Testing

@testable import pushfleet

@Suite("pushfleet vapid")
struct VAPIDTests {
  @Test("creates a key that only its owner can read, and shows its public key again")
  func created() throws {
    let site = try RegistrySite()
    let file = site.folder.appendingPathComponent("vapid.pem").path
    let made = try site.run(["vapid", "create", file], isConfigured: false)
    #expect(made.status == 0 && made.lines.count == 1 && made.lines.first?.count == 87, "\(made)")
    #expect(made.errors.contains("vapid.pem is the only copy of the private key"))
    let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
    #expect(mode == 0o600)
    let key = try VAPIDKey(pem: try FileContents.read(file), subject: "mailto:a@example.com")
    #expect(made.lines == [String(decoding: key.applicationServerKey, as: UTF8.self)])
    let shown = try site.run(["vapid", "show", file], isConfigured: false)
    #expect(shown.status == 0 && shown.lines == made.lines && shown.errors.isEmpty)
    let json = try site.run(["vapid", "show", file, "--json"], isConfigured: false).objects
    #expect(json.first?["applicationServerKey"] as? String == made.lines.first && json.first?["file"] as? String == file)
  }

  @Test("never writes over a file")
  func existing() throws {
    let site = try RegistrySite()
    let file = try site.write("precious", "vapid.pem")
    let ended = try site.run(["vapid", "create", file], isConfigured: false)
    #expect(ended.status == 65 && ended.output.isEmpty && ended.errors.contains("File exists"), "\(ended)")
    #expect(try String(contentsOfFile: file, encoding: .utf8) == "precious")
  }

  @Test("says why a file is no key")
  func unusable() throws {
    let site = try RegistrySite()
    let files = try TestCertificates.make()
    let text = try site.write("no key", "text.pem")
    for (file, reason) in [(text, "is no VAPID key"), (files.rsaKey, "it is an RSA key"), ("/nowhere/a.pem", "can't be read")] {
      let ended = try site.run(["vapid", "show", file], isConfigured: false)
      #expect(ended.status == 65 && ended.output.isEmpty && ended.errors.contains(reason), "\(ended)")
    }
    #expect(try site.run(["vapid", "create", "/nowhere/a.pem"], isConfigured: false).status == 65)
    for words in [["vapid"], ["vapid", "create"], ["vapid", "show", text, text], ["vapid", "drop", text]] {
      #expect(try site.run(words, isConfigured: false).status == 64, "\(words)")
    }
  }
}
