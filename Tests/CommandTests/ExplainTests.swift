import Foundation
import PushCore
import Settings
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
      body: Array(body.utf8), target: target.map { Array($0.utf8) }, app: topic, now: now)
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
      ("/users/u", [.apns, .fcm]), ("/all", [.apns, .fcm]),
    ] as [(String?, [Platform])])
  func target(target: String?, platforms: [Platform]) {
    let explanation = Self.question(#"{"to":"fcm:x","notification":{"body":"b"}}"#, target: target).answer()
    #expect(explanation.views.map(\.way.platform) == platforms)
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
    #expect(explanation.views.map(\.way.platform) == platforms)
    let payload = String(decoding: try #require(try explanation.views.last?.outcome.get()).payload, as: UTF8.self)
    #expect(payload.hasPrefix(#"{"validate_only":true,"message":{"data":{"k":"v"}"#) && payload.hasSuffix(",\(member)}}"))
  }

  @Test("a request without a target is explained for the one that is named, in either shape")
  func missingTarget() {
    #expect(Self.question(#"{"data":{"k":"v"}}"#).answer().refusal == .missingRegistration)
    #expect(Self.question(#"{"data":{"k":"v"}}"#, target: "fcm:x").answer().refusal == nil)
    #expect(Self.question(#"{"message":{"topic":"t","data":{"k":"v"}}}"#, target: "apns:00").answer().refusal == nil)
  }

  @Test("sentences are broken between words where the terminal is narrow")
  func narrowSentences() throws {
    let text = Self.question(#"{"to":"fcm:x","notification":{"body":"b"}}"#).answer().text(withBar: false, width: 80)
    let first = text.split(separator: "\n\n")[0].split(separator: "\n")
    #expect(
      first.count == 2 && first.allSatisfy { $0.count < 80 } && first[0].hasPrefix("A request in GCM's shape"), "\(first)")
    let refused = Self.question(#"{"to":"x","registration_ids":["x"]}"#).answer().text(withBar: false, width: 60)
    #expect(refused.split(separator: "\n").allSatisfy { $0.count < 60 }, "\(refused)")
  }

  @Test("a refused request is shown with its code, its reason, and its place in the file")
  func refused() {
    let body = "{\n  \"to\": \"雑\",\n  \"notification\": {\"title\": \"雑談\", \"badge\": \"\u{1B}x\"}\n}"
    let explanation = Self.question(body.replacingOccurrences(of: "\u{1B}", with: "\\u001b"), target: "fcm:x").answer()
    #expect(explanation.refusal == .invalidParameters)
    #expect(
      explanation.text(withBar: false) == """
        A refused request

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

  @Test(
    "a badge that is counted is refused where nothing has a counter, as a worker refuses it",
    arguments: [
      (#""to":"fcm:/topics/a""#, true), (#""to":"fcm:'a' in topics""#, true), (#""to":"apns-channel:bm8=""#, true),
      (#""registration_ids":["fcm:/topics/a","fcm:/topics/b"]"#, true), (#""to":"fid:cXyZ0123456789_-AbCdEf""#, false),
      (#""to":"fcm:a:b""#, false), (#""to":"apns:00ff""#, false), (#""to":"/topics/a""#, false),
      (#""condition":"'a' in topics""#, false),
      (#""registration_ids":["fcm:/topics/a","fcm:a:b","apns-channel:bm8=","apns:00"]"#, true),
      (#""registration_ids":["fcm:a:b","apns:00"]"#, false),
    ])
  func counter(target: String, isRefused: Bool) {
    let activity = target.contains("channel") ? #","apns":{"payload":{"aps":{"timestamp":1,"event":"end"}}}"# : ""
    func refusal(_ badge: String) -> PushError? {
      Self.question("{\(target),\"notification\":{\"body\":\"b\",\"badge\":\(badge)}\(activity)}").answer().refusal
    }
    #expect(refusal("\"auto\"") == (isRefused ? .invalidParameters : nil))
    #expect(refusal("2") == nil)
  }

  @Test("a list of tokens and channels says what goes to each")
  func mixedList() throws {
    let list = #""registration_ids":["fcm:a:b","apns-channel:bm8=","apns:00"]"#
    let activity = #""apns":{"headers":{"apns-push-type":"liveactivity"},"payload":{"aps":{"timestamp":1,"event":"end"}}}"#
    let views = Self.question("{\(list),\(activity)}").answer().views
    #expect(views.map(\.way) == [.phonesOfAPNs, .channelsOfAPNs, .fcm])
    #expect(try views[0].outcome.get().path == "/3/device/<token>")
    let channel = try views[1].outcome.get()
    #expect(channel.path.hasPrefix("/4/broadcasts/") && channel.headers[0].name == "apns-channel-id")
    // Whole lists of one kind have no other.
    let alone = Self.question(#"{"registration_ids":["apns-channel:bm8="],\#(activity)}"#).answer().views
    #expect(alone.map(\.way) == [.channelsOfAPNs])
    let topics = Self.question(#"{"registration_ids":["fcm:/topics/a"],"data":{"a":"b"}}"#).answer().views
    #expect(topics.map(\.way) == [.topicsOfFCM])
    // So it is with a topic, which takes half of what a phone takes.
    let large = #"{"registration_ids":["fcm:/topics/a","fcm:a:b"],"data":{"a":"\#(String(repeating: "x", count: 3_000))"}}"#
    let sizes = Self.question(large).answer()
    #expect(sizes.views.map(\.way) == [.phonesOfAPNs, .fcm, .topicsOfFCM] && sizes.refusal == .messageTooBig)
    #expect((try? sizes.views[1].outcome.get())?.limit == 4_096 && (try? sizes.views[2].outcome.get()) == nil)
    // What a channel doesn't take is said of the channel alone.
    let alert = Self.question("{\(list),\"notification\":{\"body\":\"b\"}}").answer().views
    #expect((try? alert[0].outcome.get()) != nil && (try? alert[1].outcome.get()) == nil)
  }

  @Test("a file of several requests is distinguished from a broken one")
  func severalRequests() {
    let lines = Self.question("{\"to\":\"fcm:x\"}\n{\"to\":\"fcm:y\"}\n").answer()
    #expect(lines.refusal == .invalidJSON && lines.hint?.contains("one a line") == true)
    #expect(Self.question("{\"to\":\n{\"to\":\"fcm:y\"}\n").answer().hint == nil)
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

  @Test("on a terminal the loss report is broken between words, and marks what doesn't reach the phone as it was asked for")
  func narrow() {
    let body = #"{"to":"x","collapse_key":"k","notification":{"body":"b","icon":"i","badge":1}}"#
    let answer = Self.question(body, target: "apns:00").answer()
    func report(_ width: Int, hasColour: Bool = false) -> [Substring] {
      let lines = answer.text(withBar: true, width: width, hasColour: hasColour).split(separator: "\n")
      return Array(lines[lines.firstIndex { $0.contains("notification.badge") }!...])
    }
    #expect(report(.max).count == 3 && report(.max)[1] == "  dropped    notification.icon: iOS shows the app's icon [GS-098]")
    #expect(
      report(40).prefix(4) == [
        "  converted  notification.badge:", "             aps.badge, a number", "             [GS-096]",
        "  dropped    notification.icon: iOS",
      ])
    #expect(report(40).allSatisfy { $0.count < 40 })
    #expect(report(1).contains { $0.hasSuffix("notification.badge:") })
    #expect(report(.max, hasColour: true)[1].hasPrefix("  \u{1B}[33mdropped    \u{1B}[0mnotification.icon"))
    #expect(report(.max, hasColour: true)[0].hasPrefix("  converted  notification.badge"))
  }

  @Test(
    "the command reads a file or standard input, and its exit status says what came of it",
    arguments: [
      (["explain", "-"], 0, "Android phone"), (["explain", "-", "--json", "--target", "apns:00"], 0, #"{"platform":"apns""#),
      (["explain", "-", "--target", "a b"], 64, "--target: "), (["explain"], 64, "name a file"),
      (["explain", "/nowhere"], 65, "cannot be read"),
      (["explain", "-", "--at", "noon"], 64, "--at must be a time"),
      (["explain", "-", "--at", "2026-02-30T00:00:00Z"], 64, "--at must be a time"),
      (["explain", "-", "--app", "a b"], 64, "not a bundle ID"),
      (["explain", "-", "--at", "2026-11-20T21:22:00Z"], 0, "published and sent 2026-11-20T21:22:00.000Z"),
      (["explain", "/dev/null"], 65, "refused: InvalidJSON"), (["explain", "--help"], 0, "Usage: pushfleet explain"),
    ] as [([String], Int32, String)])
  func command(words: [String], status: Int32, output: String) throws {
    let input = try FileHandle(forReadingFrom: Self.fixtures.appending(path: "requests/seed000-data.json"))
    let child = try ChildProcess([Program.path] + words, environment: [:], output: nil, input: input)
    #expect(child.wait() == status)
    #expect(child.waitForOutput(output, seconds: 90), "\(child.outputSoFar)")
  }

  @Test("a request that names the platform is explained for that platform only", arguments: ["apns:00", "fcm:a:b"])
  func namedPlatform(to: String) throws {
    let site = try RegistrySite()
    let explained = try site.run(["explain", "-"], input: Array(#"{"to":"\#(to)","notification":{"body":"b"}}"#.utf8))
    #expect(explained.output.contains("iPhone") == to.hasPrefix("apns:"), "\(explained)")
    #expect(explained.output.contains("Android phone") != to.hasPrefix("apns:"), "\(explained)")
  }

  // MARK: as a worker with the configuration

  typealias App = (configuration: Configuration, id: String?)

  /// Two applications; neither keys nor a broker are there.
  static func app(_ settings: String, limits: String = "", id: String? = "com.example.app") throws -> App {
    let text = """
      { broker: "amqp://127.0.0.1/", limits: { \(limits) }, apps: { "com.example.app": { \(settings) },
        "com.example.other": { fcm: { serviceAccount: "none.json", package: "a.b.c" } } } }
      """
    let file = FileManager.default.temporaryDirectory.appending(path: "explain-\(UUID().uuidString).json5")
    defer { try? FileManager.default.removeItem(at: file) }
    try text.write(to: file, atomically: true, encoding: .utf8)
    return (try Configuration.load(path: file.path, environment: [:]), id)
  }

  static let apns = #"apns: [{ key: "none.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "t.one" }]"#
  static let fcm = #"fcm: { serviceAccount: "none.json", package: "p.one" }"#

  static func sending(_ body: String, _ app: App, _ platform: Platform, age: Int64 = 0) throws -> (
    headers: [String: String], payload: String
  ) {
    let question = ExplainQuestion(
      body: Array(body.utf8), configuration: app.configuration, app: app.id, published: now - age * 1000, now: now)
    let view = try #require(question.answer().views.first { $0.way.platform == platform })
    let sending = try view.outcome.get()
    let headers = Dictionary(uniqueKeysWithValues: sending.headers.map { ($0.name, $0.value) })
    return (headers, String(decoding: sending.payload, as: UTF8.self))
  }

  @Test("an application without a credential for a platform sends nothing there, and its packages are its own")
  func application() throws {
    let app = try Self.app(Self.apns + "," + Self.fcm)
    func refusal(_ package: String, _ app: App) -> PushError? {
      ExplainQuestion(
        body: Array(#"{"to":"x","restricted_package_name":"\#(package)"}"#.utf8), configuration: app.configuration, app: app.id,
        now: Self.now
      ).answer().refusal
    }
    #expect(refusal("a.b", app) == .invalidPackageName)
    #expect(refusal("p.one", app) == nil)
    #expect(refusal("p.one", try Self.app(Self.apns)) == .invalidPackageName)
    #expect(refusal("com.example.app", try Self.app(Self.apns)) == .invalidRegistration)
    #expect(refusal("p.one", try Self.app(Self.apns + "," + Self.fcm, id: nil)) == nil)
  }

  @Test(
    "a package is the application's in either shape, and FCM gets the package also if the request names the application",
    arguments: [
      #"{"to":"fcm:x","restricted_package_name":"N","notification":{"title":"t"}}"#,
      #"{"to":"fcm:x","android":{"restricted_package_name":"N"},"notification":{"title":"t"}}"#,
      #"{"message":{"token":"fcm:x","android":{"restricted_package_name":"N"},"notification":{"title":"t"}}}"#,
    ])
  func package(body: String) throws {
    for named in [nil, "com.example.app"] {
      let app = try Self.app(Self.fcm, id: named)
      func explain(_ name: String) -> Explanation {
        ExplainQuestion(
          body: Array(body.replacing("N", with: name).utf8), configuration: app.configuration, app: app.id, now: Self.now
        ).answer()
      }
      for name in ["p.one", "com.example.app"] {
        let sent = try #require(try? explain(name).views.last?.outcome.get().payload)
        #expect(String(decoding: sent, as: UTF8.self).contains(#""restricted_package_name":"p.one""#), "\(sent)")
      }
      #expect(explain("a.b").refusal == (named == nil ? .invalidParameters : .invalidPackageName))
    }
  }

  @Test("the package of another sender is sent as it is, and a foreign one beside the application's is refused")
  func packages() throws {
    let other = #"fcm: { serviceAccount: "none.json", package: "p.two" }"#
    let app = try Self.app(Self.fcm + #", senders: { "222": { \#(other) } }"#)
    func explain(_ names: String) -> Explanation {
      ExplainQuestion(
        body: Array(#"{"to":"fcm:x",\#(names),"notification":{"title":"t"}}"#.utf8), configuration: app.configuration,
        app: app.id,
        now: Self.now
      ).answer()
    }
    for name in ["p.one", "p.two"] {
      let sent = try #require(try? explain(#""restricted_package_name":"\#(name)""#).views.last?.outcome.get().payload)
      #expect(String(decoding: sent, as: UTF8.self).contains(#""restricted_package_name":"\#(name)""#))
    }
    let both = #""restricted_package_name":"com.other","android":{"restricted_package_name":"p.one"}"#
    #expect(explain(both).refusal == .invalidPackageName)
  }

  @Test("the configuration's default priority, limits and topic are the worker's")
  func settings() throws {
    let body = #"{"to":"x:y","notification":{"title":"t"}}"#
    let high = try Self.app(Self.apns + "," + Self.fcm + ", defaultPriority: 'high'", limits: "notification: 4096")
    #expect(try Self.sending(body, high, .apns).headers["apns-priority"] == "10")
    #expect(try Self.sending(body, high, .apns).headers["apns-topic"] == "t.one")
    #expect(try Self.sending(body, high, .fcm).payload.contains(#""priority":"HIGH""#))
    #expect(try Self.sending(body, high, .fcm).payload.contains(#""apns-priority":"10""#))
    let large = #"{"to":"x:y","notification":{"title":"\#(String(repeating: "t", count: 3000))"}}"#
    #expect(try Self.sending(large, high, .fcm).payload.count > 3000)
    let plain = try Self.app(Self.apns)
    #expect(
      ExplainQuestion(body: Array(large.utf8), configuration: plain.configuration, app: plain.id, now: Self.now).answer()
        .refusal == .messageTooBig)
    #expect(try Self.sending(body, plain, .apns).headers["apns-priority"] == "5")
  }

  @Test("time spent in queues is taken off, and android.ttl counts from publication as well")
  func age() throws {
    let app = try Self.app(Self.apns + "," + Self.fcm)
    func ttl(_ options: String, _ age: Int64) throws -> String {
      let payload = try Self.sending(#"{"to":"x:y",\#(options),"notification":{"title":"t"}}"#, app, .fcm, age: age).payload
      return String(payload.split(separator: #""ttl":""#)[1].prefix { $0 != "\"" })
    }
    let both = #""time_to_live":1000,"android":{"ttl":"60s"}"#
    #expect(try ttl(both, 0) == "60s")
    #expect(try ttl(both, 20) == "40s")
    #expect(try ttl(both, 500) == "0s")
    #expect(try ttl(#""time_to_live":100,"android":{"ttl":"600s"}"#, 30) == "570s")
    #expect(try ttl(#""time_to_live":100"#, 30) == "70s")
    let expired = ExplainQuestion(
      body: Array(#"{"to":"x:y","time_to_live":100}"#.utf8), configuration: app.configuration, app: app.id,
      published: Self.now - 101_000, now: Self.now)
    #expect(expired.answer().refusal == .expired)
    let apns = try Self.sending(#"{"to":"x","time_to_live":100,"notification":{"title":"t"}}"#, app, .apns, age: 30)
    #expect(apns.headers["apns-expiration"] == "\(Self.now / 1000 + 70)")
    #expect(
      ExplainQuestion(
        body: expired.body, configuration: app.configuration, app: app.id, published: Self.now - 30_000, now: Self.now
      ).answer().text(withBar: false)
        .contains("published 2026-11-20T21:21:30.000Z, sent 2026-11-20T21:22:00.000Z"))
  }

  @Test("an expiration for tokens of APNs is no lifetime of what goes to Android phones")
  func expirationOfTokens() throws {
    let app = try Self.app(Self.apns + "," + Self.fcm)
    for (expiration, life) in [("0", ""), ("1795600000", ""), ("1795600000", #","time_to_live":100"#)] {
      let apns = #""apns":{"headers":{"apns-expiration":"\#(expiration)"}}"#
      let body = #"{"to":"apns:\#(String(repeating: "0a", count: 32))","notification":{"title":"t"},\#(apns)\#(life)}"#
      #expect(try Self.sending(body, app, .apns).headers["apns-expiration"] == expiration)
      #expect(try Self.sending(body, app, .fcm).payload.contains(#""ttl":"\#(life.isEmpty ? 2_419_200 : 100)s""#))
      #expect(try Self.sending(body, app, .apns).headers["apns-expiration"] == expiration)
    }
  }

  @Test("a sender and an environment are chosen as by the headers, and refused as by a worker")
  func choices() throws {
    let sandbox = #"{ key: "none.p8", keyID: "ABC123DEFG", teamID: "DEF123GHIJ", topic: "t.two", environment: "sandbox" }"#
    let app = try Self.app(
      Self.apns.replacingOccurrences(of: "}]", with: "}, \(sandbox)]") + ", senders: { '42': { apns: \(sandbox) } }")
    func topic(_ sender: String?, _ environment: String?) throws -> String {
      var question = ExplainQuestion(
        body: Array(#"{"to":"x","notification":{"title":"t"}}"#.utf8), configuration: app.configuration, app: app.id,
        sender: sender, environment: environment,
        now: Self.now)
      question.target = Array("apns:00".utf8)
      let answer = question.answer()
      if let rejection = answer.rejection { return rejection.code.rawValue }
      return try answer.views[0].outcome.get().headers[0].value
    }
    #expect(try topic(nil, nil) == "t.one")
    #expect(try topic(nil, "sandbox") == "t.two")
    #expect(try topic(nil, "production") == "t.one")
    #expect(try topic("42", nil) == "t.two")
    #expect(try topic("42", "production") == "InvalidParameters")
    #expect(try topic("43", nil) == "MismatchSenderId")
    #expect(try topic(nil, "staging") == "InvalidParameters")
  }

  @Test("where an application ignores unknown names they are left out, and the report says so")
  func unknownKeys() throws {
    let body =
      #"{"to":"x","priority":"HIGH","message_id":"m","content_available":1,"notification":{"title":"t","vibrate":5},"apns":{"headers":{"apns-id":"123E4567-E89B-12D3-A456-426614174000","authorization":"x"}}}"#
    let strict = try Self.app(Self.apns + "," + Self.fcm)
    let lenient = try Self.app(Self.apns + "," + Self.fcm + ", unknownKeys: 'ignore'")
    #expect(
      ExplainQuestion(body: Array(body.utf8), configuration: strict.configuration, app: strict.id, now: Self.now).answer()
        .refusal == .invalidParameters)
    let apns = try Self.sending(body, lenient, .apns)
    #expect(apns.headers["apns-priority"] == "10" && apns.headers["apns-id"] == "123e4567-e89b-12d3-a456-426614174000")
    #expect(apns.payload == #"{"aps":{"alert":{"title":"t"},"content-available":1}}"#)
    #expect(try !Self.sending(body, lenient, .fcm).payload.contains("authorization"))
    let view = try #require(
      ExplainQuestion(body: Array(body.utf8), configuration: lenient.configuration, app: lenient.id, now: Self.now).answer()
        .views.first)
    let lost = try view.outcome.get().losses.entries.filter { $0.rule == "GS-012" }.map(\.field)
    #expect(lost.sorted() == ["apns.headers.authorization", "message_id", "notification.vibrate"])
  }

  @Test("content that no push has room for: what would help is said where nothing becomes a page")
  func pages() throws {
    func answer(_ settings: String, bytes: Int = 5_000, top: String = "") throws -> Explanation {
      let text = """
        { broker: "amqp://127.0.0.1/", \(top) apps: { "com.example.app": { \(settings) \(Self.apns), \(Self.fcm) } } }
        """
      let file = FileManager.default.temporaryDirectory.appending(path: "explain-\(UUID().uuidString).json5")
      defer { try? FileManager.default.removeItem(at: file) }
      try text.write(to: file, atomically: true, encoding: .utf8)
      let configuration = try Configuration.load(path: file.path, environment: [:])
      let body = #"{"to":"x:y","notification":{"body":"b"},"data":{"ext":"\#(String(repeating: "x", count: bytes))"}}"#
      return ExplainQuestion(body: Array(body.utf8), configuration: configuration, now: Self.now).answer()
    }
    let upmc = "upmc: true,"
    #expect(try answer("").refusal == .messageTooBig && answer("").hint == nil)
    let both = try #require(try answer(upmc).hint)
    #expect(both == "data.ext would be sent as the address of a page if richPages.url and registry were set")
    #expect(
      try answer(upmc, bytes: 4_000).hint == both && answer(upmc, top: "registry: 'sqlite:r',").hint?.contains("and") == false)
    #expect(String(decoding: try answer(upmc).jsonLines[0], as: UTF8.self).contains(#""hint":"data.ext would"#))
    #expect(try answer(upmc).text(withBar: false).hasSuffix("\n\nData.ext" + both.dropFirst(8) + "."))
    let pages = "registry: 'sqlite:r', richPages: { url: 'https://h' },"
    let explained = try answer(upmc, top: pages)
    #expect(explained.refusal == nil && explained.hint == nil)
    for view in explained.views {
      let sending = try view.outcome.get()
      let text = String(decoding: sending.payload, as: UTF8.self)
      #expect(text.contains(#""ext":"https://h/pages/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx""#) && sending.bytes < 400)
      #expect(sending.losses.entries.contains { $0.rule == "UP-21" })
    }
    #expect(try answer(upmc, bytes: 65_537, top: pages).refusal == .messageTooBig)
  }

  @Test("what is for Android only is no push to an iPhone, and no reason to refuse the request")
  func androidOnly() {
    let answer = Self.question(#"{"to":"/topics/a","notification":{"icon":"i"}}"#).answer()
    #expect(answer.refusal == nil && answer.text(withBar: false).contains("not sent: NothingForPlatform"))
    #expect(
      Self.question(#"{"to":"x","notification":{"icon":"i"}}"#, target: "apns:00").answer().refusal == .nothingForPlatform)
  }
}
