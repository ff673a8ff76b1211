/// Turns a body into a tape in one pass: RFC 8259 with the strict choices of RFC 7493. UTF-8 only, no byte-order mark, no
/// duplicate name in an object, no lone surrogate. It doesn't recurse: depth costs no stack.
enum JSONReader {
  private enum Expectation {
    case value, firstElement, firstName, name, separator
  }

  private static let none = Int(UInt32.max)

  static func read(_ body: [UInt8], _ limits: JSONLimits) throws(JSONError) -> ContiguousArray<JSONNode> {
    let bytes = body.span
    let length = bytes.count
    guard length <= limits.bytes else {
      throw JSONError(offset: limits.bytes, reason: "body of \(length) bytes, at most \(limits.bytes) allowed")
    }
    try refuseForeignEncoding(bytes)

    var nodes = ContiguousArray<JSONNode>()
    nodes.reserveCapacity(min(length / 12 + 8, limits.nodes))
    var container = none
    var containerIsObject = false
    var depth = 0
    var expectation = Expectation.value
    var at = 0

    while true {
      while at < length, isSpace(bytes[at]) { at &+= 1 }
      guard at < length else {
        if expectation == .separator, depth == 0 { return nodes }
        throw JSONError(offset: length, reason: length == 0 ? "the body is empty" : "the body ends too early")
      }
      var byte = bytes[at]

      if expectation == .separator, depth > 0, byte == UInt8(ascii: ",") {
        expectation = containerIsObject ? .name : .value
        at = try afterSpaces(bytes, at &+ 1)
        byte = bytes[at]
      }
      if expectation == .name || (expectation == .firstName && byte != UInt8(ascii: "}")) {
        guard byte == UInt8(ascii: "\"") else {
          throw JSONError(offset: at, reason: "expected a name in quotes, found \(describe(byte))")
        }
        guard nodes.count < limits.nodes else { throw tooMany(at, limits) }
        let (end, flags) = try JSONScanner.string(bytes, from: at &+ 1)
        nodes.append(JSONNode(.string, start: at &+ 1, end: end, next: nodes.count &+ 1, flags: flags))
        at = try afterSpaces(bytes, end &+ 1)
        guard bytes[at] == UInt8(ascii: ":") else {
          throw JSONError(offset: at, reason: "expected a colon, found \(describe(bytes[at]))")
        }
        at = try afterSpaces(bytes, at &+ 1)
        byte = bytes[at]
        expectation = .value
      }
      if expectation == .value || (expectation == .firstElement && byte != UInt8(ascii: "]")) {
        guard nodes.count < limits.nodes else { throw tooMany(at, limits) }
        if container != none { nodes[container].addChild() }
        let index = nodes.count
        expectation = .separator
        switch byte {
        case UInt8(ascii: "\""):
          let (end, flags) = try JSONScanner.string(bytes, from: at &+ 1)
          nodes.append(JSONNode(.string, start: at &+ 1, end: end, next: index &+ 1, flags: flags))
          at = end &+ 1
        case UInt8(ascii: "{"), UInt8(ascii: "["):
          guard depth < limits.depth else {
            throw JSONError(offset: at, reason: "nested deeper than \(limits.depth) levels")
          }
          containerIsObject = byte == UInt8(ascii: "{")
          nodes.append(JSONNode(containerIsObject ? .object : .array, start: at, end: at, next: container))
          container = index
          depth &+= 1
          expectation = containerIsObject ? .firstName : .firstElement
          at &+= 1
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
          let (end, flags) = try JSONScanner.number(bytes, from: at)
          nodes.append(JSONNode(.number, start: at, end: end, next: index &+ 1, flags: flags))
          at = end
        default:
          let (kind, end) = try JSONScanner.literal(bytes, from: at)
          nodes.append(JSONNode(kind, start: at, end: end, next: index &+ 1))
          at = end
        }
        continue
      }

      if expectation == .separator {
        guard depth > 0 else { throw JSONError(offset: at, reason: "expected the end, found \(describe(byte))") }
        guard byte == (containerIsObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
          throw JSONError(
            offset: at, reason: "expected a comma or \(containerIsObject ? "}" : "]"), found \(describe(byte))")
        }
      }
      // Only the right closing bracket is left.
      at &+= 1
      if containerIsObject { try JSONNames.refuseDuplicates(nodes, of: container, in: bytes) }
      let outer = Int(nodes[container].next)
      nodes[container].end = UInt32(truncatingIfNeeded: at)
      nodes[container].next = UInt32(truncatingIfNeeded: nodes.count)
      container = outer
      depth &-= 1
      if depth > 0 { containerIsObject = nodes[container].kind == .object }
      expectation = .separator
    }
  }

  /// RFC 8259 §8.1: UTF-8 without a mark. UTF-16 and UTF-32 texts have a zero in their first two bytes.
  private static func refuseForeignEncoding(_ bytes: borrowing Span<UInt8>) throws(JSONError) {
    guard bytes.count >= 2 else { return }
    let (first, second) = (bytes[0], bytes[1])
    if first == 0xEF, second == 0xBB { throw JSONError(offset: 0, reason: "a byte-order mark, expected UTF-8 without one") }
    if (first == 0xFE && second == 0xFF) || (first == 0xFF && second == 0xFE) || first == 0 || second == 0 {
      throw JSONError(offset: 0, reason: "UTF-16 or UTF-32, expected UTF-8")
    }
  }

  /// The place of the next byte that is no white space.
  @inline(__always)
  private static func afterSpaces(_ bytes: borrowing Span<UInt8>, _ start: Int) throws(JSONError) -> Int {
    var at = start
    while at < bytes.count, isSpace(bytes[at]) { at &+= 1 }
    guard at < bytes.count else { throw JSONError(offset: bytes.count, reason: "the body ends too early") }
    return at
  }

  private static func tooMany(_ offset: Int, _ limits: JSONLimits) -> JSONError {
    JSONError(offset: offset, reason: "more than \(limits.nodes) names and values")
  }

  @inline(__always)
  private static func isSpace(_ byte: UInt8) -> Bool {
    byte <= 0x20 && (byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09)
  }

  /// A byte in words that are safe to log.
  static func describe(_ byte: UInt8) -> String {
    if byte > 0x20, byte < 0x7F { return "'\(Character(Unicode.Scalar(byte)))'" }
    return "byte 0x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
  }
}
