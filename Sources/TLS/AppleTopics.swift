/// Reads the extension of an Apple push certificate that lists its topics (`SEQUENCE { UTF8String topic, SEQUENCE { UTF8String
/// kind, … }, … }`).
enum AppleTopics {
  static let identifier = "1.2.840.113635.100.6.3.6"

  /// The topics in the extension. If its form is wrong, the topics before the error.
  static func names(in der: [UInt8]) -> [String] {
    guard let outer = element(der[...]), outer.tag == 0x30 else { return [] }
    var topics: [String] = []
    var rest = outer.content
    while let next = element(rest) {
      if next.tag == 0x0C { topics.append(String(decoding: next.content, as: UTF8.self)) }
      rest = next.rest
    }
    return topics
  }

  /// Splits off one DER element: its tag, its content, and the rest.
  private static func element(_ bytes: ArraySlice<UInt8>) -> (tag: UInt8, content: ArraySlice<UInt8>, rest: ArraySlice<UInt8>)?
  {
    guard bytes.count >= 2, let tag = bytes.first else { return nil }
    var rest = bytes.dropFirst()
    var length = Int(rest.removeFirst())
    if length >= 0x80 {
      let octets = length & 0x7F
      guard (1...3).contains(octets), rest.count >= octets else { return nil }
      length = rest.prefix(octets).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(octets)
    }
    guard rest.count >= length else { return nil }
    return (tag, rest.prefix(length), rest.dropFirst(length))
  }
}
