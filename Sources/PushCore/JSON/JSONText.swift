/// Decodes the content of strings.
enum JSONText {
  static func unescaped(_ node: JSONNode, _ bytes: borrowing Span<UInt8>) -> [UInt8] {
    var content: [UInt8] = []
    content.reserveCapacity(Int(node.end &- node.start))
    append(node, bytes, to: &content)
    return content
  }

  static func append(_ node: JSONNode, _ bytes: borrowing Span<UInt8>, to output: inout [UInt8]) {
    var at = Int(node.start)
    let end = Int(node.end)
    while at < end {
      let byte = bytes[at]
      if byte == 0x5C, let (scalar, after) = try? JSONScanner.escape(bytes, at) {
        appendScalar(scalar, to: &output)
        at = after
      } else {
        output.append(byte)
        at &+= 1
      }
    }
  }

  static func utf8Count(_ node: JSONNode, _ bytes: borrowing Span<UInt8>) -> Int {
    var count = Int(node.end &- node.start)
    guard node.has(JSONNode.escaped) else { return count }
    var at = Int(node.start)
    while at < Int(node.end) {
      if bytes[at] == 0x5C, let (scalar, after) = try? JSONScanner.escape(bytes, at) {
        count &-= (after &- at) &- utf8Size(scalar)
        at = after
      } else {
        at &+= 1
      }
    }
    return count
  }

  private static func utf8Size(_ scalar: UInt32) -> Int {
    scalar < 0x80 ? 1 : scalar < 0x800 ? 2 : scalar < 0x10000 ? 3 : 4
  }

  private static func appendScalar(_ scalar: UInt32, to output: inout [UInt8]) {
    guard let scalar = Unicode.Scalar(scalar) else { return }
    output.append(contentsOf: UTF8.encode(scalar) ?? UTF8.encodedReplacementCharacter)
  }

  /// At most 32 bytes of input in quotes, with everything but plain ASCII escaped: safe in logs and message headers.
  static func excerpt(_ content: [UInt8]) -> String {
    var text = "\""
    for byte in content.prefix(32) {
      if byte >= 0x20, byte < 0x7F, byte != 0x22, byte != 0x5C {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "\\x" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
      }
    }
    return text + (content.count > 32 ? "...\"" : "\"")
  }
}
