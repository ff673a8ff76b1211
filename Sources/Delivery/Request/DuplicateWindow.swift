/// Recognises repeated requests: a producer's retransmission, or a redelivery after a lost acknowledgement. It remembers the
/// last `capacity` requests of a shard, except those that ended without reaching a device.
///
/// Two requests are the same if application, sender, message id, body and round on the retry ladder are equal. Requests
/// without a message id are not remembered.
struct DuplicateWindow {
  static let capacity = 16_384

  private struct Entry {
    let fingerprint: UInt64
    /// Unix milliseconds. From then on, the request counts as forgotten.
    var until = Int64.max
    /// True if the request is forgotten after it has been recognised once.
    var isForOne = false
  }

  /// A ring.
  private var entries: [Entry] = []
  private var next = 0
  /// Places in `entries`, by fingerprint: a hash table with open addressing.
  private var slots = [UInt16](repeating: free, count: mask + 1)
  private static let mask = 2 * capacity - 1
  private static let free = UInt16.max
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
  @inline(__always)
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
    let known = slots[slot(of: fingerprint)]
    if known != Self.free, now < entries[Int(known)].until {
      if entries[Int(known)].isForOne { remove(fingerprint) }
      return false
    }
    if next == entries.count {
      entries.append(Entry(fingerprint: fingerprint))
    } else {
      // A request that was inserted again since then has another entry.
      let oldest = slot(of: entries[next].fingerprint)
      if slots[oldest] == next { clear(oldest) }
      entries[next] = Entry(fingerprint: fingerprint)
    }
    slots[slot(of: fingerprint)] = UInt16(next)
    next = next + 1 == Self.capacity ? 0 : next + 1
    return true
  }

  /// Limits the memory of a request that reached no device and has a copy that waits until `time` (Unix milliseconds), or that
  /// the broker delivers once more before it.
  mutating func keep(_ fingerprint: UInt64, until time: Int64, isForOne: Bool = false) {
    let entry = slots[slot(of: fingerprint)]
    guard entry != Self.free, entries[Int(entry)].until > .min else { return }
    entries[Int(entry)].until = time
    entries[Int(entry)].isForOne = isForOne
  }

  /// Forgets a request that reached no device, so that it can be sent again.
  mutating func remove(_ fingerprint: UInt64) { keep(fingerprint, until: .min) }

  /// The slot with the fingerprint, or the free one for it.
  private func slot(of fingerprint: UInt64) -> Int {
    var slot = Self.home(of: fingerprint)
    while slots[slot] != Self.free, entries[Int(slots[slot])].fingerprint != fingerprint { slot = (slot + 1) & Self.mask }
    return slot
  }

  private static func home(of fingerprint: UInt64) -> Int { Int(truncatingIfNeeded: fingerprint) & mask }

  /// Frees the slot, and moves later ones up that would no longer be found.
  private mutating func clear(_ slot: Int) {
    var (gap, next) = (slot, (slot + 1) & Self.mask)
    while slots[next] != Self.free {
      let distance = (next - Self.home(of: entries[Int(slots[next])].fingerprint)) & Self.mask
      if distance >= (next - gap) & Self.mask {
        slots[gap] = slots[next]
        gap = next
      }
      next = (next + 1) & Self.mask
    }
    slots[gap] = Self.free
  }

  /// Hashes sixteen bytes per step. This is weaker than a keyed hash, but seed and fingerprints never leave the process.
  private func mix(_ bytes: [UInt8], into hash: inout UInt64) {
    let span = bytes.span
    var index = 0
    while index &+ 16 <= span.count {
      step(span.bigEndian(UInt64.self, at: index), span.bigEndian(UInt64.self, at: index &+ 8), &hash)
      index &+= 16
    }
    var first = UInt64(span.count)
    if index &+ 8 <= span.count {
      first = span.bigEndian(UInt64.self, at: index)
      index &+= 8
    }
    var tail = UInt64(span.count)
    while index < span.count {
      tail = tail &<< 8 | UInt64(span[index])
      index &+= 1
    }
    step(first, tail, &hash)
  }

  @inline(__always) private func step(_ first: UInt64, _ second: UInt64, _ hash: inout UInt64) {
    let product = (hash ^ first).multipliedFullWidth(by: second ^ factor)
    hash = product.low ^ product.high
  }
}
