import PushCore
import Testing

@testable import DeviceRegistry
@testable import Delivery

/// The schemas of acknowledgements and receipts.
enum AcknowledgementSchemas {
  static let gaps: [(words: String, isReason: @Sendable (ChangeRefusal) -> Bool)] = [
    ("the body's encoding, its nesting, and names that occur twice in an object", { $0.code == .invalidJSON }),
    ("sizes in bytes of UTF-8", { $0.reason.contains(" bytes, ") }),
    ("the subscription after `webpush:`", { $0.reason.hasSuffix("of a subscription after webpush:") }),
  ]

  static let acknowledgement: JSONValue = [
    "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Acknowledgement",
    "description": .string(
      "The body of a message on push.acks: the statement that a device has received or read a message, or the device's badge; or a list of "
        + "these. The reader accepts the same messages, but it also checks rules that a schema can't express: "
        + gaps.map(\.words).joined(separator: "; ")
        + ". If only one application is configured, `app` may be omitted."),
    "if": ["type": "array"],
    "then": ["minItems": 1, "maxItems": .number(String(Acknowledgement.mostTogether)), "items": ["$ref": "#/$defs/one"]],
    "else": ["$ref": "#/$defs/one"], "$defs": ["one": one],
  ]

  private static let message: [JSONValue] = ["message_id", "push_key", "seqno"].map { ["required": [.string($0)]] }

  private static let number: JSONValue = ["type": "integer", "minimum": 1, "maximum": 1_000]

  private static let one: JSONValue = [
    "type": "object", "required": ["op", "app"], "additionalProperties": false,
    "properties": [
      "op": ["enum": ["received", "read", "badge"]], "app": RegistrySchemas.value(.app, of: .unregister),
      "registration": RegistrySchemas.value(.registration, of: .unregister),
      "token": RegistrySchemas.value(.token, of: .unregister),
      "installation": RegistrySchemas.value(.installation, of: .unregister),
      "message_id": [
        "type": ["string", "integer"], "minLength": 1, "maxLength": 255, "minimum": .number("-9223372036854775808"),
        "maximum": .number("9223372036854775807"),
      ],
      "push_key": [
        "description": "the push key in the push's mps object; identifies the message", "type": "string",
        "pattern": "^[0-9a-fA-F]{40}$",
      ],
      "seqno": [
        "description": "the message's number in the push's mps object; identifies the message", "type": ["string", "integer"],
        "minimum": 0, "maximum": .number("9007199254740991"),
        "pattern": .string(Pattern.atMost(9_007_199_254_740_991, digits: 16)),
      ],
      "at": [
        "description": "the time of the event; default: the time of arrival", "type": "string",
        "pattern": .string(Pattern.timestampSince1970),
      ],
      "badge_option": ["enum": ["keep", "reset", "update"]],
      "badge": ["description": "a number from 1 to 1000; op read ignores it unless badge_option is update"],
      "feedback": ["description": "a device's own mark; ignored"],
      "user": [
        "description": "the device's user; a device of another user counts as unknown", "type": "string",
        "pattern": .string("^\(Pattern.userID)$"),
      ],
      "cuid": [
        "description": "the name of user in UPMC's libraries", "type": "string", "pattern": .string("^\(Pattern.userID)$"),
      ],
    ],
    "not": ["required": ["user", "cuid"]],
    "allOf": [
      ["oneOf": .array(["registration", "token", "installation"].map { ["required": [.string($0)]] })],
      [
        "if": ["properties": ["op": ["const": "badge"]]],
        "then": [
          "properties": ["message_id": false, "push_key": false, "seqno": false],
          "if": ["required": ["badge_option"]],
          "then": ["properties": ["badge_option": ["const": "reset"], "badge": false]],
          "else": ["required": ["badge"], "properties": ["badge": number]],
        ], "else": ["oneOf": .array(message)],
      ],
      [
        "if": ["properties": ["op": ["const": "received"]]],
        "then": ["properties": ["badge_option": false, "badge": false]],
      ],
      [
        "if": ["properties": ["op": ["const": "read"]]],
        "then": [
          "if": ["properties": ["badge_option": ["const": "update"]], "required": ["badge_option"]],
          "then": ["required": ["badge"], "properties": ["badge": number]],
        ],
      ],
    ],
  ]

  static let receipt = OutcomeSchemas.outcome(
    "Receipt",
    "The body of a message on push.receipts: one acknowledgement of a device. A repeated receipt has the same message id.",
    [
      ("event", ["enum": ["Received", "Read"]]), ("app", ["type": "string"]), ("message_id", ["type": "string"]),
      ("registration", ["description": "the registry's id of the device", "type": "string"]),
      ("user", ["type": ["string", "null"]]), ("at", ["type": "string", "pattern": .string(Pattern.writtenTime)]),
      ("badge", ["description": "the device's counter after the acknowledgement", "type": "integer", "minimum": 0]),
    ])
}

/// Compares the schema of acknowledgements with their reader, and the schema of receipts with their writer.
@Suite struct AcknowledgementSchemaTests {
  private static func said(_ generator: inout RequestGenerator) -> JSONValue {
    let word = generator.pick(["received", "received", "read", "read", "badge", "badge", "badge", "seen"])
    let op = JSONValue.string(word)
    var members: [(name: String, value: JSONValue)] = [("op", op)]
    if !generator.one(in: 12) { members.append(("app", generator.one(in: 12) ? generator.arbitrary() : "com.example.app")) }
    let devices: [(String, JSONValue)] = [
      (
        "token",
        generator.one(in: 8)
          ? "a b"
          : generator.pick(
            "00ff", "fcm:a", RequestGenerator.hex, "pf1r~00000000000000000000000000", "https://push.example/1", "webpush:e30")
      ),
      ("registration", generator.one(in: 8) ? "00ff" : "pf1r~00000000000000000000000000"),
      ("installation", generator.one(in: 8) ? "" : "i"),
    ]
    let named: [(String, JSONValue)] = [
      ("message_id", generator.pick(["m", 7, "104", "雑", "", .number("1e30")])),
      ("push_key", generator.pick([.string(String(repeating: "aF", count: 20)), "12", 12])),
      ("seqno", generator.pick(["104", 104, "9007199254740992", "+1", .number("-1"), .number("104.0"), .number("1.5")])),
    ]
    members.append(generator.pick(devices))
    if generator.one(in: 12) { members.append(generator.pick(devices)) }
    if word != "badge" || generator.one(in: 8) { members.append(generator.pick(named)) }
    if generator.one(in: 3) { members.append(("at", generator.one(in: 8) ? "2026-11-20" : "2026-11-20T21:22:00.123Z")) }
    if word == "read" ? generator.one(in: 2) : generator.one(in: 20) {
      members.append(("badge_option", generator.pick("keep", "reset", "update", "force")))
    }
    if word == "badge" ? !generator.one(in: 8) : generator.one(in: word == "read" ? 3 : 12) {
      members.append(("badge", generator.pick([1, 1_000, 5, 7, 8, 9, 0, 1_001, "5", .number("2.5")])))
    }
    if generator.one(in: 8) { members.append(("feedback", "true")) }
    if generator.one(in: 20) { members.append(("colour", 1)) }
    var names: Set<String> = []
    return .object(members.filter { names.insert($0.name).inserted })
  }

  @Test("schema and reader accept the same of 600 generated acknowledgements")
  func property() throws {
    let texts = (0..<600 as Range<UInt64>).map { seed in
      var generator = RequestGenerator(seed: seed)
      if generator.one(in: 5) {
        return JSONValue.array((0..<Int(seed % 4)).map { _ in Self.said(&generator) }).text
      }
      return generator.one(in: 30) ? generator.arbitrary().text : Self.said(&generator).text
    }
    let verdicts = try SchemaJudge.shared.judge(texts.map { ("acknowledgement.schema.json", $0) })
    for (seed, (text, verdict)) in zip(texts, verdicts).enumerated() {
      switch Acknowledgement.parse(Array(text.utf8), size: UInt64(text.utf8.count), defaultApp: nil, messageID: nil, now: 0) {
      case .success: #expect(verdict.isEmpty, "seed \(seed): only the schema refuses: \(verdict)\n\(text)")
      case .failure(let refusal):
        let isGap = AcknowledgementSchemas.gaps.contains { $0.isReason(refusal) }
        #expect(!verdict.isEmpty || isGap, "seed \(seed): only the reader refuses: \(refusal)\n\(text)")
      }
    }
    #expect((60...450).contains(verdicts.count { $0.isEmpty }), "\(verdicts.count { $0.isEmpty }) accepted")
  }

  @Test("every receipt is valid", arguments: [nil, Array("anna".utf8)])
  func receipts(user: [UInt8]?) throws {
    let receipt = Receipt(
      event: .read, app: Array("a".utf8), messageID: [0xFF, 0x22], registration: Array("r".utf8), user: user,
      at: 1_763_673_720_123,
      badge: 3)
    let text = String(decoding: receipt.json, as: UTF8.self)
    #expect(try SchemaJudge.shared.judge([("receipt.schema.json", text)]) == [""])
  }
}
