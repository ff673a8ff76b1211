/// A parsed JSON5 value with its type, so that errors can name a wrong type.
indirect enum ConfigurationValue: Equatable {
  case null
  case bool(Bool)
  case integer(Int)
  case number(Double)
  case string(String)
  case array([ConfigurationValue])
  case object([String: ConfigurationValue])

  /// Parses a JSON5 document; errors contain `name`.
  static func parse(_ bytes: [UInt8], name: String) throws(ConfigurationError) -> ConfigurationValue {
    guard let text = String(validating: bytes, as: UTF8.self) else {
      throw ConfigurationError(key: name, problem: "is not valid JSON5: it is not UTF-8")
    }
    do throws(JSON5Reader.Fault) { return try JSON5Reader.read(text) } catch {
      throw ConfigurationError(key: name, problem: "is not valid JSON5: \(error)")
    }
  }

  var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a boolean"
    case .integer, .number: "a number"
    case .string: "a string"
    case .array: "a list"
    case .object: "an object"
    }
  }

  /// An object's member; nil if missing or null.
  subscript(key: String) -> ConfigurationValue? {
    guard case .object(let members) = self, let value = members[key], value != .null else { return nil }
    return value
  }

  /// A copy with another value at a path of keys and list positions such as `[0]`; nil removes. Creates missing objects.
  func replacing(_ path: ArraySlice<String>, by value: ConfigurationValue?) -> ConfigurationValue? {
    guard let key = path.first else { return value }
    let rest = path.dropFirst()
    if case .array(var elements) = self, key.hasPrefix("["), let place = Int(key.dropFirst().dropLast()),
      place <= elements.count
    {
      let element = (place < elements.count ? elements[place] : .object([:])).replacing(rest, by: value) ?? .null
      if place < elements.count { elements[place] = element } else { elements.append(element) }
      return .array(elements)
    }
    var members: [String: ConfigurationValue] = if case .object(let members) = self { members } else { [:] }
    members[key] = (members[key] ?? .object([:])).replacing(rest, by: value)
    return .object(members)
  }
}
