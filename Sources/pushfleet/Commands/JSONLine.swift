import PushCore

/// One JSON object for a line of a command's `--json`.
struct JSONLine {
  private var text = [UInt8(ascii: "{")]

  /// The whole object.
  var bytes: [UInt8] { text + [UInt8(ascii: "}")] }

  mutating func set(_ name: String, _ value: String?) {
    begin(name)
    if let value { text.appendSafeJSONString(value) } else { text += Array("null".utf8) }
  }

  /// Bytes that aren't UTF-8 are replaced.
  mutating func set(_ name: String, _ value: [UInt8]?) { set(name, value.map { String(decoding: $0, as: UTF8.self) }) }

  mutating func set(_ name: String, _ value: Int64?) {
    begin(name)
    text += Array((value.map(String.init) ?? "null").utf8)
  }

  /// With one decimal place.
  mutating func set(_ name: String, _ value: Double?) {
    begin(name)
    text += Array((value.map { "\(($0 * 10).rounded() / 10)" } ?? "null").utf8)
  }

  mutating func set(_ name: String, _ values: [[UInt8]]) {
    begin(name)
    text.append(UInt8(ascii: "["))
    for (index, value) in values.enumerated() {
      if index > 0 { text.append(UInt8(ascii: ",")) }
      text.appendSafeJSONString(String(decoding: value, as: UTF8.self))
    }
    text.append(UInt8(ascii: "]"))
  }

  /// A time of Unix milliseconds.
  mutating func set(_ name: String, time: Int64?) { set(name, time.map(Timestamp.text)) }

  private mutating func begin(_ name: String) {
    if text.count > 1 { text.append(UInt8(ascii: ",")) }
    text.appendSafeJSONString(name)
    text.append(UInt8(ascii: ":"))
  }
}

extension String {
  /// For a terminal: control characters, which could do anything there, are replaced.
  var printable: String {
    let isTame = unicodeScalars.allSatisfy {
      $0.properties.generalCategory != .control && $0.properties.generalCategory != .format
    }
    guard !isTame else { return self }
    var tame = String.UnicodeScalarView()
    for scalar in unicodeScalars {
      let isWild = scalar.properties.generalCategory == .control || scalar.properties.generalCategory == .format
      tame.append(isWild ? "\u{FFFD}" : scalar)
    }
    return String(tame)
  }

  init(printing bytes: [UInt8]) { self = String(decoding: bytes, as: UTF8.self).printable }
}
