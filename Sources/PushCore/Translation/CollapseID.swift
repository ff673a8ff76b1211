/// Makes `apns-collapse-id`, at most 64 bytes (Apple: "Sending notification requests to APNs"). Different collapse keys get
/// different ids (GS-034). A key gets the same id in every worker.
enum CollapseID {
  static let limit = 64
  /// The id of another key: its beginning, cut between characters, `~`, and the first 100 bits of the key's SHA-1.
  private static let longestPrefix = 43
  private static let hashDigits = 20
  private static let mark = UInt8(ascii: "~")
  private static let digits = Array("0123456789abcdefghijklmnopqrstuv".utf8)

  static func make(_ request: SendRequest) -> [UInt8]? {
    request.collapseKeyNode.flatMap { make(request.document.string($0)) }
  }

  /// The key itself if a header field can hold it; nil if it is empty.
  static func make(_ key: [UInt8]) -> [UInt8]? {
    guard !key.isEmpty else { return nil }
    return key.count <= limit && isField(key) && !isMarked(key) ? key : marked(key)
  }

  static func header(_ id: [UInt8]) -> [UInt8]? { isField(id) ? id : make(id) }

  /// No control characters, and no space at the ends (RFC 9113 §8.2.1).
  private static func isField(_ key: [UInt8]) -> Bool {
    key.first != 0x20 && key.last != 0x20 && key.allSatisfy { $0 >= 0x20 && $0 != 0x7F }
  }

  /// True if the key looks like an id made from another key.
  private static func isMarked(_ key: [UInt8]) -> Bool {
    guard key.count > hashDigits, key[key.count - hashDigits - 1] == mark else { return false }
    return key.suffix(hashDigits).allSatisfy(digits.contains)
  }

  private static func marked(_ key: [UInt8]) -> [UInt8] {
    var end = min(key.count, longestPrefix)
    while end > 0, end < key.count, key[end] & 0xC0 == 0x80 { end -= 1 }
    var id = Array(key[..<end].filter { $0 >= 0x20 && $0 != 0x7F }.drop { $0 == 0x20 })
    id.append(mark)
    appendHash(of: key, to: &id)
    return id
  }

  private static func appendHash(of key: [UInt8], to id: inout [UInt8]) {
    var hash = SHA1()
    hash.append(key.span)
    let (a, b, c, d, _) = hash.finish()
    // Ten digits of five bits from each half of the first hundred bits.
    for half in [UInt64(a) << 18 | UInt64(b) >> 14, UInt64(b & 0x3FFF) << 36 | UInt64(c) << 4 | UInt64(d) >> 28] {
      for shift in stride(from: UInt64(45), through: 0, by: -5) { id.append(digits[Int(half >> shift & 31)]) }
    }
  }
}
