/// Recognises repeated requests: a producer's retransmission, or a redelivery after a lost acknowledgement. It remembers the
/// last `capacity` requests of a shard, except those that ended without reaching a device.
///
/// Two requests are the same if application, sender, message id, body and round on the retry ladder are equal. Requests
/// without a message id are not remembered.
struct DuplicateWindow {
  static let capacity = 16_384

  private struct Place {
    /// The index in `order`.
    var index: Int
    /// Unix milliseconds. From then on, the request counts as forgotten.
    var until = Int64.max
    /// True if the request is forgotten after it has been recognised once.
    var isForOne = false
  }

  private var places: [UInt64: Place] = [:]
  /// A ring. It can contain fingerprints that `places` no longer has.
  private var order: [UInt64] = []
  private var next = 0
  private let seed: UInt64
  /// Derived from the seed, and as secret.
  private let factor: UInt64

  /// - Parameter seed: random, so that no producer can construct two requests with the same fingerprint.
  init(seed: UInt64) {
    self.seed = seed
    factor = (seed ^ 0xBF58_476D_1CE4_E5B9) &* 0x9E37_79B9_7F4A_7C15
  }

  /// - Parameters:
  ///   - app: the index of the request's application.
  ///   - sender: the sender that the request names; nil for none.
  func fingerprint(app: Int, sender: [UInt8]?, messageID: [UInt8], body: [UInt8], round: Int) -> UInt64 {
    var hash = seed
    // In one operand, an application and a round could cancel each other out.
    let others = UInt64(truncatingIfNeeded: round) &<< 16 ^ UInt64(truncatingIfNeeded: sender?.count ?? 0xFFFF)
    step(UInt64(truncatingIfNeeded: app), others, &hash)
    if let sender { mix(sender, into: &hash) }
    mix(messageID, into: &hash)
    mix(body, into: &hash)
    return hash
  }

  /// - Parameter now: Unix milliseconds.
  /// - Returns: false if the window already has the request.
  mutating func insert(_ fingerprint: UInt64, at now: Int64) -> Bool {
    if let place = places.updateValue(Place(index: next), forKey: fingerprint), now < place.until {
      places[fingerprint] = place.isForOne ? nil : place
      return false
    }
    if next == order.count {
      order.append(fingerprint)
    } else {
      // A fingerprint that was inserted again since then has another index.
      if order[next] != fingerprint, let oldest = places.index(forKey: order[next]), places.values[oldest].index == next {
        places.remove(at: oldest)
      }
      order[next] = fingerprint
    }
    next = next + 1 == Self.capacity ? 0 : next + 1
    return true
  }

  /// Limits the memory of a request that reached no device and has a copy that waits until `time` (Unix milliseconds), or that
  /// the broker delivers once more before it.
  mutating func keep(_ fingerprint: UInt64, until time: Int64, isForOne: Bool = false) {
    places[fingerprint]?.until = time
    places[fingerprint]?.isForOne = isForOne
  }

  /// Forgets a request that reached no device, so that it can be sent again.
  mutating func remove(_ fingerprint: UInt64) { places[fingerprint] = nil }

  /// Hashes sixteen bytes per step. This is weaker than a keyed hash, but seed and fingerprints never leave the process.
  private func mix(_ bytes: [UInt8], into hash: inout UInt64) {
    let span = bytes.span
    var index = 0
    while index &+ 16 <= span.count {
      step(Self.word(span, index), Self.word(span, index &+ 8), &hash)
      index &+= 16
    }
    var first = UInt64(span.count)
    if index &+ 8 <= span.count {
      first = Self.word(span, index)
      index &+= 8
    }
    var tail = UInt64(span.count)
    while index < span.count {
      tail = tail &<< 8 | UInt64(span[index])
      index &+= 1
    }
    step(first, tail, &hash)
  }

  /// Checks the bounds once for all eight bytes, so that the compiler makes one load.
  @inline(__always) private static func word(_ span: borrowing Span<UInt8>, _ index: Int) -> UInt64 {
    let eight = span.extracting(index..<index &+ 8)
    var word: UInt64 = 0
    for offset in 0..<8 { word |= UInt64(eight[offset]) &<< UInt64(offset &* 8) }
    return word
  }

  @inline(__always) private func step(_ first: UInt64, _ second: UInt64, _ hash: inout UInt64) {
    let product = (hash ^ first).multipliedFullWidth(by: second ^ factor)
    hash = product.low ^ product.high
  }
}
