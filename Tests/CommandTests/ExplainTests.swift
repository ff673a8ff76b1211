import Foundation
import PushCore
import TestSupport
import Testing

@testable import pushfleet

/// What `explain` prints, held against `Tests/Fixtures/explained`. To print that anew: `PUSHFLEET_WRITE_GOLDENS=1 swift test --filter ExplainTests`.
@Suite struct ExplainTests {
  /// 2026-11-20T21:22:00.000Z
  static let now: Int64 = 1_795_209_720_000
  static let fixtures = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../Fixtures").standardized

  static func question(_ body: String, target: String? = nil, topic: String? = "com.example.app") -> ExplainQuestion {
    ExplainQuestion(
      body: Array(body.utf8), target: target.map { Array($0.utf8) }, app: ExplainedApp(topic: topic), now: now)
  }

  static func compare(_ text: String, with name: String) throws {
    let file = fixtures.appending(path: "explained/\(name)")
    if ProcessInfo.processInfo.environment["PUSHFLEET_WRITE_GOLDENS"] != nil {
      try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    let found = try String(contentsOf: file, encoding: .utf8)
    #expect(found == text, "\(name) is stale: PUSHFLEET_WRITE_GOLDENS=1 swift test --filter ExplainTests")
  }

  static let requests = [
    "seed000-data", "seed000-hybrid", "seed000-notification", "seed000-priority", "seed000-ttl", "seed004-both-systems",
  ]

  @Test("every fixture is explained for both phones as it always was", arguments: requests)
  func fixture(name: String) throws {
    let body = try String(contentsOf: Self.fixtures.appending(path: "requests/\(name).json"), encoding: .utf8)
    let explanation = Self.question(body).answer()
    #expect(explanation.refusal == nil)
    try Self.compare(explanation.text(withBar: true) + "\n", with: "\(name).txt")
    let lines = explanation.jsonLines.map { String(decoding: $0, as: UTF8.self) + "\n" }
    try Self.compare(lines.joined(), with: "\(name).ndjson")
    #expect(lines.count == 2)
    for line in lines { #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any]) }
  }

  @Test("what is shown is what is sent, only laid out")
  func sameJSON() throws {
    let body =
      #"{"to":"x","notification":{"title":"\u001b[31m\u202e\u009b雑\"\\\n"},"data":{"a":{"b":[1,[],{}]},"long":"\#(String(repeating: "x", count: 90))"}}"#
    let payload = try #require(try? Self.question(body).answer().views[1].outcome.get().payload)
    let document = try JSONDocument(payload)
    let shown = document.indented(document.root)
    #expect(!shown.unicodeScalars.contains { $0 != "\n" && $0.isDeceptive })
    #expect(shown.contains(#""title": "\u001b[31m\u202e\u009b雑\"\\\n""#))
    let again = try JSONSerialization.jsonObject(with: Data(shown.utf8)) as? NSDictionary
    #expect(again == (try JSONSerialization.jsonObject(with: Data(payload)) as? NSDictionary))
  }

  @Test(
    "a target chooses the phone that is shown",
    arguments: [
      (nil, [.apns, .fcm]), ("apns:00ff", [.apns]), ("fcm:a:b", [.fcm]), ("/topics/news", [.apns, .fcm]),
      ("/users/u", [.apns, .fcm]),
    ] as [(String?, [Platform])])
  func target(target: String?, platforms: [Platform]) {
    let explanation = Self.question(#"{"to":"fcm:x","notification":{"body":"b"}}"#, target: target).answer()
    #expect(explanation.views.map(\.platform) == platforms)
    #expect(explanation.refusal == nil)
    if target == "apns:00ff" { #expect(explanation.text(withBar: false).contains("POST /3/device/00ff\n")) }
    if target == "fcm:a:b" { #expect(explanation.text(withBar: false).contains(#""token": "a:b""#)) }
  }

  @Test(
    "what FCM is told beside a token is shown as it is sent, a dry run as one",
    arguments: [
      (#""to":"fid:cXyZ0123456789_-AbCdEf""#, #""fid":"cXyZ0123456789_-AbCdEf""#, [.apns, .fcm]),
      (#""to":"fcm:/topics/news""#, #""topic":"news""#, [.fcm]),
      (#""to":"fcm:'a' in topics""#, #""condition":"'a' in topics""#, [.fcm]),
    ] as [(String, String, [Platform])])
  func addresses(to: String, member: String, platforms: [Platform]) throws {
    let explanation = Self.question(#"{\#(to),"data":{"k":"v"},"dry_run":true}"#).answer()
    #expect(explanation.views.map(\.platform) == platforms)
    let payload = String(decoding: try #require(try explanation.views.last?.outcome.get()).payload, as: UTF8.self)
    #expect(payload.hasPrefix(#"{"validate_only":true,"message":{"data":{"k":"v"}"#) && payload.hasSuffix(",\(member)}}"))
  }

  @Test("a request without a target is explained for the one that is named, in either shape")
  func missingTarget() {
    #expect(Self.question(#"{"data":{"k":"v"}}"#).answer().refusal == .missingRegistration)
    #expect(Self.question(#"{"data":{"k":"v"}}"#, target: "fcm:x").answer().refusal == nil)
    #expect(Self.question(#"{"message":{"topic":"t","data":{"k":"v"}}}"#, target: "apns:00").answer().refusal == nil)
  }

  @Test("a refused request is shown with its code, its reason, and its place in the file")
  func refused() {
    let body = "{\n  \"to\": \"雑\",\n  \"notification\": {\"title\": \"雑談\", \"badge\": \"\u{1B}x\"}\n}"
    let explanation = Self.question(body.replacingOccurrences(of: "\u{1B}", with: "\\u001b"), target: "fcm:x").answer()
    #expect(explanation.refusal == .invalidParameters)
    #expect(
      explanation.text(withBar: false) == """
        Not a request that is taken

          refused: InvalidParameters
          notification.badge: expected an integer from 0 to 2147483647 at byte 64
          line 3, column 44:
              "notification": {"title": "雑談", "badge": "\\u001bx"}
                                                         ^
        """)
    #expect(
      explanation.jsonLines.map { String(decoding: $0, as: UTF8.self) } == [
        #"{"error":"InvalidParameters","reason":"notification.badge: expected an integer from 0 to 2147483647 at byte 64"}"#
      ])
  }

  @Test("a raw control byte in the file is pointed at, not obeyed")
  func hostile() {
    let text = Self.question("{\"to\": \"x\u{1B}[2J\"}").answer().text(withBar: false)
    #expect(text.contains("refused: InvalidJSON") && text.contains(#"{"to": "x·[2J"}"#))
    #expect(!text.unicodeScalars.contains { $0 != "\n" && $0.isDeceptive })
    _ = Self.question("\u{FEFF}").answer().text(withBar: false)
    _ = Self.question("").answer().text(withBar: false)
  }

  @Test("what only one platform refuses is shown beside what the other takes")
  func oneRefuses() {
    let explanation = Self.question(#"{"to":"x","data":{"aps":"v"}}"#).answer()
    #expect(explanation.refusal == .invalidDataKey)
    let text = explanation.text(withBar: false)
    #expect(text.contains("refused: InvalidDataKey\n  data.aps: reserved by APNs, at byte 18\n  line 1, column 19:\n"))
    #expect(text.contains(#""aps": "v""#))
    #expect(explanation.jsonLines.count == 2)
  }

  @Test("an unknown topic is a placeholder with the push type's suffix, unless the request names it")
  func placeholder() {
    func topic(_ headers: String) -> String? {
      let body = #"{"to":"x","apns":{"headers":{\#(headers)}}}"#
      return try? Self.question(body, topic: nil).answer().views.first?.outcome.get().headers.first?.value
    }
    #expect(topic("") == "<bundle ID>")
    #expect(topic(#""apns-push-type":"voip""#) == "<bundle ID>.voip")
    #expect(topic(#""apns-topic":"bundle.id""#) == "bundle.id")
  }

  @Test("the bar fills with the bytes used, and only where a person looks")
  func bar() {
    func line(_ bytes: Int, _ withBar: Bool) -> String? {
      let body = #"{"to":"x","data":{"k":"\#(String(repeating: "v", count: bytes - 1))"}}"#
      return Self.question(body, target: "fcm:x").answer().text(withBar: withBar).split(separator: "\n")
        .first { $0.contains("bytes of") }.map { $0.trimmingCharacters(in: .whitespaces) }
    }
    #expect(line(4096, true) == "4096 of 4096 bytes of notification and data, ████████████████████ 100 %")
    #expect(line(1, true) == "1 of 4096 bytes of notification and data, █░░░░░░░░░░░░░░░░░░░ 0 %")
    #expect(line(2048, false) == "2048 of 4096 bytes of notification and data, 50 %")
  }

  @Test(
    "the command reads a file or standard input, and its exit status says what came of it",
    arguments: [
      (["explain", "-"], 0, "Android phone"), (["explain", "-", "--json", "--target", "apns:00"], 0, #"{"platform":"apns""#),
      (["explain", "-", "--target", "a b"], 64, "--target: "), (["explain"], 64, "name a file"),
      (["explain", "/nowhere"], 65, "cannot be read"),
      (["explain", "-", "--at", "noon"], 64, "--at must be a time"), (["explain", "-", "--app", "a b"], 64, "not a bundle ID"),
      (["explain", "-", "--at", "2026-11-20T21:22:00Z"], 0, "published and sent 2026-11-20T21:22:00.000Z"),
      (["explain", "/dev/null"], 65, "refused: InvalidJSON"), (["explain", "--help"], 0, "Usage: pushfleet explain"),
    ] as [([String], Int32, String)])
  func command(words: [String], status: Int32, output: String) throws {
    let input = try FileHandle(forReadingFrom: Self.fixtures.appending(path: "requests/seed000-data.json"))
    let child = try ChildProcess([Program.path] + words, environment: [:], output: nil, input: input)
    #expect(child.wait() == status)
    #expect(child.waitForOutput(output, seconds: 10), "\(child.outputSoFar)")
  }

  @Test("an application without a credential for a platform sends nothing there, and its packages are its own")
  func application() {
    var question = Self.question(#"{"to":"x","restricted_package_name":"a.b"}"#)
    question.app.packages = ["com.example.app"]
    #expect(question.answer().refusal == .invalidPackageName)
    question.app.packages = ["a.b"]
    #expect(question.answer().refusal == nil)
    question.app.hasAPNs = false
    #expect(question.answer().refusal == .mismatchSenderID)
  }
}
