import Foundation
import TestSupport
import Testing

@testable import pushfleet

@Suite("What was probably meant")
struct SuggestionTests {
  @Test(
    "is asked where an option's value is misspelled",
    arguments: [
      (["send", "--lane", "hgih", "-"], 64, "did you mean high?"),
      (["feedback", "--event", "NotRegisterd"], 64, "did you mean NotRegistered?"),
      (["devices", "list", "--state", "gnoe"], 64, "did you mean gone?"),
      (["devices", "export", "--format", "ndjsn"], 64, "did you mean ndjson?"),
      (["devices", "register", "--platform", "apsn", "--token", "x"], 65, "expected apns, fcm or webpush: did you mean apns?"),
      (["devices", "register", "--platform", "fcm", "--token", "x", "--kind", "alrt"], 65, "did you mean alert?"),
      (["keys", "create", "--rights", "sedn"], 64, "did you mean send?"),
      (["keys", "create", "--rights", "send", "--app", "com.exampel.app"], 64, "did you mean com.example.app?"),
      (["channels", "list", "--app", "com.exampel.app"], 64, "did you mean com.example.app?"),
      (["devices", "count", "--app", "com.exampel.app"], 64, "did you mean com.example.app?"),
      (["explain", "-", "--app", "com.exampel.app"], 64, "did you mean com.example.app?"),
    ] as [([String], Int32, String)])
  func values(words: [String], status: Int32, sentence: String) throws {
    let site = try RegistrySite()
    _ = try site.store()
    let ended = try site.run(words, input: Array("{}".utf8))
    #expect(ended.status == status && ended.errors.contains(sentence), "\(ended)")
  }

  @Test("is not asked where nothing is near")
  func far() throws {
    let ended = try RegistrySite().run(["send", "--lane", "express", "-"])
    #expect(ended.errors == "pushfleet: --lane must be high or normal\n")
  }

  @Test("is asked where a simulator's provider is misspelled")
  func provider() throws {
    let ended = try RegistrySite().run(["simulate", "apsn"], isConfigured: false)
    #expect(ended.status == 64 && ended.errors.contains("did you mean apns?"), "\(ended)")
  }

  @Test(
    "is asked where a setting's value is misspelled",
    arguments: [
      (#"results: "failurs","#, "failures"), (#"log: "warnign","#, "warning"), (#"logFormat: "jsn","#, "json"),
    ])
  func settings(setting: String, meant: String) throws {
    let site = try RegistrySite()
    try site.configure(setting)
    let ended = try site.run(["config", "check"])
    #expect(ended.status == 78 && (ended.errors + ended.output).contains("did you mean \(meant)?"), "\(ended)")
  }

  @Test("is asked where a request's key is misspelled, after the place that is pointed at")
  func requestKeys() throws {
    let site = try RegistrySite()
    let file = try site.write(#"{"to":"/topics/news","notification":{"titel":"x"}}"#, "request.json")
    let sentence = "notification.titel: unknown key at byte 37: did you mean title?"
    let checked = try site.run(["send", "--check", file])
    #expect(checked.status == 65 && checked.errors.contains(sentence), "\(checked)")
    let explained = try site.run(["explain", file])
    #expect(explained.status == 65 && explained.output.contains(sentence), "\(explained)")
    #expect(explained.output.contains("line 1, column 38:"), "\(explained)")
  }
}
