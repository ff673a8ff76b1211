/// Remembers the last requests of a shard that have reached a device, so that a producer's retransmission, or a
/// redelivery whose acknowledgement was lost, is not sent again.
///
/// A request is known by its message id, its body and its round on the ladder; one without a message id is never remembered.
/// The window is the last `capacity` requests of this shard.
struct DuplicateWindow {
  static let capacity = 16_384

  private var seen: Set<UInt64> = []
  private var order: [UInt64] = []
  private var next = 0
  private let seed = UInt64.random(in: .min ... .max)

  func fingerprint(messageID: [UInt8], body: [UInt8], round: Int) -> UInt64 {
    var hash = seed ^ UInt64(truncatingIfNeeded: round)
    Self.mix(messageID, into: &hash)
    Self.mix(body, into: &hash)
    return hash
  }

  /// - Returns: false when the request is in the window already.
  mutating func insert(_ fingerprint: UInt64) -> Bool {
    guard seen.insert(fingerprint).inserted else { return false }
    if order.count < Self.capacity {
      order.append(fingerprint)
    } else {
      seen.remove(order[next])
      order[next] = fingerprint
      next = (next + 1) % Self.capacity
    }
    return true
  }

  /// Forgets a request that reached no device: sending it again is right.
  mutating func remove(_ fingerprint: UInt64) { seen.remove(fingerprint) }

  /// Eight bytes a step; not for hostile keys: a producer could only suppress its own requests.
  private static func mix(_ bytes: [UInt8], into hash: inout UInt64) {
    let span = bytes.span
    var index = 0
    while index &+ 8 <= span.count {
      var word: UInt64 = 0
      // Bounds are checked once for the eight, so that they are one load.
      let eight = span.extracting(index..<index &+ 8)
      for offset in 0..<8 { word |= UInt64(eight[offset]) &<< UInt64(offset &* 8) }
      step(word, &hash)
      index &+= 8
    }
    var tail = UInt64(span.count)
    while index < span.count {
      tail = tail &<< 8 | UInt64(span[index])
      index &+= 1
    }
    step(tail, &hash)
  }

  @inline(__always) private static func step(_ word: UInt64, _ hash: inout UInt64) {
    let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
    hash = product.low ^ product.high &+ word
  }
}
