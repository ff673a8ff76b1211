import PushCore
import Testing

@testable import DeviceRegistry

/// Both sides of every limit of acknowledgements, and the reasons that name the place.
@Suite struct AcknowledgementBoundaryTests {
  private static func text(_ count: Int, _ letter: String = "x") -> String {
    "\"" + String(repeating: letter, count: count) + "\""
  }

  private func parsed(_ body: String) -> Result<[Acknowledgement], ChangeRefusal> {
    Acknowledgement.parse(
      Array(body.utf8), size: UInt64(body.utf8.count), defaultApp: Array("a.b".utf8), messageID: nil, now: 1_000)
  }

  /// A member beside the required ones, and the reason of its refusal; nil if it is accepted.
  private static let members: [(operation: String, member: String, words: String?)] = [
    ("received", #""app":\#(text(255))"#, nil), ("received", #""app":\#(text(256))"#, "app: 256 bytes"),
    ("received", #""app":"""#, "app: must not be empty"), ("received", #""app":1"#, "app: expected a string"),
    ("received", #""at":"2026-11-20T21:22:00Z""#, nil), ("received", #""at":"2026-11-20T25:22:00Z""#, "at: expected a time"),
    ("received", #""at":"2026-02-30T21:22:00Z""#, "at: expected a time"),
    ("received", #""at":"1970-01-01T00:00:00Z""#, nil), ("received", #""at":"1969-12-31T23:59:59Z""#, "at: expected a time"),
    ("received", #""at":"0000-01-01T00:00:00Z""#, "at: expected a time"),
    ("received", #""colour":1"#, "colour: unknown key at byte"), ("received", #""mesage_id":1"#, "did you mean message_id?"),
    ("received", #""a\u001b":1"#, #""a\x1b": unknown key at byte"#),
    ("received", #""at":1763673720"#, "at: expected a string"), ("received", #""at":null"#, "at: expected a string"),
    ("received", #""feedback":"true""#, nil), ("received", #""badge":1"#, "badge: not a field of received"),
    ("received", #""badge_option":"keep""#, "badge_option: not a field of received"),
    ("read", #""badge_option":"keep""#, nil), ("read", #""badge_option":"reset""#, nil),
    ("read", #""badge_option":"Reset""#, "badge_option: expected keep, reset or update"),
    ("read", #""badge_option":0"#, "badge_option: expected a string"),
    ("read", #""badge_option":"reset","badge":1"#, nil), ("read", #""badge_option":"keep","badge":"all""#, nil),
    ("read", #""badge":1"#, nil),
    ("read", #""badge_option":"update""#, "badge: expected a whole number from 1 to 1000"),
  ]

  @Test("each member of an acknowledgement is accepted up to its limit, and beyond it refused by its name")
  func bounds() {
    func check(_ body: String, _ words: String?) {
      switch (parsed(body), words) {
      case (.success, nil): break
      case (.success, _): Issue.record("taken: \(body.prefix(100))")
      case (.failure(let refusal), let words?): #expect(refusal.reason.contains(words), "\(body.prefix(100)): \(refusal)")
      case (.failure(let refusal), nil): Issue.record("\(body.prefix(100)): \(refusal)")
      }
    }
    for (operation, member, words) in Self.members {
      check(#"{"op":"\#(operation)","token":"t","message_id":"m",\#(member)}"#, words)
    }
    let range = "badge: expected a whole number from 1 to 1000"
    let badges: [(String, String?)] = [
      ("1", nil), ("1000", nil), ("1.0", nil), ("0", range), ("1001", range), ("-1", range),
      ("2.5", "badge: expected a whole number"),
      (#""5""#, range), ("true", range), ("null", range), ("1e999", "badge: expected a whole number"),
      ("9223372036854775808", "badge: expected a whole number"),
    ]
    for (value, words) in badges {
      check(#"{"op":"badge","token":"t","badge":\#(value)}"#, words)
      check(#"{"op":"read","token":"t","message_id":"m","badge_option":"update","badge":\#(value)}"#, words)
    }
    check(#"{"op":"badge","token":"t"}"#, range)
    check(#"{"op":"badge","token":"t","badge_option":"reset"}"#, nil)
    for wrong in [#""badge_option":"keep""#, #""badge_option":"update","badge":1"#, #""badge_option":"reset","badge":1"#] {
      check(#"{"op":"badge","token":"t",\#(wrong)}"#, "badge_option: of a badge only reset, without a number")
    }
    let messages: [(String, String?)] = [
      (#""message_id":\#(Self.text(255))"#, nil),
      (#""message_id":\#(Self.text(256))"#, "message_id: 256 bytes, 1 to 255 allowed"),
      (#""message_id":"""#, "message_id: 0 bytes"), (#""message_id":null"#, "message_id: expected a string"),
      (#""message_id":1.5"#, "message_id: expected a whole number"), (#""message_id":-7"#, nil),
      (#""push_key":\#(Self.text(40, "a"))"#, nil), (#""push_key":\#(Self.text(40, "F"))"#, nil),
      (#""push_key":\#(Self.text(39, "a"))"#, "push_key: expected 40"),
      (#""push_key":\#(Self.text(41, "a"))"#, "push_key: expected 40"),
      (#""push_key":\#(Self.text(40, "g"))"#, "push_key: expected 40"),
      (#""seqno":0"#, nil), (#""seqno":9007199254740991"#, nil), (#""seqno":"9007199254740991""#, nil),
      (#""seqno":9007199254740992"#, "seqno: expected a number of up to 53 bits"), (#""seqno":-1"#, "seqno: expected a number"),
      (#""seqno":"1e3""#, "seqno: expected a number"), (#""seqno":"""#, "seqno: 0 bytes"),
      (#""seqno":true"#, "seqno: expected a string"),
      (#""seqno":1,"message_id":"m""#, "expected exactly one of message_id, push_key, seqno"),
    ]
    for (member, words) in messages { check(#"{"op":"read","token":"t",\#(member)}"#, words) }
    let devices: [(String, String?)] = [
      (#""installation":\#(Self.text(255))"#, nil), (#""installation":\#(Self.text(256))"#, "installation: 256 bytes"),
      (#""installation":"""#, "installation: must not be empty"), (#""installation":7"#, "installation: expected a string"),
      (#""token":\#(Self.text(4_096))"#, nil), (#""token":\#(Self.text(4_097))"#, "token: 4097 bytes"),
      (#""token":"a b""#, "token: not a token"), (#""registration":"pf1r~0""#, "registration: not an issued registration"),
      (#""token":"t","installation":"i""#, "expected exactly one of registration, token, installation"),
    ]
    for (member, words) in devices { check(#"{"op":"received","message_id":"m",\#(member)}"#, words) }
    for op in ["", #""op":"Read","#, #""op":1,"#, #""op":null,"#] {
      check("{\(op)\"token\":\"t\",\"message_id\":\"m\"}", "op: expected one of received, read, badge")
    }
    let one = #"{"op":"received","token":"t","message_id":"m"}"#
    func list(_ count: Int) -> String { "[" + [String](repeating: one, count: count).joined(separator: ",") + "]" }
    check(list(1), nil)
    check(list(1_000), nil)
    check(list(1_001), "1001 acknowledgements, 1 to 1000 allowed")
    check("[\(one),[]]", "[1]: expected an object, found an array")
    check("[\(one),{\"colour\":1}]", "[1]: colour: unknown key at byte")
  }

  @Test("a message of acknowledgements may have a MiB, whatever part of it was kept")
  func size() {
    let body = Array(#"{"op":"received","token":"t","message_id":"m"}"#.utf8)
    func parse(_ size: Int) -> Result<[Acknowledgement], ChangeRefusal> {
      Acknowledgement.parse(body, size: UInt64(size), defaultApp: [0x61], messageID: nil, now: 0)
    }
    #expect((try? parse(1 << 20).get()) != nil)
    #expect(throws: ChangeRefusal.self) { try parse(1 << 20 + 1).get() }
  }
}
