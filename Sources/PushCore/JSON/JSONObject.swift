/// A JSON object with ordered members. Unknown values are `null`.
public struct JSONObject: ExpressibleByDictionaryLiteral {
  package private(set) var members: [(name: String, value: any JSONMember)] = []

  public init(dictionaryLiteral members: (String, any JSONMember)...) { self.members = members.map { ($0, $1) } }
  public init(_ members: some Sequence<(String, any JSONMember)>) { self.members = members.map { ($0, $1) } }

  public static func + (first: JSONObject, second: JSONObject) -> JSONObject {
    var sum = first
    sum.members += second.members
    return sum
  }

  public var line: [UInt8] {
    var line: [UInt8] = []
    append(to: &line)
    return line
  }

  /// On one line, appended to the members of an existing one-line object.
  public func line(after object: [UInt8]) -> [UInt8] {
    let earlier = object.dropLast()
    return earlier + (earlier.last == UInt8(ascii: "{") ? [] : [UInt8(ascii: ",")]) + line.dropFirst()
  }
}

/// A value that can be written as JSON on one line.
public protocol JSONMember {
  func append(to line: inout [UInt8])
  /// Appends a JSON array; or text, if the values are bytes.
  static func append(_ values: [Self], to line: inout [UInt8])
  /// True if objects have no such member.
  var isLeftOut: Bool { get }
}

extension JSONMember {
  public var isLeftOut: Bool { false }

  public static func append(_ values: [Self], to line: inout [UInt8]) {
    line.append(UInt8(ascii: "["))
    for (index, value) in values.enumerated() {
      if index > 0 { line.append(UInt8(ascii: ",")) }
      value.append(to: &line)
    }
    line.append(UInt8(ascii: "]"))
  }
}

/// A member that is left out if its value is nil.
public struct JSONOptional<Value: JSONMember>: JSONMember {
  private let value: Value?

  public init(_ value: Value?) { self.value = value }
  public var isLeftOut: Bool { value?.isLeftOut ?? true }
  public func append(to line: inout [UInt8]) { value?.append(to: &line) }
}

public struct JSONRaw: JSONMember {
  private let json: [UInt8]

  public init(_ json: [UInt8]) { self.json = json }
  /// Line ends become spaces.
  public func append(to line: inout [UInt8]) {
    line.append(contentsOf: json.lazy.map { $0 == 0x0A || $0 == 0x0D ? 0x20 : $0 })
  }
}

extension Optional: JSONMember where Wrapped: JSONMember {
  public var isLeftOut: Bool { self?.isLeftOut ?? false }
  public func append(to line: inout [UInt8]) {
    if let self { self.append(to: &line) } else { line.append("null") }
  }
}

extension String: JSONMember {
  public func append(to line: inout [UInt8]) { line.appendSafeJSONString(self) }
}

extension Int: JSONMember {
  public func append(to line: inout [UInt8]) { line.appendDecimal(self) }
}

extension Int64: JSONMember {
  public func append(to line: inout [UInt8]) { line.appendDecimal(self) }
}

extension Bool: JSONMember {
  public func append(to line: inout [UInt8]) { line.append(self ? "true" : "false") }
}

/// With one decimal place, if not negative. Above 10^15 it is written as that.
extension Double: JSONMember {
  public func append(to line: inout [UInt8]) { line += "\(Double(Int64(min(self, 1e15) * 10 + 0.5)) / 10)".utf8 }
}

extension JSONObject: JSONMember {
  public func append(to line: inout [UInt8]) {
    line.append(UInt8(ascii: "{"))
    var isFirst = true
    for (name, value) in members where !value.isLeftOut {
      if !isFirst { line.append(UInt8(ascii: ",")) }
      isFirst = false
      line.appendSafeJSONString(name)
      line.append(UInt8(ascii: ":"))
      value.append(to: &line)
    }
    line.append(UInt8(ascii: "}"))
  }
}

extension Array: JSONMember where Element: JSONMember {
  public func append(to line: inout [UInt8]) { Element.append(self, to: &line) }
}

extension UInt8: JSONMember {
  public func append(to line: inout [UInt8]) { line.appendDecimal(Int64(self)) }
  public static func append(_ values: [UInt8], to line: inout [UInt8]) { line.appendSafeJSONString(values) }
}
