import PushCore
import Testing

@testable import DeviceRegistry

/// The schema of operators' operations.
enum AuditSchema {
  static let audit = OutcomeSchemas.outcome(
    "Audit event",
    "An operation of an operator, as workers publish it to push.events and as pushfleet audit prints it. A repeated event has the "
      + "same number.",
    [
      ("event", ["const": "audit"]), ("number", ["description": "ascending in the registry", "type": "integer", "minimum": 0]),
      ("at", ["type": "string", "pattern": .string(Pattern.writtenTime)]),
      ("app", ["description": "null for an operation on the whole fleet", "type": ["string", "null"]]),
      (
        "actor",
        [
          "description": "a system user, the user of a proxy, or a gateway key: its id, or its name with the id in parentheses",
          "type": "string",
        ]
      ),
      ("origin", ["description": "the host of the command, or the address of the HTTP client", "type": "string"]),
      (
        "action",
        [
          "type": "string",
          "examples": [
            "pause", "drain", "resume", "rate", "campaign cancel", "discard", "held drop", "test", "forget user", "key create",
          ],
        ]
      ),
      (
        "subject",
        ["type": "string", "examples": ["app:com.example.app", "lane:send.normal", "queue:push.dead", "key:wjQD9zrx-2oc"]]
      ),
      ("reason", ["type": ["string", "null"]]), ("before", ["description": "the subject's state", "type": "object"]),
      ("after", ["type": "object"]),
    ])
}

@Suite struct AuditSchemaTests {
  @Test("every audit event is valid", arguments: [nil, Array("com.example.app".utf8)])
  func events(app: [UInt8]?) throws {
    let event = AuditEvent(
      number: 7, at: 1_763_673_720_123, app: app, actor: [0xFF], origin: [], action: Array("pause".utf8),
      subject: Array("app:a".utf8), reason: app, before: Array("{}".utf8), after: Array(#"{"state":"paused"}"#.utf8))
    let text = String(decoding: event.json.line, as: UTF8.self)
    #expect(try SchemaJudge.shared.judge([("audit.schema.json", text)]) == [""])
  }
}
