import Foundation
import Testing

/// `docs/schema`, printed from the tables in code. To print it again: `PUSHFLEET_WRITE_DOCS=1 swift test --filter SchemaFiles`.
@Suite struct SchemaFiles {
  static let docs = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../docs").standardized
  static let folder = docs.appending(path: "schema")

  /// The schemas of messages.
  static let all: [(name: String, schema: JSONValue)] = [
    ("send-request.schema.json", RequestSchema.schema), ("feedback.schema.json", OutcomeSchemas.feedback),
    ("result.schema.json", OutcomeSchemas.result), ("fan-out-result.schema.json", OutcomeSchemas.fanOutResult),
    ("dead-letter-headers.schema.json", OutcomeSchemas.deadLetterHeaders),
    ("registry-change.schema.json", RegistrySchemas.change),
    ("registry-answer.schema.json", RegistrySchemas.answer),
    ("acknowledgement.schema.json", AcknowledgementSchemas.acknowledgement),
    ("receipt.schema.json", AcknowledgementSchemas.receipt),
    ("audit.schema.json", AuditSchema.audit),
  ]
  static let printed = all + [(ConfigurationSchemaTests.file, ConfigurationSchema.schema)]

  @Test("docs/schema agrees with the tables", arguments: printed.map(\.name))
  func files(name: String) throws {
    let schema = try #require(Self.printed.first { $0.name == name }).schema
    let text = schema.pretty() + "\n"
    let file = Self.folder.appending(path: name)
    if ProcessInfo.processInfo.environment["PUSHFLEET_WRITE_DOCS"] != nil {
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    #expect(
      (try? String(contentsOf: file, encoding: .utf8)) == text,
      "docs/schema/\(name) is stale: PUSHFLEET_WRITE_DOCS=1 swift test --filter SchemaFiles")
  }

  @Test("docs/schema has no other files, and its README lists each schema")
  func contents() throws {
    let found = try FileManager.default.contentsOfDirectory(atPath: Self.folder.path)
    #expect(Set(found) == Set(Self.printed.map(\.name) + ["README.md"]))
    let readme = try String(contentsOf: Self.folder.appending(path: "README.md"), encoding: .utf8)
    for (name, _) in Self.printed { #expect(readme.contains("(\(name))"), "\(name)") }
  }
}
