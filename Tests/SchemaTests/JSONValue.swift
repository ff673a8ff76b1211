/// A JSON value whose members keep their order, for printed schemas and generated requests.
indirect enum JSONValue: Equatable, Sendable, ExpressibleByStringInterpolation, ExpressibleByIntegerLiteral,
  ExpressibleByBooleanLiteral,
  ExpressibleByArrayLiteral, ExpressibleByDictionaryLiteral
{
  case null
  case bool(Bool)
  /// The digits as written.
  case number(String)
  case string(String)
  case array([JSONValue])
  case object([(name: String, value: JSONValue)])

  init(stringLiteral value: String) { self = .string(value) }
  init(integerLiteral value: Int) { self = .number(String(value)) }
  init(booleanLiteral value: Bool) { self = .bool(value) }
  init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  init(dictionaryLiteral elements: (String, JSONValue)...) { self = .object(elements.map { ($0.0, $0.1) }) }

  static func == (a: JSONValue, b: JSONValue) -> Bool { a.text == b.text }

  static func strings(_ words: some Sequence<String>) -> JSONValue { .array(words.map(JSONValue.string)) }

  var text: String {
    switch self {
    case .null: "null"
    case .bool(let value): String(value)
    case .number(let digits): digits
    case .string(let text): Self.quoted(text)
    case .array(let elements): "[\(elements.map(\.text).joined(separator: ","))]"
    case .object(let members): "{\(members.map { "\(Self.quoted($0.name)):\($0.value.text)" }.joined(separator: ","))}"
    }
  }

  /// Text on several lines. A value that fits into 100 characters stays on one line.
  func pretty(_ indentation: String = "") -> String {
    let line = text
    if line.count + indentation.count <= 100 { return spaced }
    let inner = indentation + "  "
    switch self {
    case .array(let elements):
      return "[\n" + elements.map { inner + $0.pretty(inner) }.joined(separator: ",\n") + "\n\(indentation)]"
    case .object(let members):
      return "{\n" + members.map { "\(inner)\(Self.quoted($0.name)): \($0.value.pretty(inner))" }.joined(separator: ",\n")
        + "\n\(indentation)}"
    default: return line
    }
  }

  private var spaced: String {
    switch self {
    case .array(let elements): "[\(elements.map(\.spaced).joined(separator: ", "))]"
    case .object(let members): "{\(members.map { "\(Self.quoted($0.name)): \($0.value.spaced)" }.joined(separator: ", "))}"
    default: text
    }
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"", "\\": quoted += "\\" + String(scalar)
      case _ where scalar.value < 0x20:
        quoted += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension JSONValue {
  /// The object with more members at its end.
  func adding(_ more: [(name: String, value: JSONValue)]) -> JSONValue {
    guard case .object(let members) = self else { return self }
    return .object(members + more)
  }
}
