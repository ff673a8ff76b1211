@testable import Settings

/// The schema of the configuration file, made from the table of settings. Editors use it for completion and checks.
enum ConfigurationSchema {
  static var schema: JSONValue {
    let head: JSONValue = [
      "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Configuration of pushfleet",
      "description": .string(
        "A setting that is missing here can also come from an environment variable, so no setting is required. "
          + "`pushfleet config check` finds more errors than this schema."),
    ]
    let definitions = ["apns", "fcm", "webpush"].map { ($0, object(credentials[$0]?.inner ?? [:], "apps.<id>.\($0)")) }
    let whole = object(SettingShape.configuration, "", [(SettingShape.schemaKey, ["type": "string"])])
    return head.adding(members(of: whole)).adding([("$defs", .object(definitions))])
  }

  /// The credentials of an application. A sender has the same.
  private static let credentials = SettingShape.configuration["apps"]?.inner ?? [:]

  private static func members(of value: JSONValue) -> [(name: String, value: JSONValue)] {
    if case .object(let members) = value { members } else { [] }
  }

  private static func object(
    _ fields: SettingShape.Fields, _ path: String, _ more: [(name: String, value: JSONValue)] = []
  ) -> JSONValue {
    let properties = fields.sorted { $0.key < $1.key }.flatMap { key, shape -> [(name: String, value: JSONValue)] in
      let value = value(shape, key, path.isEmpty ? key : "\(path).\(key)")
      let file: JSONValue = ["description": .string("A file with the value of \(key)."), "type": "string"]
      return [(key, value)] + (shape.mayBeInFile ? [(key + "File", file)] : [])
    }
    return ["type": "object", "additionalProperties": false, "properties": .object(more + properties)]
  }

  private static func value(_ shape: SettingShape, _ key: String, _ path: String) -> JSONValue {
    switch shape {
    case .objects:
      let one: JSONValue = ["$ref": .string("#/$defs/\(key)")]
      return ["anyOf": [one, ["type": "array", "items": one]]]
    case .object where path.hasPrefix("apps."): return ["$ref": .string("#/$defs/\(key)")]
    case .object(let fields): return object(fields, path)
    case .named(let fields):
      return ["type": "object", "additionalProperties": object(fields, "\(path).\(key == "apps" ? "<id>" : "<sender>")")]
    default:
      let description = settings[path].map { JSONValue.string(words($0)) } ?? ""
      return JSONValue.object([("description", description)] + members(of: type(of: shape)))
        .adding(shape.standard.map { [("default", $0)] } ?? [])
    }
  }

  private static let settings = Dictionary(
    uniqueKeysWithValues: Setting.table.flatMap { $1 }.map { ($0.path.replacing("[]", with: ""), $0) })

  /// The help without Markdown, plus the values or unit that the JSON type doesn't express.
  private static func words(_ setting: Setting) -> String {
    let help = setting.help.replacing(/\[([^\]]*)\]\([^)]*\)/) { $0.1 }
    return switch setting.shape {
    case .text, .texts, .material, .materials, .time: (help + " Values: \(setting.shape.values).").replacing("`", with: "")
    case .number(_, _, let unit) where !unit.isEmpty: (help + " Unit: \(unit).").replacing("`", with: "")
    default: help.replacing("`", with: "")
    }
  }

  private static func type(of shape: SettingShape) -> JSONValue {
    switch shape {
    case .texts, .materials: ["type": ["string", "array"], "items": ["type": "string"]]
    case .words(let words): ["type": ["string", "array"], "items": ["enum": .strings(words)]]
    case .choice(let choices, _): ["enum": .strings(choices)]
    case .time(_, _, _, let orNone): ["type": "string", "pattern": .string("^\\+?[0-9]+[smhd]$" + (orNone ? "|^none$" : ""))]
    case .number(let range, _, _):
      ["type": "integer", "minimum": .number("\(range.lowerBound)"), "maximum": .number("\(range.upperBound)")]
    case .flag: ["type": "boolean"]
    default: ["type": "string"]
    }
  }
}

extension SettingShape {
  /// The default value, if there is one.
  var standard: JSONValue? {
    switch self {
    case .text(_, let text), .texts(_, let text), .choice(_, let text): text.map(JSONValue.string)
    case .time(_, let example, let isDefault, _): isDefault ? .string(example) : nil
    case .number(_, let number, _): .number("\(number)")
    case .flag(let flag): .bool(flag)
    case .words, .material, .materials, .object, .objects, .named: nil
    }
  }

  /// The column "Values" of `docs/configuration.md`.
  var values: String {
    func list(_ words: [String]) -> String { words.map { "`\($0)`" }.joined(separator: ", ") }
    func grouped(_ number: Int) -> String {
      number < 1_000 ? "\(number)" : grouped(number / 1_000) + "," + "\(1_000 + number % 1_000)".dropFirst()
    }
    return switch self {
    case .text(let words, _), .texts(let words, _), .material(let words), .materials(let words): words
    case .choice(let choices, _): list(choices)
    case .words(let words): "list of \(list(words))"
    case .time(let days, _, _, let orNone): "`1s` to `\(days)d`\(orNone ? ", or `none`" : "")"
    case .number(let range, _, let unit):
      "\(grouped(range.lowerBound)) to \(grouped(range.upperBound))\(unit.isEmpty ? "" : " \(unit)")"
    case .flag: "`true`, `false`"
    case .object, .objects, .named: ""
    }
  }
}
