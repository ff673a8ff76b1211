import Wire

/// The header `traceparent` (W3C Trace Context, version 00 and compatible later ones).
struct TraceContext: Equatable {
  /// 32 and 16 hexadecimal digits in lower case.
  var traceID: [UInt8]
  var spanID: [UInt8]
  var isSampled: Bool

  init?(_ text: [UInt8]) {
    let dash = UInt8(ascii: "-")
    guard text.count >= 55, text[2] == dash, text[35] == dash, text[52] == dash, text.count == 55 || text[55] == dash,
      let version = Self.byte(text, at: 0), version != 0xFF, version != 0 || text.count == 55,
      let flags = Self.byte(text, at: 53)
    else { return nil }
    traceID = Array(text[3..<35])
    spanID = Array(text[36..<52])
    isSampled = flags & 1 == 1
    guard Self.isID(traceID), Self.isID(spanID) else { return nil }
  }

  /// True for hexadecimal digits in lower case that are not all zeros.
  private static func isID(_ digits: [UInt8]) -> Bool {
    digits.allSatisfy { digit($0) != nil } && digits.contains { $0 != UInt8(ascii: "0") }
  }

  private static func byte(_ text: [UInt8], at place: Int) -> UInt8? {
    guard let high = digit(text[place]), let low = digit(text[place + 1]) else { return nil }
    return high << 4 | low
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    (UInt8(ascii: "A")...UInt8(ascii: "F")).contains(byte) ? nil : byte.hexValue
  }
}
