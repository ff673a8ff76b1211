import Foundation
import TestSupport
import Testing

/// The answers come from Python's providers, which share no code with the program.
@Suite("The interpretation of a provider's answer by pushfleet doctor", .blocking)
struct DoctorProvidersTests {
  /// The doctor's findings for each application's credential, and its exit status.
  private static func look(_ site: Site, _ words: [String] = []) throws -> (status: Int32, findings: [String: [String: Any]]) {
    let ended = try site.run(["doctor", "--config", site.file("pushfleet.json5"), "--json"] + words)
    let findings = Site.objects(ended.output).map { ($0["about"] as? String ?? "", $0) }
    return (ended.status, Dictionary(findings, uniquingKeysWith: { $1 }))
  }

  /// APNs' answers, with the level and words of the expected finding.
  private static let apns: [(status: Int, reason: String, level: String, remedy: [String])] = [
    (400, "BadDeviceToken", "ok", []), (410, "Unregistered", "ok", []),
    (403, "InvalidProviderToken", "error", ["`key`", "`keyID`", "`teamID`"]),
    (403, "BadEnvironmentKeyInToken", "error", ["`environment`"]),
    (403, "BadEnvironmentKeyIdInToken", "error", ["`environment`"]),
    (403, "BadCertificateEnvironment", "error", ["`environment`"]), (403, "BadCertificate", "error", ["`certificate`"]),
    (400, "TopicDisallowed", "error", ["`topic`"]), (400, "BadTopic", "error", ["`topic`"]),
    (400, "MissingTopic", "error", ["`topic`"]), (403, "ExpiredProviderToken", "error", ["clock"]),
    (403, "NeverHeardOf", "error", ["`keyID`"]), (404, "BadPath", "error", ["`endpoint`"]),
    (302, "", "error", ["`endpoint`"]), (400, "NeverHeardOf", "warning", ["`endpoint`"]),
    (429, "TooManyProviderTokenUpdates", "unreachable", ["twenty minutes", "`keyID`"]),
    (503, "ServiceUnavailable", "unreachable", ["later"]),
  ]

  @Test("APNs: key, topic and environment are distinguished, and other answers blame none of them")
  func apns() throws {
    let site = try Site()
    let names = Self.apns.map { "\($0.status).\($0.reason).example" }
    let script = Dictionary(uniqueKeysWithValues: zip(names, Self.apns).map { ($0, [$1.status, $1.reason] as [Any]) })
    let json = String(decoding: try JSONSerialization.data(withJSONObject: script), as: UTF8.self)
    _ = try site.startForeignProvider(["--script", json])
    let apps = names.map { "\"\($0)\": { apns: \(site.apns(topic: $0)) }" }.joined(separator: ", ")
    try site.write(
      "{ broker: \"\(site.brokerURI)\", prefix: \"\(site.prefix)\", apps: { \(apps) } }", to: "pushfleet.json5")

    let (status, findings) = try Self.look(site)
    #expect(status == 78)
    for (name, expected) in zip(names, Self.apns) {
      let finding = findings.first { $0.key.contains(name) }?.value
      let sentence = finding?["finding"] as? String ?? ""
      let remedy = finding?["remedy"] as? String ?? ""
      #expect(finding?["level"] as? String == expected.level, "\(name): \(finding ?? [:])")
      #expect(
        sentence.contains("\(expected.status)") && (expected.reason.isEmpty || sentence.contains(expected.reason)),
        "\(name): \(sentence)")
      #expect(expected.remedy.allSatisfy(remedy.contains), "\(name): \(remedy)")
      // The finding names nothing that is right.
      let others = ["`keyID`", "`topic`", "`environment`", "`certificate`", "`endpoint`"].filter { other in
        !expected.remedy.contains(other) && !(other == "`keyID`" && expected.remedy.contains("`key`"))
      }
      #expect(!others.contains(where: remedy.contains), "\(name): \(remedy)")
    }
  }

  @Test("FCM: account, project and permission are distinguished")
  func fcm() throws {
    let site = try Site()
    let denied: [String: Any] = ["status": 403, "word": "PERMISSION_DENIED"]
    _ = try site.startForeignFCM(script: ["pushfleet-doctor": [denied]])
    let config = try String(contentsOfFile: site.file("pushfleet.json5"), encoding: .utf8)
    let account = try String(contentsOfFile: site.file("account.json"), encoding: .utf8)
    let fcm = try #require(config.firstMatch(of: /fcm: \{[^}]*\}/)).output
    // The last application has the first one's account.
    var apps = ["\"right\": { \(fcm) }", "\"too\": { \(fcm) }"]
    let fields = try #require(JSONSerialization.jsonObject(with: Data(account.utf8)) as? [String: Any])
    for (name, field, value) in [
      ("project", "project_id", "another-project"), ("account", "client_email", "nobody@example.iam.gserviceaccount.com"),
    ] {
      var changed = fields
      changed[field] = value
      try JSONSerialization.data(withJSONObject: changed).write(to: URL(fileURLWithPath: site.file("other-\(name).json")))
      apps.append("\"\(name)\": { \(fcm.replacing("account.json", with: "other-\(name).json")) }")
    }
    try site.write(
      "{ broker: \"\(site.brokerURI)\", prefix: \"\(site.prefix)\", apps: { \(apps.joined(separator: ", ")) } }",
      to: "pushfleet.json5")

    // One after the other: the server accepts only its latest token, and denies permission once.
    for (app, level, sentence, remedy) in [
      ("right", "error", "403 PERMISSION_DENIED", ["role", "cloudmessaging.messages.create"]),
      ("project", "error", "404 NOT_FOUND", ["`project_id`"]),
      ("account", "error", "the token endpoint refuses the service account: invalid_grant", ["key", "clock"]),
      ("right", "ok", "account, project and permission are accepted", []),
      ("too", "ok", "account, project and permission are accepted", []),
    ] {
      let all = try Self.look(site, ["--app", app]).findings.filter { $0.key.hasSuffix(" FCM") }
      #expect(all.count == 1)
      let finding = all["\(app == "too" ? "right" : app) FCM"] ?? [:]
      #expect(finding["level"] as? String == level && (finding["finding"] as? String ?? "").contains(sentence), "\(finding)")
      #expect(remedy.allSatisfy { (finding["remedy"] as? String ?? "").contains($0) }, "\(finding)")
    }
  }
}
