import PushCore
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
      [0..<2, 3..<35, 36..<52, 53..<55].allSatisfy({ Bytes.areLowerHex(text[$0].span) }),
      !text.starts(with: "ff".utf8), text.count == 55 || !text.starts(with: "00".utf8), let flags = text[54].hexValue
    else { return nil }
    traceID = Array(text[3..<35])
    spanID = Array(text[36..<52])
    isSampled = flags & 1 == 1
    // The standard forbids ids of zeros only.
    guard [traceID, spanID].allSatisfy({ $0.contains { $0 != UInt8(ascii: "0") } }) else { return nil }
  }
}
