import Foundation
import TestSupport
import Testing

/// A request that must end in the dead letters, with the expected reason.
struct BadInput {
  var name: String
  var error: String
  /// Words that the reason must have: the place and the rule.
  var reason: String
  /// With Python's backslash escapes.
  var body: String
  var properties: [String: Any] = [:]

  init(_ name: String, _ error: String, _ reason: String, _ body: String, _ properties: [String: Any] = [:]) {
    self.name = name
    self.error = error
    self.reason = reason
    self.body = body
    self.properties = properties
  }
}

@Suite("Bad input", .blocking)
struct BadInputTests {
  private static let to = #""to":"\#(token(9))""#

  static var malformed: [BadInput] {
    [
      BadInput("malformed", "InvalidJSON", "at byte", #"{"to":}"#),
      BadInput("truncated", "InvalidJSON", "at byte", #"{"to":"ab"#),
      BadInput("empty", "InvalidJSON", "at byte 0", ""),
      BadInput("trailing", "InvalidJSON", "at byte", "{\(to)}}"),
      BadInput("spaces", "InvalidJSON", "at byte", String(repeating: " ", count: 400_000)),
      BadInput("not an object", "InvalidJSON", "object", "[1]"),
      BadInput("not UTF-8", "InvalidJSON", "UTF-8", #"{"to":"\xff"}"#),
      BadInput("overlong", "InvalidJSON", "UTF-8", #"{"to":"\xc0\xaf"}"#),
      BadInput("lone surrogate", "InvalidJSON", "surrogate", #"{"to":"\\ud800"}"#),
      BadInput("byte-order mark", "InvalidJSON", "byte-order mark", #"\xef\xbb\xbf{\#(to)}"#),
      BadInput("UTF-16", "InvalidJSON", "byte", #"\xff\xfe{\x00}\x00"#),
      BadInput("UTF-16 without a mark", "InvalidJSON", "byte", #"{\x00}\x00"#),
      BadInput("500 deep", "InvalidJSON", "levels", #"{"data":"# + nested(500) + "}"),
      BadInput("33 deep", "InvalidJSON", "levels", #"{"data":"# + nested(32) + "}"),
      BadInput("bomb", "InvalidJSON", "levels", String(repeating: "[", count: 3_000)),
      BadInput("duplicate keys", "InvalidJSON", #"duplicate key "to""#, "{\(to),\(to)}"),
      BadInput("NaN", "InvalidJSON", "at byte", "{\(to),\"time_to_live\":NaN}"),
      BadInput("1 MB", "MessageTooBig", "the limit is", #"{"to":""# + String(repeating: "a", count: 1_000_000) + #""}"#),
      BadInput("5 MB", "MessageTooBig", "the limit is", #"{"to":""# + String(repeating: "a", count: 5_000_000) + #""}"#),
    ]
  }

  static var wrongValues: [BadInput] {
    [
      BadInput("1e999", "InvalidTtl", "time_to_live", "{\(to),\"time_to_live\":1e999}"),
      BadInput("26 digits", "InvalidTtl", "time_to_live", "{\(to),\"time_to_live\":99999999999999999999999999}"),
      BadInput("2^63", "InvalidTtl", "time_to_live", "{\(to),\"time_to_live\":9223372036854775808}"),
      BadInput("negative", "InvalidTtl", "time_to_live", "{\(to),\"time_to_live\":-1}"),
      BadInput("four weeks and a second", "InvalidTtl", "2419200", "{\(to),\"time_to_live\":2419201}"),
      BadInput("to is a number", "InvalidParameters", "to", #"{"to":5}"#),
      BadInput("list is a string", "InvalidParameters", "registration_ids", #"{"registration_ids":"x"}"#),
      BadInput("list of numbers", "InvalidParameters", "registration_ids", #"{"registration_ids":[1]}"#),
      BadInput("notification is a list", "InvalidParameters", "notification", "{\(to),\"notification\":[]}"),
      BadInput("badge too large", "InvalidParameters", "badge", "{\(to),\"notification\":{\"badge\":1e999}}"),
      BadInput("priority", "InvalidParameters", "priority", "{\(to),\"priority\":\"urgent\"}"),
      BadInput("unknown key", "InvalidParameters", "unknown key", "{\(to),\"colour\":1}"),
      BadInput("two targets", "InvalidParameters", "second target", "{\(to),\"registration_ids\":[\"\(token(8))\"]}"),
      BadInput("no target", "MissingRegistration", "no target", #"{"data":{"a":"b"}}"#),
      BadInput("empty target", "MissingRegistration", "to", #"{"to":""}"#),
      BadInput("empty list", "MissingRegistration", "registration_ids", #"{"registration_ids":[]}"#),
      BadInput("1,001 targets", "InvalidParameters", "1001", list(of: 1001)),
      BadInput("CR LF", "InvalidRegistration", "to", #"{"to":"apns:ab\\r\\nx: y"}"#),
      BadInput("NUL", "InvalidRegistration", "to", #"{"to":"apns:ab\\u0000cd"}"#),
      BadInput("ESC", "InvalidRegistration", "to", #"{"to":"\\u001b[31m"}"#),
      BadInput("climbing", "InvalidRegistration", "to", #"{"to":"apns:../../3/channels"}"#),
      BadInput("climbing, escaped", "InvalidRegistration", "to", #"{"to":"apns:%2e%2e%2f"}"#),
      BadInput("a query", "InvalidRegistration", "to", #"{"to":"apns:\#(token(9))?x=y#z"}"#),
      BadInput("odd digits", "InvalidRegistration", "to", #"{"to":"apns:\#(token(9))0"}"#),
      BadInput("reserved key", "InvalidDataKey", "from", "{\(to),\"data\":{\"from\":\"x\"}}"),
      BadInput("reserved prefix", "InvalidDataKey", "google.x", "{\(to),\"data\":{\"google.x\":\"x\"}}"),
      BadInput(
        "oversized data", "MessageTooBig", "data", "{\(to),\"data\":{\"k\":\"\(String(repeating: "x", count: 4_096))\"}}"),
      BadInput(
        "oversized text", "MessageTooBig", "notification",
        "{\(to),\"notification\":{\"body\":\"\(String(repeating: "x", count: 2_049))\"}}"),
      BadInput(
        "oversized payload", "MessageTooBig", "4096",
        "{\(to),\"notification\":{\"body\":\"\(String(repeating: "x", count: 2_000))\"},\"data\":{\"k\":\"\(String(repeating: "x", count: 2_090))\"}}"
      ),
      BadInput(
        "another package", "InvalidPackageName", "restricted_package_name", "{\(to),\"restricted_package_name\":\"com.other\"}"),
      BadInput("FCM token", "MismatchSenderId", "FCM", #"{"to":"fcm:abc:DEF"}"#),
      BadInput("raw FCM token", "MismatchSenderId", "FCM", #"{"to":"bk3RNwTe3H0:CI2k_HHwgIpoDKCIZvvDMExUdFQ3P1"}"#),
      BadInput("installation", "MismatchSenderId", "FCM", #"{"to":"fid:cXyZ0123456789_-AbCdEf"}"#),
      BadInput("FCM's topic", "MismatchSenderId", "FCM", #"{"to":"fcm:/topics/news"}"#),
      BadInput("short installation", "InvalidRegistration", "to", #"{"to":"fid:cXyZ0123456789_-AbCdE"}"#),
      BadInput(
        "fid and token", "InvalidParameters", "message.fid", #"{"message":{"fid":"cXyZ0123456789_-AbCdEf","token":"x"}}"#),
      BadInput("FCM's topic's name", "InvalidRegistration", "to", #"{"to":"fcm:/topics/a b"}"#),
      BadInput(
        "android twice", "InvalidParameters", "android_v2", "{\(to),\"android\":{},\"android_v2\":{\"background_sync\":{}}}"),
      BadInput("topic", "InvalidParameters", "registry", #"{"to":"/topics/news"}"#),
      BadInput("condition", "InvalidParameters", "registry", #"{"condition":"'a' in topics"}"#),
      BadInput("group", "InvalidParameters", "registry", #"{"to":"pf1g~01234567890123456789abcdef"}"#),
      BadInput("registration", "InvalidParameters", "registry", #"{"to":"pf1r~01234567890123456789abcdef"}"#),
    ]
  }

  static var wrongProperties: [BadInput] {
    let body = "{\(to)}"
    return [
      BadInput("content type", "InvalidParameters", "content_type", body, ["content_type": "text/plain"]),
      BadInput(
        "other charset", "InvalidParameters", "content_type", body, ["content_type": "application/json; charset=UTF-16"]),
      BadInput(
        "another charset after a tab", "InvalidParameters", "content_type", body,
        ["content_type": "application/json;\tcharset=latin1"]),
      BadInput("split content type", "InvalidParameters", "content_type", body, ["content_type": "appl ication/json"]),
      BadInput("gzip", "InvalidParameters", "content_encoding", #"\x1f\x8b\x08\x00"#, ["content_encoding": "gzip"]),
      BadInput("unknown app", "InvalidParameters", "app_id", body, ["app_id": "com.example.other"]),
      BadInput("hostile app", "InvalidParameters", "app_id", body, ["app_id": "a\r\n\u{1B}[31m../x"]),
      BadInput("long app", "InvalidParameters", "app_id", body, ["app_id": String(repeating: "a", count: 255)]),
      BadInput("unknown sender", "MismatchSenderId", "x-push-sender", body, ["headers": ["x-push-sender": "42"]]),
      BadInput(
        "headers that fill a frame", "InvalidParameters", "headers: 130821 bytes, the limit is 16384", body,
        ["headers": ["own": String(repeating: "h", count: 130_800), "other": "x"]]),
      BadInput(
        "a sender that fills a frame", "InvalidParameters", "the limit is 16384", body,
        ["headers": ["x-push-sender": String(repeating: "h", count: 130_900)]]),
      BadInput(
        "a large unknown sender", "MismatchSenderId", "x-push-sender", body,
        ["headers": ["x-push-sender": String(repeating: "h", count: 16_000)]]),
      BadInput("forged record", "InvalidRegistration", "to", #"{"registration_ids":["../x"]}"#, forged([3, 0, 0, 0, 0, 0, 1])),
    ]
  }

  private static func nested(_ depth: Int) -> String {
    String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
  }

  private static func list(of count: Int) -> String {
    #"{"registration_ids":["# + (0..<count).map { "\"\(token($0))\"" }.joined(separator: ",") + "]}"
  }

  /// Headers of a request that says it has been on the ladder.
  private static func forged(_ settled: [UInt8]) -> [String: Any] {
    [
      "headers": [
        "x-push-retry-attempts": 1, "x-push-retry-deadline": 4_000_000_000_000,
        "x-push-retry-settled": String(decoding: settled, as: UTF8.self),
      ]
    ]
  }

  @Test("each bad request is a dead letter with code, place and rule, and the good one after it is delivered")
  func deadLetters() throws {
    let site = try Site()
    try site.startSimulator(settings: #"results: "failures","#)
    try site.declareTopology()
    let inputs = Self.malformed + Self.wrongValues + Self.wrongProperties
    var messages: [(body: Any, properties: [String: Any])] = []
    for (index, input) in inputs.enumerated() {
      let own: [String: Any] = ["message_id": input.name, "correlation_id": "c\(index)"]
      messages.append((input.body, own.merging(input.properties) { $1 }))
      messages.append((#"{"to":"\#(token(1000 + index))","data":{"k":"v"}}"#, ["message_id": "good \(index)"]))
    }
    try site.publish(messages, isEscaped: true)
    let figures = try site.drain()
    #expect(figures["delivered"] as? Int == inputs.count && figures["failed"] as? Int == inputs.count)
    #expect(try Set(site.deliveries().keys) == Set(inputs.indices.map { token(1000 + $0) }))

    let letters = Dictionary(grouping: try site.take("dead"), by: \.id)
    let results = Dictionary(grouping: try site.take("results"), by: \.id)
    #expect(letters.count == inputs.count && results.count == inputs.count)
    for (index, input) in inputs.enumerated() {
      let found = letters[input.name] ?? []
      #expect(found.count == 1, "\(input.name)")
      guard let letter = found.first else { continue }
      let reason = letter.header("x-push-reason") ?? ""
      #expect(letter.header("x-push-error") == input.error, "\(input.name): \(reason)")
      #expect(reason.contains(input.reason), "\(input.name): \(reason)")
      #expect(reason.utf8.count <= 512 && !reason.contains(where: { $0.isNewline }), "\(input.name): \(reason)")
      #expect(letter.properties["correlation_id"] as? String == "c\(index)")
      if input.name == "5 MB" {
        #expect(letter.header("x-push-truncated-from") == "5000009" && letter.body.utf8.count == 4 << 20)
      } else if !input.body.contains("\\") {
        #expect(letter.body == input.body, "\(input.name)")
      }
      let result = results[input.name]?.first?.json
      #expect(result?["app"] as? String == input.properties["app_id"] as? String ?? Site.app)
      #expect((result?["results"] as? [[String: String]])?.first == ["error": input.error, "reason": reason], "\(input.name)")
    }
    #expect(letters["content type"]?.first?.properties["content_type"] as? String == "text/plain")
    #expect(try site.depths(["feedback", "send.normal", "send.high"]) == [0, 0, 0])
  }

  @Test("unusual but valid properties change nothing")
  func oddProperties() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let now = Int(Date().timeIntervalSince1970)
    let odd: [[String: Any]] = [
      ["timestamp": 0], ["timestamp": 253_402_300_800], ["timestamp": now], ["timestamp": now - 86_400],
      ["expiration": "60000"], ["priority": 255], ["reply_to": "nobody.there.\(site.prefix)"], ["app_id": ""],
      ["message_id": ""], ["message_id": "a/b c<d>ü"], ["content_type": "Application/JSON; charset=utf-8"],
      ["content_encoding": "utf-8"], ["type": "x", "correlation_id": String(repeating: "c", count: 255)],
      ["headers": ["a": ["b": ["c": ["d": [1, ["e": "f"]]]]], "n": 1, "t": true, "x-death": [["count": 5]]]],
      ["headers": ["own": String(repeating: "h", count: 16_375)]],
      ["headers": ["x-push-retry-attempts": 99_999, "x-push-retry-deadline": -1]],
      ["headers": ["x-push-origin": "fanout.high", "x-push-error": "Unavailable"]],
      ["headers": [String(repeating: "ü", count: 120): "x"]],
    ]
    try site.publish(
      odd.enumerated().map { (#"{"to":"\#(token($0))","data":{"k":"v"}}"#, ["message_id": "odd \($0)"].merging($1) { $1 }) })
    let figures = try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: odd.indices.map { (token($0), 1) }))
    #expect(figures["failed"] as? Int == 0 && figures["dead_letters"] as? Int == 0)
    #expect(try site.pushes().allSatisfy { $0.violations.isEmpty })
  }
}
