import PushCore

/// A JSON object with ordered members. Unknown values are `null`.
struct JSONObject: ExpressibleByDictionaryLiteral {
  private var members: [(name: String, value: any JSONMember)] = []

  init(dictionaryLiteral members: (String, any JSONMember)...) { self.members = members.map { ($0, $1) } }
  init(_ members: some Sequence<(String, any JSONMember)>) { self.members = members.map { ($0, $1) } }

  static func + (first: JSONObject, second: JSONObject) -> JSONObject {
    var sum = first
    sum.members += second.members
    return sum
  }

  var line: [UInt8] { JSONObjectWriter.object(write) }

  /// On one line, appended to the members of an existing one-line object.
  func line(after object: [UInt8]) -> [UInt8] {
    let earlier = object.dropLast()
    return earlier + (earlier.last == UInt8(ascii: "{") ? [] : [UInt8(ascii: ",")]) + line.dropFirst()
  }

  fileprivate func write(to line: inout JSONObjectWriter) {
    for member in members { member.value.set(member.name, in: &line) }
  }
}

protocol JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter)
}

/// A member that is left out if its value is nil.
struct JSONOptional<Value: JSONMember>: JSONMember {
  private let value: Value?

  init(_ value: Value?) { self.value = value }
  func set(_ name: String, in line: inout JSONObjectWriter) { value?.set(name, in: &line) }
}

struct JSONRaw: JSONMember {
  private let json: [UInt8]

  init(_ json: [UInt8]) { self.json = json }
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, raw: json) }
}

extension Optional: JSONMember where Wrapped: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) {
    if let self { self.set(name, in: &line) } else { line.set(name, nil as String?) }
  }
}

extension String: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, self) }
}

extension Int: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, Int64(self)) }
}

extension Int64: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, self) }
}

extension Bool: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, flag: self) }
}

extension Double: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, figure: self) }
}

extension JSONObject: JSONMember {
  func set(_ name: String, in line: inout JSONObjectWriter) { line.set(name, object: write) }
}

extension Array: JSONMember where Element: JSONElement {
  func set(_ name: String, in line: inout JSONObjectWriter) { Element.set(name, self, in: &line) }
}

/// An array element; an array of bytes is written as text.
protocol JSONElement {
  static func set(_ name: String, _ values: [Self], in line: inout JSONObjectWriter)
}

extension UInt8: JSONElement {
  static func set(_ name: String, _ values: [UInt8], in line: inout JSONObjectWriter) { line.set(name, values) }
}

extension [UInt8]: JSONElement {
  static func set(_ name: String, _ values: [[UInt8]], in line: inout JSONObjectWriter) { line.set(name, values) }
}

extension JSONObject: JSONElement {
  static func set(_ name: String, _ values: [JSONObject], in line: inout JSONObjectWriter) {
    line.set(name, objects: values.map { $0.write })
  }
}
