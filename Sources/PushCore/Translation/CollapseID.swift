/// `apns-collapse-id`: at most 64 bytes (Apple: "Sending notification requests to APNs").
enum CollapseID {
  static let limit = 64

  static func make(_ request: borrowing SendRequest) -> [UInt8]? {
    request.collapseKeyNode.flatMap { make(request.document.string($0)) }
  }

  /// Cut at the limit on a character's boundary, without control characters, and without white space at the ends, where a header field
  /// can't have it (RFC 9113 §8.2.1); nil when nothing is left.
  static func make(_ key: [UInt8]) -> [UInt8]? {
    var end = min(key.count, limit)
    if end < key.count {
      while end > 0, key[end] & 0xC0 == 0x80 { end -= 1 }
    }
    var text = key[..<end]
    if !text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) { text = text.filter { $0 >= 0x20 && $0 != 0x7F }[...] }
    while text.first == 0x20 { text.removeFirst() }
    while text.last == 0x20 { text.removeLast() }
    return text.isEmpty ? nil : Array(text)
  }
}
