import Foundation

/// A parsed JSON5 value whose type is known, so that a wrong type can be refused by its path.
indirect enum ConfigurationValue: Decodable, Equatable {
  case null
  case bool(Bool)
  case integer(Int)
  case number(Double)
  case string(String)
  case array([ConfigurationValue])
  case object([String: ConfigurationValue])

  /// Parses one JSON5 document; `name` stands in the error.
  static func parse(_ text: Data, name: String) throws(ConfigurationError) -> ConfigurationValue {
    // The decoder takes for granted that the name of a member is UTF-8.
    guard String(validating: text, as: UTF8.self) != nil else {
      throw ConfigurationError(key: name, problem: "is not valid JSON5: it is not UTF-8")
    }
    let decoder = JSONDecoder()
    decoder.allowsJSON5 = true
    do {
      return try decoder.decode(ConfigurationValue.self, from: text)
    } catch DecodingError.dataCorrupted(let context) {
      let detail = context.underlyingError.map { String(describing: $0) } ?? context.debugDescription
      throw ConfigurationError(key: name, problem: "is not valid JSON5: \(detail)")
    } catch {
      throw ConfigurationError(key: name, problem: "is not valid JSON5: \(error)")
    }
  }

  init(from decoder: any Decoder) throws {
    if let members = try? decoder.container(keyedBy: AnyKey.self) {
      var object: [String: ConfigurationValue] = [:]
      for key in members.allKeys { object[key.stringValue] = try members.decode(ConfigurationValue.self, forKey: key) }
      self = .object(object)
    } else if var elements = try? decoder.unkeyedContainer() {
      var array: [ConfigurationValue] = []
      while !elements.isAtEnd { array.append(try elements.decode(ConfigurationValue.self)) }
      self = .array(array)
    } else {
      let scalar = try decoder.singleValueContainer()
      if scalar.decodeNil() {
        self = .null
      } else if let bool = try? scalar.decode(Bool.self) {
        self = .bool(bool)
      } else if let integer = try? scalar.decode(Int.self) {
        self = .integer(integer)
      } else if let number = try? scalar.decode(Double.self) {
        self = .number(number)
      } else {
        self = .string(try scalar.decode(String.self))
      }
    }
  }

  /// What the value is, in words for an error.
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

  private struct AnyKey: CodingKey {
    var stringValue: String
    var intValue: Int?
    init?(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) {
      self.intValue = intValue
      stringValue = String(intValue)
    }
  }
}
