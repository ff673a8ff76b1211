import Foundation
import TestSupport
import Testing

@Suite("pushfleet simulate")
struct SimulateTests {
  @Test("a place that is taken is named, with what to do", arguments: ["apns", "fcm", "webpush"])
  func takenPort(provider: String) throws {
    let site = try RegistrySite()
    let words = ["simulate", provider, "--self-signed", site.folder.appending(path: "made").path, "--listen"]
    let first = try ChildProcess([Program.path] + words + ["127.0.0.1:0"], environment: RegistrySite.environment, output: nil)
    defer { first.end() }
    #expect(first.waitForOutput("listens on", seconds: 90))
    let place = try #require(first.outputSoFar.firstMatch(of: /127\.0\.0\.1:[0-9]+/)).output
    let second = try site.run(words + [String(place)], isConfigured: false)
    #expect(second.status == 69)
    #expect(
      second.errors.contains("\(place) is in use: end what listens there, or choose another port"), "\(second.errors)")
  }

  @Test("web push's subscriptions are written before it listens, ready for the registry, and only for their owner")
  func subscriptions() throws {
    let site = try RegistrySite()
    let file = site.folder.appending(path: "subscriptions.ndjson")
    let child = try ChildProcess(
      [
        Program.path, "simulate", "webpush", "--self-signed", site.folder.appending(path: "made").path, "--listen",
        "127.0.0.1:0",
        "--app", "com.example.app", "--subscriptions", "6", file.path,
      ], environment: RegistrySite.environment, output: nil)
    defer { child.end() }
    #expect(child.waitForOutput("listens on", seconds: 90))
    let port = try #require(child.outputSoFar.firstMatch(of: /127\.0\.0\.1:([0-9]+)/)).output.1
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    #expect(lines.count == 6)
    #expect(
      lines.allSatisfy {
        $0.contains(#""app":"com.example.app","platform":"webpush""#) && $0.contains("https://localhost:\(port)/")
      })
    #expect(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int == 0o600)
  }

  @Test("subscriptions need a file, and an application needs subscriptions")
  func subscriptionFile() throws {
    let site = try RegistrySite()
    let words = ["simulate", "webpush", "--self-signed", site.folder.appending(path: "made").path]
    for (more, said) in [
      (["--subscriptions", "6"], "a number and a file"), (["--app", "com.example.app"], "--subscriptions N FILE"),
    ] {
      let ended = try site.run(words + more, isConfigured: false)
      #expect(ended.status == 64 && ended.errors.contains(said), "\(ended)")
    }
  }

  @Test("files that can't be written are named with the system's reason")
  func unwritable() throws {
    let site = try RegistrySite()
    let taken = try site.write("x", "taken")
    let made = try site.run(["simulate", "apns", "--self-signed", taken], isConfigured: false)
    #expect(made.status == 65 && made.errors.contains("\(taken) cannot be filled: File exists"), "\(made.errors)")
    let journal = try site.run(
      ["simulate", "apns", "--self-signed", site.folder.appending(path: "made").path, "--journal", "/nowhere/j"],
      isConfigured: false)
    #expect(journal.errors.contains("/nowhere/j cannot be written: No such file or directory"), "\(journal.errors)")
    let rights = ["keys", "create", "--rights", "send", "--url", "http://h", "--service-account"]
    let account = try site.run(rights + ["/nowhere/a"])
    #expect(account.errors.contains("/nowhere/a can't be written: No such file or directory"), "\(account.errors)")
  }

  @Test("without a certificate, says that it can make one")
  func noCertificate() throws {
    let ended = try RegistrySite().run(["simulate", "apns"], isConfigured: false)
    #expect(ended.status == 64 && ended.errors.contains("--certificate") && ended.errors.contains("--self-signed"), "\(ended)")
  }
}
