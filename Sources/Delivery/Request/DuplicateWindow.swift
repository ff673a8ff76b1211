/// Remembers the last requests of a shard that have reached a device or wait to be tried again, so that a producer's
/// retransmission, or a redelivery whose acknowledgement was lost, is not sent again.
///
/// A request is known by its application, sender, message id and body and by its round on the ladder; one without a message id
/// is never remembered. The window is the last `capacity` requests of this shard.
struct DuplicateWindow {
  static let capacity = 16_384

  private struct Place {
    /// In `order`.
    var index: Int
    /// Unix milliseconds from which it is as good as forgotten.
    var until = Int64.max
    /// Forgotten once it has been recognised.
    var isForOne = false
  }

  private var places: [UInt64: Place] = [:]
  /// A ring, with places of fingerprints that were removed since.
  private var order: [UInt64] = []
  private var next = 0
  private let seed: UInt64

  /// - Parameter seed: random, so that nobody can make two requests alike.
  init(seed: UInt64) { self.seed = seed }

  /// - Parameters:
  ///   - app: index of the application that is sent to.
  ///   - sender: which of its senders the request names.
  func fingerprint(app: Int, sender: [UInt8]?, messageID: [UInt8], body: [UInt8], round: Int) -> UInt64 {
    var hash = seed ^ UInt64(truncatingIfNeeded: round)
    Self.step(UInt64(truncatingIfNeeded: app), &hash)
    Self.mix(sender ?? [], into: &hash)
    Self.mix(messageID, into: &hash)
    Self.mix(body, into: &hash)
    return hash
  }

  /// - Parameter now: unix milliseconds.
  /// - Returns: false when the request is in the window already.
  mutating func insert(_ fingerprint: UInt64, at now: Int64) -> Bool {
    if let place = places.updateValue(Place(index: next), forKey: fingerprint), now < place.until {
      places[fingerprint] = place.isForOne ? nil : place
      return false
    }
    if next == order.count {
      order.append(fingerprint)
    } else {
      // What was removed, or has been inserted again since, no longer stands here.
      if order[next] != fingerprint, let oldest = places.index(forKey: order[next]), places.values[oldest].index == next {
        places.remove(at: oldest)
      }
      order[next] = fingerprint
    }
    next = next + 1 == Self.capacity ? 0 : next + 1
    return true
  }

  /// Of a request that reached no device, and of which a copy waits until then.
  mutating func keep(_ fingerprint: UInt64, until time: Int64) { places[fingerprint]?.until = time }

  /// Of a request that reached no device, and that the broker delivers once more by then.
  mutating func keepForOne(_ fingerprint: UInt64, until time: Int64) {
    places[fingerprint]?.until = time
    places[fingerprint]?.isForOne = true
  }

  /// Forgets a request that reached no device: sending it again is right.
  mutating func remove(_ fingerprint: UInt64) { places[fingerprint] = nil }

  /// Eight bytes a step. No match for a keyed hash, but nobody outside sees the seed or a fingerprint.
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
