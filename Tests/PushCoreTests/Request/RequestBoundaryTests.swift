import PushCore
import Testing

/// Both sides of every limit of a request.
@Suite struct RequestBoundaryTests {
  @Test(
    "a lifetime is an integer from 0 to four weeks, as a number or as its digits",
    arguments: [
      ("0", 0), ("2419200", 2_419_200), ("600.0", 600), ("6e2", 600), ("-0", 0), (#""600""#, 600), (#""0""#, 0), ("-1", nil),
      ("2419201", nil),
      ("1.5", nil), ("1e999", nil), ("9223372036854775808", nil), ("99999999999999999999999999", nil), (#""""#, nil),
      (#""-1""#, nil), (#""+1""#, nil),
      (#"" 1""#, nil), (#""1.0""#, nil), (#""2419201""#, nil), (#""99999999999999999999""#, nil), ("true", nil), ("[]", nil),
      ("{}", nil),
    ] as [(String, Int?)])
  func timeToLive(value: String, seconds: Int?) {
    let result = request(#""time_to_live": \#(value)"#)
    #expect(code(result) == (seconds == nil ? .invalidTTL : nil))
    #expect((try? result.get().timeToLive) == seconds)
  }

  @Test(
    "2,048 bytes of notification are accepted, one more is too big; UTF-8 is counted, not characters or escapes",
    arguments: [
      (String(repeating: "n", count: 2043), nil), (String(repeating: "n", count: 2044), .messageTooBig),
      (String(repeating: "雑", count: 681), nil), (String(repeating: "雑", count: 681) + "n", .messageTooBig),
      (String(repeating: "\\u96d1", count: 681), nil), (String(repeating: "\\u96d1", count: 682), .messageTooBig),
      (String(repeating: "\\uD83D\\uDE00", count: 510) + "abc", nil),
      (String(repeating: "\\uD83D\\uDE00", count: 510) + "abcd", .messageTooBig),
    ] as [(String, PushError?)])
  func notification(title: String, expected: PushError?) {
    #expect(code(request(#""notification": {"title": "\#(title)", "body": null}"#)) == expected)
  }

  @Test("in FCM v1's shape a notification is limited by FCM's total")
  func v1Notification() {
    func body(_ bytes: Int) -> Result<SendRequest, Rejection> {
      parse(#"{"message":{"token":"x","notification":{"body":"\#(String(repeating: "b", count: bytes - 4))"}}}"#)
    }
    #expect(code(body(2_049)) == nil && code(body(4_096)) == nil && code(body(4_097)) == .messageTooBig)
  }

  @Test("ignored names have no size")
  func ignoredNames() {
    var limits = RequestLimits()
    limits.ignoresUnknownNames = true
    func result(_ title: Int) -> Result<SendRequest, Rejection> {
      let body = #"{"to":"fcm:x","notification":{"title":"\#(String(repeating: "n", count: title))","own":"123"}}"#
      return SendRequest.parse(Array(body.utf8), limits: limits)
    }
    #expect(code(result(2_043)) == nil && code(result(2_044)) == .messageTooBig)
  }

  @Test("4,096 bytes of data are accepted for a device, 2,048 for a topic or a condition; one more is too big")
  func data() {
    func body(_ target: String, _ bytes: Int) -> Result<SendRequest, Rejection> {
      parse("{\(target), \"data\": {\"k\": \"\(String(repeating: "v", count: bytes - 1))\"}}")
    }
    let device = #""to": "fcm:x""#
    #expect(code(body(device, 4096)) == nil)
    #expect(code(body(device, 4097)) == .messageTooBig)
    #expect(code(body(#""registration_ids": ["x"]"#, 4096)) == nil)
    #expect(code(body(#""registration_ids": ["x"]"#, 4097)) == .messageTooBig)
    for target in [#""to": "/topics/a""#, #""condition": "'a' in topics""#] {
      #expect(code(body(target, 2048)) == nil)
      #expect(code(body(target, 2049)) == .messageTooBig)
    }
    var limits = RequestLimits()
    limits.dataBytes = 10
    #expect(code(SendRequest.parse(Array(#"{"to":"x","data":{"k":"123456789"}}"#.utf8), limits: limits)) == nil)
    #expect(code(SendRequest.parse(Array(#"{"to":"x","data":{"k":"1234567890"}}"#.utf8), limits: limits)) == .messageTooBig)
    #expect(code(SendRequest.parse(Array(#"{"to":"x","data":{"k":[ 1, 2,3,4]}}"#.utf8), limits: limits)) == nil)
    #expect(code(SendRequest.parse(Array(#"{"to":"x","data":{"k":[1,2,3,40]}}"#.utf8), limits: limits)) == .messageTooBig)
  }

  @Test("1,000 registration ids are accepted, 1,001 are too many, none is no target")
  func registrationIDs() throws {
    func list(_ count: Int) -> Result<SendRequest, Rejection> {
      parse("{\"registration_ids\": [\((0..<count).map { "\"t\($0)\"" }.joined(separator: ","))]}")
    }
    guard case .list(let targets) = try list(1000).get().targets else {
      Issue.record("not a list")
      return
    }
    #expect(targets.count == 1000)
    #expect(targets[999] == .fcm(token: Array("t999".utf8)[...]))
    #expect(code(list(1001)) == .invalidParameters)
    #expect(code(list(0)) == .missingRegistration)
  }

  @Test(
    "badge is an integer from 0, as a number or as its digits",
    arguments: [
      ("0", 0), ("\"0\"", 0), ("\"2\"", 2), ("2147483647", 2_147_483_647), ("1.0", 1), ("2147483648", nil), ("-1", nil),
      ("\"-1\"", nil), ("\"\"", nil),
      ("\"x\"", nil), ("1.5", nil), ("true", nil), ("[]", nil), ("1e999", nil), ("\"99999999999999999999\"", nil),
      ("\"\\u0032\"", 2),
    ] as [(String, Int?)])
  func badge(value: String, number: Int?) {
    let result = request(#""notification": {"badge": \#(value)}"#)
    #expect(code(result) == (number == nil ? .invalidParameters : nil))
    #expect((try? result.get().count(.badge)) == number)
  }

  @Test("a badge is counted for auto only; the reason names the place")
  func automaticBadge() throws {
    guard case .automatic? = try request(#""notification": {"badge": "auto"}"#).get().badge else {
      Issue.record("not counted")
      return
    }
    for wrong in [#""Auto""#, #""AUTO""#, #"" auto""#, #""auto ""#, #""automatic""#, #"["auto"]"#, #"{"auto": true}"#] {
      let result = request(#""notification": {"badge": \#(wrong)}"#)
      #expect(code(result) == .invalidParameters && reason(result).hasPrefix("notification.badge: "), "\(reason(result))")
    }
    #expect(try request(#""notification": {"badge": null}"#).get().badge == nil)
    for block in [
      #""apns": {"payload": {"aps": {"badge": "auto"}}}"#, #""android": {"notification": {"notification_count": "x"}}"#,
    ] {
      let result = request(block)
      #expect(code(result) == .invalidParameters && reason(result).hasPrefix("a"), "\(block): \(reason(result))")
    }
  }

  @Test("a collapse key has up to 1,024 bytes of plain text")
  func collapseKey() {
    func key(_ text: String) -> PushError? { code(request(#""collapse_key": "\#(text)""#)) }
    #expect(key(String(repeating: "k", count: 1024)) == nil)
    #expect(key(String(repeating: "k", count: 1025)) == .invalidParameters)
    #expect(key("Updates Available 雑談") == nil)
    for bad in ["a\\r\\nb", "a\\u0000", "a\\u001b[31m", "a\u{202E}b", "a\u{2028}b", "\u{7F}", "a\\u0085b"] {
      #expect(key(bad) == .invalidParameters)
    }
    #expect(try! request(#""collapse_key": """#).get().collapseKey == nil)
  }

  @Test("the body has up to the limit's bytes")
  func body() {
    var limits = RequestLimits()
    let body = Array(#"{"to":"x"}"#.utf8)
    limits.json.bytes = body.count
    #expect(code(SendRequest.parse(body, limits: limits)) == nil)
    #expect(code(SendRequest.parse(body + [0x20], limits: limits)) == .messageTooBig)
    #expect(code(SendRequest.parse(Array(repeating: 0x20, count: 1 << 20))) == .messageTooBig)
    #expect(code(SendRequest.parse(Array(repeating: 0x20, count: 1 << 18))) == .invalidJSON)
  }
}
