import PushCore

/// Writes one JSON object, member by member.
struct JSONLineWriter {
  private var bytes: [UInt8]
  private var isFirst = true

  /// Opens an object after what `line` already holds.
  init(_ line: [UInt8] = []) {
    bytes = line
    bytes.append(UInt8(ascii: "{"))
  }

  /// Closes the object and ends its line.
  consuming func finish() -> [UInt8] { closed() + [UInt8(ascii: "\n")] }

  /// Closes the object.
  consuming func closed() -> [UInt8] {
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  /// Bytes that are no UTF-8 are shown with replacement characters: a journal stays valid JSON whatever came.
  mutating func text(_ name: [UInt8], _ value: [UInt8]) {
    key(name)
    bytes.appendJSONString(Self.valid(value))
  }

  mutating func text(_ name: String, _ value: [UInt8]) { text(Array(name.utf8), value) }
  mutating func text(_ name: String, _ value: String) { text(Array(name.utf8), Array(value.utf8)) }

  mutating func integer(_ name: String, _ value: Int64) {
    key(Array(name.utf8))
    bytes.appendJSONInteger(value)
  }

  mutating func texts(_ name: [UInt8], _ values: [[UInt8]]) {
    key(name)
    bytes.append(UInt8(ascii: "["))
    for (index, value) in values.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      bytes.appendJSONString(Self.valid(value))
    }
    bytes.append(UInt8(ascii: "]"))
  }

  mutating func texts(_ name: String, _ values: [[UInt8]]) { texts(Array(name.utf8), values) }

  /// A value that is JSON already; line ends within it become spaces.
  mutating func raw(_ name: String, _ json: [UInt8]) {
    key(Array(name.utf8))
    bytes.append(contentsOf: json.lazy.map { $0 == 0x0a || $0 == 0x0d ? 0x20 : $0 })
  }

  mutating func object(_ name: String, _ members: (inout JSONLineWriter) -> Void) {
    key(Array(name.utf8))
    var inner = JSONLineWriter(bytes)
    members(&inner)
    bytes = inner.closed()
  }

  mutating func objects(_ name: String, _ objects: [(inout JSONLineWriter) -> Void]) {
    key(Array(name.utf8))
    bytes.append(UInt8(ascii: "["))
    for (index, members) in objects.enumerated() {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      var inner = JSONLineWriter(bytes)
      members(&inner)
      bytes = inner.closed()
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func key(_ name: [UInt8]) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    bytes.appendJSONString(Self.valid(name))
    bytes.append(UInt8(ascii: ":"))
  }

  private static func valid(_ text: [UInt8]) -> [UInt8] { Array(String(decoding: text, as: UTF8.self).utf8) }
}
