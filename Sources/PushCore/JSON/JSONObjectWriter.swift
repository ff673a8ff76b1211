/// Writes one JSON object on one line, member by member. Invalid UTF-8 becomes U+FFFD; terminal control characters are escaped.
public struct JSONObjectWriter {
  private var bytes: [UInt8]
  private var isFirst = true

  public init(after line: consuming [UInt8] = []) {
    bytes = line
    bytes.append(UInt8(ascii: "{"))
  }

  /// An array of items that are JSON already.
  public static func array(_ items: [[UInt8]]) -> [UInt8] {
    [UInt8(ascii: "[")] + items.joined(separator: [UInt8(ascii: ",")]) + [UInt8(ascii: "]")]
  }

  public consuming func closed() -> [UInt8] {
    bytes.append(UInt8(ascii: "}"))
    return bytes
  }

  public mutating func set(_ name: String, _ values: [[UInt8]]) {
    begin(name)
    values.append(to: &bytes)
  }

  /// Sets a value that is JSON already; its line ends become spaces.
  public mutating func set(_ name: String, raw json: [UInt8]) {
    begin(name)
    JSONRaw(json).append(to: &bytes)
  }

  public mutating func set(_ name: String, object members: (inout JSONObjectWriter) -> Void) {
    begin(name)
    append(members)
  }

  /// Sets an array of objects.
  /// - Parameter members: sets the members of the object with an index.
  public mutating func set(_ name: String, objects count: Int, _ members: (Int, inout JSONObjectWriter) -> Void) {
    begin(name)
    bytes.append(UInt8(ascii: "["))
    for index in 0..<count {
      if index > 0 { bytes.append(UInt8(ascii: ",")) }
      append { members(index, &$0) }
    }
    bytes.append(UInt8(ascii: "]"))
  }

  private mutating func append(_ members: (inout JSONObjectWriter) -> Void) {
    bytes.append(UInt8(ascii: "{"))
    isFirst = true
    members(&self)
    bytes.append(UInt8(ascii: "}"))
    isFirst = false
  }

  private mutating func begin(_ name: String) {
    if !isFirst { bytes.append(UInt8(ascii: ",")) }
    isFirst = false
    bytes.appendSafeJSONString(name)
    bytes.append(UInt8(ascii: ":"))
  }

  // MARK: Members that are written as null if they are absent

  public mutating func set(_ name: String, _ value: [UInt8]?) {
    begin(name)
    if let value { bytes.appendSafeJSONString(value) } else { bytes.append("null") }
  }

  /// Leaves out an absent member.
  public mutating func set(_ name: String, ifKnown value: [UInt8]?) { if let value { set(name, value) } }

  public mutating func set(_ name: String, _ value: String?) { set(name, value.map { Array($0.utf8) }) }

  public mutating func set(_ name: String, _ value: Int64?) {
    begin(name)
    if let value { bytes.appendDecimal(value) } else { bytes.append("null") }
  }

  public mutating func set(_ name: String, flag: Bool) { set(name, raw: Array((flag ? "true" : "false").utf8)) }

  /// - Parameter time: Unix milliseconds.
  public mutating func set(_ name: String, time: Int64?) { set(name, time.map(Timestamp.text)) }
}
