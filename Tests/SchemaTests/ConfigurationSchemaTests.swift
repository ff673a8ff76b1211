import Foundation
import Testing

@testable import Settings

/// Compares `docs/configuration.md` and the configuration schema with the table of settings and the reader.
@Suite struct ConfigurationSchemaTests {
  static let file = "configuration.schema.json"

  @Test("docs/configuration.md has the table of settings")
  func page() throws {
    let file = SchemaFiles.docs.appending(path: "configuration.md")
    let found = try String(contentsOf: file, encoding: .utf8)
    var lines: [String] = []
    var (heading, headings, isTable) = ("", [String](), false)
    for line in found.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if line.hasPrefix("#") { heading = String(line.drop { $0 == "#" }.dropFirst()) }
      isTable = isTable ? line.hasPrefix("|") : line.hasPrefix("| Setting |")
      if !isTable {
        lines.append(line)
      } else if line.hasPrefix("| Setting |") {
        let settings = try #require(Setting.table.first { $0.key == heading }, "\(heading)").value
        lines += ["| Setting | Values | Default | Meaning |", "|---|---|---|---|"] + settings.map(Self.row)
        headings.append(heading)
      }
    }
    #expect(headings.sorted() == Setting.table.map(\.key).sorted())
    let text = lines.joined(separator: "\n")
    if ProcessInfo.processInfo.environment["PUSHFLEET_WRITE_DOCS"] != nil {
      try text.write(to: file, atomically: true, encoding: .utf8)
    }
    #expect(
      try String(contentsOf: file, encoding: .utf8) == text,
      "docs/configuration.md is stale: PUSHFLEET_WRITE_DOCS=1 swift test --filter ConfigurationSchemaTests")
  }

  static func row(_ setting: Setting) -> String {
    let standard =
      switch setting.shape.standard {
      case .number(let digits)?: digits
      case .string(let text)?: "`\(text)`"
      case let value?: "`\(value.text)`"
      case nil: setting.unset
      }
    var help = setting.help
    if case .time = setting.shape { help += " Units: `s`, `m`, `h`, `d`." }
    let cells = ["`\(setting.path.replacing("[]", with: ""))`", setting.shape.values, standard, help]
    return cells.reduce("|") { $1.isEmpty ? $0 + " |" : "\($0) \($1) |" }
  }

  @Test(
    "the schema accepts every value that the reader accepts, and refuses the same numbers, flags and words",
    arguments: Setting.table.flatMap { $1 })
  func agreement(setting: Setting) throws {
    var values: [ConfigurationValue] = [
      .bool(true), .bool(false), .string("x"), .string("1d"), .string("none"), .string("https://h:1"), .object([:]),
      .array([]), .array([.string("x")]), .array([.integer(1)]), .integer(-1),
    ]
    switch setting.shape {
    case .number(let range, _, _):
      values += [0, 1, 1, 2].map { .integer($0 + range.lowerBound - 1) } + [0, 1].map { .integer(range.upperBound + $0) }
    case .choice(let words, _), .words(let words): values += words.map { .string($0) } + [.array(words.map { .string($0) })]
    default: break
    }
    let path = setting.path.split(separator: ".").flatMap { part -> [String] in
      part.hasSuffix("[]") ? [String(part.dropLast(2)), "[0]"] : [part == "<id>" ? "a" : String(part)]
    }
    let apns: ConfigurationValue = .object(["certificate": .string("c")])
    let list: ConfigurationValue = .object(["apps": .object(["a": .object(["apns": .array([apns])])])])
    let files = values.map { list.replacing(path[...], by: $0) ?? .null }
    let verdicts = try SchemaJudge.shared.judge(files.map { (Self.file, $0.json.text) })
    for (file, verdict) in zip(files, verdicts) {
      let errors = ConfigurationReading(file, path: "/c.json5", [:]).source.errors
      let error = errors.first { $0.key.hasPrefix(ConfigurationSource.name(path)) && !$0.problem.hasPrefix("is missing") }
      #expect(verdict.isEmpty || error != nil, "only the schema refuses: \(verdict)\n\(file.json.text)")
      switch setting.shape {
      case .number, .flag, .choice: #expect(!verdict.isEmpty || error == nil, "only the reader refuses: \(file.json.text)")
      default: break
      }
    }
  }

  @Test("the configurations in the documents are valid and can name the schema")
  func documents() throws {
    let pages = try ["configuration.md", "send/gateway.md", "send/registry.md"].map {
      try String(contentsOf: SchemaFiles.docs.appending(path: $0), encoding: .utf8)
    }
    let shown = pages.flatMap { $0.matches(of: /```json5\n((?s:.*?))```/).map { String($0.1) } }
    let texts =
      shown.map { $0.hasPrefix("{") ? $0 : "{ \($0) }" } + [#"{ $schema: "configuration.schema.json", log: "debug" }"#]
    let values = try texts.map { try ConfigurationValue.parse(Array($0.utf8), name: "c.json5") }
    let verdicts = try SchemaJudge.shared.judge(values.map { (Self.file, $0.json.text) })
    for (text, verdict) in zip(texts, verdicts) { #expect(verdict.isEmpty, "\(verdict)\n\(text)") }
    for value in values {
      let errors = ConfigurationReading(value, path: "/c.json5", [:]).source.errors
      #expect(!errors.contains { $0.problem.contains("is not a setting") }, "\(errors)")
    }
    #expect(texts.count > 2)
  }
}

extension ConfigurationValue {
  fileprivate var json: JSONValue {
    switch self {
    case .null: .null
    case .bool(let flag): .bool(flag)
    case .integer(let number): .number("\(number)")
    case .number(let number): .number("\(number)")
    case .string(let text): .string(text)
    case .array(let elements): .array(elements.map(\.json))
    case .object(let members): .object(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value.json) })
    }
  }
}
