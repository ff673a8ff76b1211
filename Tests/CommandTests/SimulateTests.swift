import Foundation
import TestSupport
import Testing

@Suite("pushfleet simulate")
struct SimulateTests {
  @Test("a place that is taken is named, with what to do", arguments: ["apns", "fcm"])
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

  @Test("without a certificate, says that it can make one")
  func noCertificate() throws {
    let ended = try RegistrySite().run(["simulate", "apns"], isConfigured: false)
    #expect(ended.status == 64 && ended.errors.contains("--certificate") && ended.errors.contains("--self-signed"), "\(ended)")
  }
}
