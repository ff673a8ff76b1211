import Foundation
import Testing

@testable import PushCore

/// The rules GS-001 … GS-108 of docs/internals/rules.md, each by its id: what a request becomes on an iPhone and on an Android phone.
@Suite struct RuleTests {
  struct Row: CustomTestStringConvertible {
    let rule: String
    let says: String
    /// The request's members beside its target.
    let members: String
    /// Push type, priority, expiration, collapse id, payload; or `refused <code>`. `4W`: four weeks after publishing.
    let apns: String
    /// The v1 message without its token; or `refused <code>`.
    let fcm: String

    var testDescription: String { "\(rule): \(says)" }

    init(_ rule: String, _ says: String, _ members: String, apns: String, fcm: String) {
      self.rule = rule
      self.says = says
      self.members = members
      self.apns = apns
      self.fcm = fcm
    }

    /// Refused alike for both.
    init(_ rule: String, _ says: String, _ members: String, refused code: PushError) {
      self.init(rule, says, members, apns: "refused \(code.rawValue)", fcm: "refused \(code.rawValue)")
    }
  }

  static let silent = #"{"aps":{"content-available":1}}"#
  static let plain = #""android":{"priority":"NORMAL","ttl":"4W"}"#

  static let rows: [Row] = [
    Row(
      "GS-006", "notification and data may stand together", #""notification":{"title":"t"},"data":{"k":"v"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title":"t"}},"k":"v"}"#,
      fcm: #""notification":{"title":"t"},"data":{"k":"v"},\#(plain)"#),
    Row(
      "GS-007", "keys of data are the app's own", #""data":{"alert":"a","badge":"x","title":"t","":"e","雑":"談"}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"alert":"a","badge":"x","title":"t","":"e","雑":"談"}"#,
      fcm: #""data":{"alert":"a","badge":"x","title":"t","":"e","雑":"談"},\#(plain)"#),
    Row(
      "GS-008", "a notification is shown without the app's code", #""notification":{"title":"t","body":"b"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title":"t","body":"b"}}}"#,
      fcm: #""notification":{"title":"t","body":"b"},\#(plain)"#),
    Row(
      "GS-009", "content_available wakes the app for data", #""content_available":true,"data":{"k":"v"}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"k":"v"}"#,
      fcm:
        #""data":{"k":"v"},\#(plain),"apns":{"payload":{"aps":{"content-available":1}}}"#
    ),
    Row(
      "GS-010", "data alone is a background push, for want of GCM's own connection", #""data":{"k":"v"}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"k":"v"}"#, fcm: #""data":{"k":"v"},\#(plain)"#),
    Row("GS-012", "an unknown key is refused", #""titel":"x""#, refused: .invalidParameters),
    Row("GS-012", "in notification too", #""notification":{"titel":"x"}"#, refused: .invalidParameters),
    Row(
      "GS-023", "both parts travel in one message", #""notification":{"body":"b"},"data":{"k":"v"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}},"k":"v"}"#,
      fcm: #""notification":{"body":"b"},"data":{"k":"v"},\#(plain)"#),
    Row(
      "GS-025", "data keys keep names and order", #""data":{"z":"1","a b":"2"}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"z":"1","a b":"2"}"#,
      fcm: #""data":{"z":"1","a b":"2"},\#(plain)"#),
    Row(
      "GS-027", "no key is added to a notification and none dropped", #""notification":{"icon":"i"}"#,
      apns: "refused NothingForPlatform", fcm: #""android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"i"}}"#),
    Row(
      "GS-030", "without a collapse key nothing replaces what the device shows", #""notification":{"body":"b"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#, fcm: #""notification":{"body":"b"},\#(plain)"#),
    Row(
      "GS-033", "a collapse key replaces", #""collapse_key":"score","notification":{"body":"b"}"#,
      apns: #"alert 5 4W score {"aps":{"alert":{"body":"b"}}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"collapse_key":"score","priority":"NORMAL","ttl":"4W"}"#
    ),
    Row("GS-050", "a priority is high or normal", #""priority":"High""#, refused: .invalidParameters),
    Row("GS-050", "and no number", #""priority":5"#, refused: .invalidParameters),
    Row(
      "GS-051", "absent is normal", #""notification":{"body":"b"}"#, apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},\#(plain)"#),
    Row(
      "GS-052", "high goes out at once", #""priority":"high","notification":{"body":"b"}"#,
      apns: #"alert 10 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"HIGH","ttl":"4W"}"#),
    Row(
      "GS-053", "normal may wait", #""priority":"normal","notification":{"body":"b"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},\#(plain)"#),
    Row(
      "GS-054", "normal is 5", #""priority":"normal","notification":{"badge":1}"#, apns: #"alert 5 4W - {"aps":{"badge":1}}"#,
      fcm: #"\#(plain),"apns":{"payload":{"aps":{"badge":1}}}"#),
    Row(
      "GS-054", "high is 10", #""priority":"high","notification":{"badge":1}"#, apns: #"alert 10 4W - {"aps":{"badge":1}}"#,
      fcm:
        #""android":{"priority":"HIGH","ttl":"4W"},"apns":{"payload":{"aps":{"badge":1}}}"#),
    Row(
      "GS-056", "priority holds for both systems", #""priority":"high","data":{"k":"v"}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"k":"v"}"#,
      fcm: #""data":{"k":"v"},"android":{"priority":"HIGH","ttl":"4W"}"#),
    Row(
      "GS-057", "a background push is never sent with 10", #""priority":"high","content_available":true"#,
      apns: "background 5 4W - \(silent)",
      fcm:
        #""android":{"priority":"HIGH","ttl":"4W"},"apns":{"payload":{"aps":{"content-available":1}}}"#
    ),
    Row("GS-060", "not below 0", #""time_to_live":-1"#, refused: .invalidTTL),
    Row("GS-060", "not above four weeks", #""time_to_live":2419201"#, refused: .invalidTTL),
    Row(
      "GS-060", "four weeks are allowed", #""time_to_live":2419200"#, apns: "background 5 4W - \(silent)",
      fcm: #"\#(plain)"#),
    Row("GS-061", "absent is four weeks", "", apns: "background 5 4W - \(silent)", fcm: plain),
    Row(
      "GS-062", "the minute spent queued is taken off", #""time_to_live":90"#, apns: "background 5 1795209750 - \(silent)",
      fcm: #""android":{"priority":"NORMAL","ttl":"30s"}"#),
    Row(
      "GS-063", "0 is now or never", #""time_to_live":0"#, apns: "background 5 0 - \(silent)",
      fcm: #""android":{"priority":"NORMAL","ttl":"0s"}"#),
    Row(
      "GS-066", "a lifetime holds for iPhones too", #""time_to_live":600,"notification":{"body":"b"}"#,
      apns: #"alert 5 1795210260 - {"aps":{"alert":{"body":"b"}}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"540s"}"#
    ),
    Row(
      "GS-067", "three seconds with delay_while_idle are valid",
      #""collapse_key":"demo","delay_while_idle":true,"time_to_live":3,"data":{"k":"v"}"#,
      apns: #"background 5 0 demo {"aps":{"content-available":1},"k":"v"}"#,
      fcm:
        #""data":{"k":"v"},"android":{"collapse_key":"demo","priority":"NORMAL","ttl":"0s"}"#
    ),
    Row(
      "GS-072", "delay_while_idle is a hint for normal priority", #""delay_while_idle":true,"notification":{"body":"b"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#, fcm: #""notification":{"body":"b"},\#(plain)"#),
    Row(
      "GS-071", "without it a message in high priority goes at once",
      #""delay_while_idle":false,"priority":"high","notification":{"body":"b"}"#,
      apns: #"alert 10 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"HIGH","ttl":"4W"}"#),
    Row(
      "GS-091", "localisation keys work on both",
      #""notification":{"title_loc_key":"T","title_loc_args":["a"],"body_loc_key":"B","body_loc_args":["b","c"]}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title-loc-key":"T","title-loc-args":["a"],"loc-key":"B","loc-args":["b","c"]}}}"#,
      fcm:
        #""android":{"priority":"NORMAL","ttl":"4W","notification":{"title_loc_key":"T","title_loc_args":["a"],"body_loc_key":"B","body_loc_args":["b","c"]}},"apns":{"payload":{"aps":{"alert":{"title-loc-key":"T","title-loc-args":["a"],"loc-key":"B","loc-args":["b","c"]}}}}"#
    ),
    Row(
      "GS-092", "null arguments are absent", #""notification":{"title":"t","title_loc_args":null,"body_loc_args":null}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title":"t"}}}"#, fcm: #""notification":{"title":"t"},\#(plain)"#),
    Row(
      "GS-093", "a string that holds an array is the array", #""notification":{"body_loc_key":"B","body_loc_args":"[\"x\"]"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"loc-key":"B","loc-args":["x"]}}}"#,
      fcm:
        #""android":{"priority":"NORMAL","ttl":"4W","notification":{"body_loc_key":"B","body_loc_args":["x"]}},"apns":{"payload":{"aps":{"alert":{"loc-key":"B","loc-args":["x"]}}}}"#
    ),
    Row("GS-093", "a string that holds none is refused", #""notification":{"body_loc_args":"x"}"#, refused: .invalidParameters),
    Row(
      "GS-094", "all arguments pass, however many the text uses",
      #""notification":{"body_loc_key":"B","body_loc_args":["1","2","3"]}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"loc-key":"B","loc-args":["1","2","3"]}}}"#,
      fcm:
        #""android":{"priority":"NORMAL","ttl":"4W","notification":{"body_loc_key":"B","body_loc_args":["1","2","3"]}},"apns":{"payload":{"aps":{"alert":{"loc-key":"B","loc-args":["1","2","3"]}}}}"#
    ),
    Row(
      "GS-095", "numbers among them become strings", #""notification":{"body_loc_key":"B","body_loc_args":[2,"3"]}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"loc-key":"B","loc-args":["2","3"]}}}"#,
      fcm:
        #""android":{"priority":"NORMAL","ttl":"4W","notification":{"body_loc_key":"B","body_loc_args":["2","3"]}},"apns":{"payload":{"aps":{"alert":{"loc-key":"B","loc-args":["2","3"]}}}}"#
    ),
    Row(
      "GS-096", "a badge's string becomes a number, for iPhones only", #""notification":{"body":"b","badge":"2"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"},"badge":2}}"#,
      fcm: #""notification":{"body":"b"},\#(plain),"apns":{"payload":{"aps":{"badge":2}}}"#),
    Row(
      "GS-096", "0 clears it", #""notification":{"badge":"0"}"#, apns: #"alert 5 4W - {"aps":{"badge":0}}"#,
      fcm: #"\#(plain),"apns":{"payload":{"aps":{"badge":0}}}"#),
    Row("GS-096", "an empty badge is refused", #""notification":{"badge":""}"#, refused: .invalidParameters),
    Row("GS-096", "so is a word", #""notification":{"badge":"x"}"#, refused: .invalidParameters),
    Row(
      "GS-097", "a sound is for both", #""notification":{"body":"b","sound":"default"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"},"sound":"default"}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"sound":"default"}},"apns":{"payload":{"aps":{"sound":"default"}}}"#
    ),
    Row(
      "GS-098", "an icon is Android's", #""notification":{"body":"b","icon":"i"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"icon":"i"}}"#),
    Row(
      "GS-099", "a colour is Android's", ##""notification":{"body":"b","color":"#fb9200"}"##,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: ##""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"color":"#fb9200"}}"##),
    Row("GS-099", "and has six digits", ##""notification":{"color":"#fb92"}"##, refused: .invalidParameters),
    Row(
      "GS-100", "a click action goes into Android's Intent", #""notification":{"body":"b","click_action":"OPEN"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"},"category":"OPEN"}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"click_action":"OPEN"}},"apns":{"payload":{"aps":{"category":"OPEN"}}}"#
    ),
    Row(
      "GS-101", "and is the category on an iPhone", #""notification":{"title":"t","click_action":"c"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title":"t"},"category":"c"}}"#,
      fcm:
        #""notification":{"title":"t"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"click_action":"c"}},"apns":{"payload":{"aps":{"category":"c"}}}"#
    ),
    Row(
      "GS-103", "a tag replaces on Android", #""notification":{"body":"b","tag":"r300"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"tag":"r300"}}"#),
    Row(
      "GS-105", "and never on an iPhone by itself", #""collapse_key":"k","notification":{"body":"b","tag":"t"}"#,
      apns: #"alert 5 4W k {"aps":{"alert":{"body":"b"}}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"collapse_key":"k","priority":"NORMAL","ttl":"4W","notification":{"tag":"t"}}"#
    ),
    Row(
      "GS-106", "one letter is enough", #""notification":{"body":"b","click_action":"N"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"},"category":"N"}}"#,
      fcm:
        #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"click_action":"N"}},"apns":{"payload":{"aps":{"category":"N"}}}"#
    ),
    Row(
      "GS-107", "data goes along with its own keys", #""notification":{"title_loc_key":"T"},"data":{"type":"r","rid":"300"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title-loc-key":"T"}},"type":"r","rid":"300"}"#,
      fcm:
        #""data":{"type":"r","rid":"300"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"title_loc_key":"T"}},"apns":{"payload":{"aps":{"alert":{"title-loc-key":"T"}}}}"#
    ),
    Row(
      "GS-108", "other scripts survive byte for byte", #""notification":{"body":"雑談部屋","title":"\u96d1"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"title":"雑","body":"雑談部屋"}}}"#,
      fcm: #""notification":{"title":"雑","body":"雑談部屋"},\#(plain)"#),
    // The server references' keys that no GS rule names (FCM legacy HTTP reference; FCM HTTP v1 API).
    Row(
      "F-REF", "subtitles are the iPhone's", #""notification":{"body":"b","subtitle":"s"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"subtitle":"s","body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},\#(plain),"apns":{"payload":{"aps":{"alert":{"subtitle":"s","body":"b"}}}}"#),
    Row(
      "F-REF", "a channel is Android's", #""notification":{"body":"b","android_channel_id":"c"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"}}}"#,
      fcm: #""notification":{"body":"b"},"android":{"priority":"NORMAL","ttl":"4W","notification":{"channel_id":"c"}}"#),
    Row(
      "F-REF", "mutable_content is the iPhone's", #""mutable_content":true,"notification":{"body":"b"}"#,
      apns: #"alert 5 4W - {"aps":{"alert":{"body":"b"},"mutable-content":1}}"#,
      fcm: #""notification":{"body":"b"},\#(plain),"apns":{"payload":{"aps":{"mutable-content":1}}}"#),
    Row(
      "F-REF", "other types of data become strings", #""data":{"n":5,"o":{"a":[1]},"z":null}"#,
      apns: #"background 5 4W - {"aps":{"content-available":1},"n":"5","o":"{\"a\":[1]}"}"#,
      fcm: #""data":{"n":"5","o":"{\"a\":[1]}"},\#(plain)"#),
    Row(
      "F-REF", "a package name is checked by Android", #""restricted_package_name":"com.example.app""#,
      apns: "background 5 4W - \(silent)",
      fcm: #""android":{"priority":"NORMAL","ttl":"4W","restricted_package_name":"com.example.app"}"#),
    Row("F-REF", "a reserved key of data is refused", #""data":{"google.ttl":"1"}"#, refused: .invalidDataKey),
    Row(
      "F-REF", "a critical sound is a dictionary of numbers",
      #""notification":{"sound":{"critical":true,"name":"n","volume":0.5}}"#,
      apns: #"alert 5 4W - {"aps":{"sound":{"critical":1,"name":"n","volume":0.5}}}"#,
      fcm:
        #""android":{"priority":"NORMAL","ttl":"4W","notification":{"sound":"n"}},"apns":{"payload":{"aps":{"sound":{"critical":1,"name":"n","volume":0.5}}}}"#
    ),
    Row(
      "GS-034", "a collapse key that is too long for iPhones stays another than those that begin alike",
      #""collapse_key":"\#(String(repeating: "雑", count: 22))""#,
      apns: "background 5 4W \(String(repeating: "雑", count: 14))~9r5edmk2mefe9jr99b3g \(silent)",
      fcm:
        #""android":{"collapse_key":"\#(String(repeating: "雑", count: 22))","priority":"NORMAL","ttl":"4W"}"#
    ),
  ]

  @Test("each rule holds on both systems", arguments: rows)
  func holds(row: Row) throws {
    let fourWeeks = String((testNow - 60_000) / 1000 + 2_419_200)
    let onPhone = Self.outcome(row.members, to: apnsToken) { request throws(Rejection) in
      let push = try apns(request)
      return
        "\(utf8(push.pushType)) \(push.priority) \(push.expiration) \(push.collapseID.map(utf8) ?? "-") \(utf8(push.payload))"
    }
    #expect(onPhone == row.apns.replacingOccurrences(of: " 4W ", with: " \(fourWeeks) "))
    let onAndroid = Self.outcome(row.members, to: "fcm:T:1") { request throws(Rejection) in try fcm(request) }
    guard !row.fcm.hasPrefix("refused") else {
      #expect(onAndroid == row.fcm)
      return
    }
    let message = row.fcm.replacingOccurrences(of: #""4W""#, with: #""2419140s""#)
    let expected = try withApple(message, accepted(row.members, to: "fcm:T:1"))
    #expect(onAndroid == #"{"message":{\#(expected),"token":"T:1"}}"#)
  }

  static func outcome(_ members: String, to target: String, _ translate: (SendRequest) throws(Rejection) -> String) -> String {
    let body = #"{"to":"\#(target)"\#(members.isEmpty ? "" : ",")\#(members)}"#
    do throws(Rejection) {
      return try translate(try SendRequest(parsing: Array(body.utf8)))
    } catch {
      return "refused \(error.code.rawValue)"
    }
  }

  // MARK: Rules about the target, sizes and the whole of a request

  @Test("GS-001: a request without a target is refused")
  func noTarget() {
    #expect(code(parse(#"{"notification":{"body":"b"}}"#)) == .missingRegistration)
    #expect(code(parse(#"{"message":{"notification":{"body":"b"}}}"#)) == .missingRegistration)
  }

  @Test("GS-002, GS-003: `to` is a token, a topic or a notification key, told apart by their forms alone")
  func targets() throws {
    let key = RegistryID.make(.group, high: 1, low: 2)
    #expect(try parsed(#"{"to":"/topics/news"}"#).targets == .one(.topic(Array("news".utf8))))
    #expect(try parsed(#"{"to":"\#(utf8(key))"}"#).targets == .one(.group(key)))
    #expect(try parsed(#"{"to":"\#(apnsToken)"}"#).targets == .one(.apns(token: Array(apnsToken.utf8)[...])))
    #expect(try parsed(#"{"to":"x:y"}"#).targets == .one(.fcm(token: Array("x:y".utf8)[...])))
  }

  @Test("GS-090: the one body of the practice article is correct on both systems")
  func both() throws {
    #expect(FixtureTranslationTests.onAPNs.contains { $0.0 == "seed004-both-systems.json" })
    #expect(FixtureTranslationTests.onFCM.contains { $0.0 == "seed004-both-systems.json" })
    let body = try fixture("seed004-both-systems.json", to: apnsToken)
    #expect(utf8(try apns(parsed(body)).payload).contains(#""loc-args":["雑談部屋","2"]"#))
    #expect(try fcm(parsed(body)).contains(#""body_loc_args":["雑談部屋","2"]"#))
  }

  @Test("docs/internals/rules.md names existing tests for each rule, or says why there is none")
  func complete() throws {
    let tests = try Self.tests()
    #expect(tests.count > 500)
    let page = try String(contentsOf: DocumentationTests.folder.appendingPathComponent("internals/rules.md"), encoding: .utf8)
    var heldHere: Set<String> = []
    for row in page.split(separator: "\n") where row.hasPrefix("| GS-") || row.hasPrefix("| UP-") {
      let columns = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard columns.count == 3 else {
        Issue.record("\(row)")
        continue
      }
      let names = columns[2].matches(of: /`(\w+\.\w+)`/).map { String($0.1) }
      #expect(tests.isSuperset(of: names), "\(columns[0]): \(Set(names).subtracting(tests))")
      #expect(!names.isEmpty || columns[2].hasPrefix("not tested: "), "\(columns[0]): \(columns[2])")
      if names.contains("RuleTests.holds") { heldHere.insert(columns[0]) }
    }
    #expect(heldHere == Set(Self.rows.map(\.rule)).subtracting(["F-REF"]))
  }

  /// The functions with tests in them, each by its file's suite.
  private static func tests() throws -> Set<String> {
    let folder = DocumentationTests.folder.deletingLastPathComponent().appendingPathComponent("Tests")
    var tests: Set<String> = []
    let names = FileManager.default.enumerator(atPath: folder.path)
    while let name = names?.nextObject() as? String {
      guard name.hasSuffix("Tests.swift") else { continue }
      let suite = URL(fileURLWithPath: name).deletingPathExtension().lastPathComponent
      let text = try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
      guard text.contains("struct \(suite)") else { continue }
      for part in text.components(separatedBy: "@Test").dropFirst() {
        if let function = part.firstMatch(of: /\n *(?:mutating )?func (\w+)/) { tests.insert("\(suite).\(function.1)") }
      }
    }
    return tests
  }
}
