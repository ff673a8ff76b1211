/// A JSON object with ordered members. Unknown values are `null`.
public struct JSONObject: ExpressibleByDictionaryLiteral {
  private var members: [(name: String, value: any JSONMember)] = []

  public init(dictionaryLiteral members: (String, any JSONMember)...) { self.members = members.map { ($0, $1) } }
  public init(_ members: some Sequence<(String, any JSONMember)>) { self.members = members.map { ($0, $1) } }

  public static func + (first: JSONObject, second: JSONObject) -> JSONObject {
    var sum = first
    sum.members += second.members
    return sum
  }

  public var line: [UInt8] { JSONObjectWriter.object(write) }

  /// On one line, appended to the members of an existing one-line object.
  public func line(after object: [UInt8]) -> [UInt8] {
    let earlier = object.dropLast()
    return earlier + (earlier.last == UInt8(ascii: "{") ? [] : [UInt8(ascii: ",")]) + line.dropFirst()
  }

  fileprivate func write(to line: inout JSONObjectWriter) {
    for member in members { member.value.set(member.name, in: &line) }
  }
}

public protocol JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter)
}

/// A member that is left out if its value is nil.
public struct JSONOptional<Value: JSONMember>: JSONMember {
  private let value: Value?

  public init(_ value: Value?) { self.value = value }
  public func set(_ name: String, in line: inout JSONObjectWriter) { value?.set(name, in: &line) }
}

public struct JSONRaw: JSONMember {
  private let json: [UInt8]

  public init(_ json: [UInt8]) { self.json = json }
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, raw: json) }
}

extension Optional: JSONMember where Wrapped: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) {
    if let self { self.set(name, in: &line) } else { line.set(name, nil as String?) }
  }
}

extension String: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, self) }
}

extension Int: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, Int64(self)) }
}

extension Int64: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, self) }
}

extension Bool: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, flag: self) }
}

extension Double: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, figure: self) }
}

extension JSONObject: JSONMember {
  public func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, object: write) }
}

extension Array: JSONMember where Element: JSONElement {
  public func set(_ name: String, in line: inout JSONObjectWriter) { Element.set(name, self, in: &line) }
}

/// An array element; an array of bytes is written as text.
public protocol JSONElement {
  static func set(_ name: String, _ values: [Self], in line: inout JSONObjectWriter)
}

extension UInt8: JSONElement {
  public static func set(_ name: String, _ values: [UInt8], in line: inout JSONObjectWriter) { line.set(name, values) }
}

extension [UInt8]: JSONElement {
  public static func set(_ name: String, _ values: [[UInt8]], in line: inout JSONObjectWriter) { line.set(name, values) }
}

extension JSONObject: JSONElement {
  public static func set(_ name: String, _ values: [JSONObject], in line: inout JSONObjectWriter) {
    line.set(name, objects: values.count) { values[$0].write(to: &$1) }
  }
}
