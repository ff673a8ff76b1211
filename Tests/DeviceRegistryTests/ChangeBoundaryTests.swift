import PushCore
import Testing

@testable import DeviceRegistry

/// Both sides of every limit of changes by backends, and the reasons that name the place.
@Suite struct ChangeBoundaryTests {
  private static func text(_ count: Int, _ letter: String = "x") -> String { String(repeating: letter, count: count) }

  /// A field, its last valid values, its first invalid ones, and the reasons of their refusal.
  private static let fields: [(field: String, good: [String], bad: [(value: String, words: String)])] = [
    (
      "app", [#""a""#, "\"\(text(255))\""],
      [
        (#""""#, "must not be empty"), ("\"\(text(256))\"", "256 bytes, at most 255 allowed"),
        ("5", "expected a string, found a number"),
        (#""a\u0000""#, "holds a control character"),
      ]
    ),
    (
      "platform", [#""fcm""#],
      [(#""FCM""#, "expected apns, fcm or webpush"), (#""""#, "must not be empty"), ("null", "expected a string, found null")]
    ),
    (
      "token", [#""t""#, "\"\(text(4_096))\"", #""fcm:t""#, #""fid:cXyZ0123456789_-AbCdEf""#],
      [
        ("\"\(text(4_097))\"", "4097 bytes, at most 4096 allowed"), (#""""#, "must not be empty"), (#""a b""#, "a byte beyond"),
        (#""fid:cXyZ0123456789_-AbCdE""#, "a byte beyond"), (#""fid:bXyZ0123456789_-AbCdEf""#, "a byte beyond"),
        ("[]", "expected a string, found an array"),
      ]
    ),
    (
      "installation", ["\"\(text(255))\""],
      [
        ("\"\(text(256))\"", "256 bytes, at most 255 allowed"), (#""a\n""#, "holds a control character"),
        ("1", "expected a string"),
      ]
    ),
    (
      "sender", ["\"\(text(255, "7"))\""],
      [("\"\(text(256, "7"))\"", "256 bytes, at most 255 allowed"), ("1001", "expected a string, found a number")]
    ),
    (
      "user", ["\"\(text(255, "u"))\"", #""anna+x@example.com:1""#],
      [
        ("\"\(text(256, "u"))\"", "a user's id has 1 to 255"), (#""a\u0000b""#, "a user's id has 1 to 255"),
        (#""a\u0085b""#, "a user's id has 1 to 255"),
        ("{}", "expected a string"),
      ]
    ),
    (
      "locale", ["\"\(text(64))\""], [("\"\(text(65))\"", "65 bytes, at most 64 allowed"), (#""""#, "must not be empty")]
    ),
    (
      "time_zone", ["\"\(text(64))\""], [("\"\(text(65))\"", "65 bytes, at most 64 allowed"), ("1", "expected a string")]
    ),
    (
      "app_version", ["\"\(text(64))\""], [("\"\(text(65))\"", "65 bytes, at most 64 allowed"), ("1.5", "expected a string")]
    ),
    (
      "topics", ["[]", "[\"\(text(899, "t"))\"]", #"["/topics/news"]"#],
      [
        ("[\"\(text(900, "t"))\"]", "a topic's name has 1 to 899"), (#"[""]"#, "must not be empty"),
        ("[1]", "expected a string"),
        (#""news""#, "expected an array, found a string"), (#"["a b"]"#, "a topic's name has 1 to 899"),
      ]
    ),
    (
      "registered_at", [#""2026-11-20T21:22:00Z""#, #""2026-11-20T21:22:00.123Z""#],
      [
        (#""2026-11-20 21:22:00Z""#, "expected a time like"), (#""2026-13-20T21:22:00Z""#, "expected a time like"),
        ("1763673720", "expected a string"),
      ]
    ),
    (
      "kind", [#""alert""#], [(#""Alert""#, "expected alert, voip"), ("0", "expected a string"), ("null", "expected a string")]
    ),
    (
      "environment", [],
      [(#""sandbox""#, "only for apns"), (#""beta""#, "expected production or sandbox"), ("true", "expected a string")]
    ),
  ]

  private func parsed(_ fields: [(String, String)]) -> Result<RegistryChange, ChangeRefusal> {
    let body = "{" + fields.map { #""\#($0)":\#($1)"# }.joined(separator: ",") + "}"
    return RegistryChange.parse(Array(body.utf8))
  }

  @Test("each field of a registration is accepted up to its limit, and beyond it refused by its name")
  func registration() {
    for (field, good, bad) in Self.fields {
      let others = [("app", #""a.b""#), ("platform", #""fcm""#), ("token", #""t""#)].filter { $0.0 != field }
      for value in good {
        if case .failure(let refusal) = parsed(others + [(field, value)]) {
          Issue.record("\(field) \(value.prefix(40)): \(refusal)")
        }
      }
      for (value, words) in bad {
        guard case .failure(let refusal) = parsed(others + [(field, value)]) else {
          Issue.record("\(field) \(value.prefix(40)) is taken")
          continue
        }
        #expect(refusal.reason.hasPrefix("\(field): ") && refusal.reason.contains(words), "\(value.prefix(40)): \(refusal)")
      }
    }
    let named = [("app", #""a.b""#), ("platform", #""fcm""#), ("token", #""t""#), ("user", #""u""#)]
    #expect((try? parsed(named + [("name", "\"\(Self.text(1_024))\"")]).get()) != nil)
    for (value, words) in [
      ("\"\(Self.text(1_025))\"", "name: 1025 bytes, at most 1024 allowed"), ("5", "name: expected a string"),
    ] {
      #expect(throws: ChangeRefusal.self, "\(words)") { try parsed(named + [("name", value)]).get() }
    }
  }

  @Test("an unknown key of a change is named, with a suggestion")
  func unknownKey() {
    for (key, words) in [("colour", "colour: unknown key at byte"), ("platfrom", "did you mean platform?")] {
      guard case .failure(let refusal) = parsed([("app", #""a""#), (key, "1")]) else {
        Issue.record("\(key) is taken")
        continue
      }
      #expect(refusal.reason.hasPrefix("\(key): ") && refusal.reason.contains(words), "\(refusal)")
    }
  }

  @Test(
    "an APNs token has 2 to 200 hexadecimal digits in pairs, in any letters' case",
    arguments: [
      ("00", true), ("00FF", true), (text(200, "a"), true), ("0", false), ("000", false), (text(202, "a"), false),
      ("0g", false),
      ("apns:00", true), ("fcm:00", false),
    ])
  func apnsToken(_ token: String, _ isTaken: Bool) {
    let result = parsed([("app", #""a.b""#), ("platform", #""apns""#), ("token", "\"\(token)\"")])
    switch result {
    case .success: #expect(isTaken)
    case .failure(let refusal):
      #expect(!isTaken && refusal.code == .invalidRegistration && refusal.reason.hasPrefix("token: "), "\(refusal)")
    }
  }
}
