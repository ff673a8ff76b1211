/// The unconfirmed publishes of one channel, oldest first. Confirms count publishes 1, 2, 3 … since `confirm.select`
/// (https://www.rabbitmq.com/docs/confirms). A confirm may cover several publishes, and confirms may arrive out of order. A
/// ring holds one small slot for each outstanding publish.
struct ConfirmWindow {
  struct Slot {
    var tag: Int
    /// Identifies the message if the broker returns it.
    var fingerprint: UInt64
    /// Reply code of `basic.return`; 0 if the message was not returned.
    var returnCode: UInt16
    var isSettled: Bool
  }

  private var slots = [Slot](repeating: Slot(tag: 0, fingerprint: 0, returnCode: 0, isSettled: true), count: 1024)
  /// Sequence number of the oldest unsettled publish.
  private(set) var base: UInt64 = 1
  private(set) var next: UInt64 = 1
  private(set) var unconfirmed = 0

  private func index(_ sequence: UInt64) -> Int { Int(truncatingIfNeeded: sequence) & (slots.count - 1) }

  /// Restarts the sequence numbers for a new channel. The caller has settled everything outstanding before.
  mutating func reset() {
    base = 1
    next = 1
    unconfirmed = 0
  }

  mutating func published(tag: Int, fingerprint: UInt64) {
    if next - base == UInt64(slots.count) { grow() }
    slots[index(next)] = Slot(tag: tag, fingerprint: fingerprint, returnCode: 0, isSettled: false)
    next += 1
    unconfirmed += 1
  }

  private mutating func grow() {
    var larger = [Slot](repeating: slots[0], count: slots.count * 2)
    for sequence in base..<next { larger[Int(truncatingIfNeeded: sequence) & (larger.count - 1)] = slots[index(sequence)] }
    slots = larger
  }

  /// Marks all outstanding messages that match a returned one. Returns false if none matches. Several messages may have the
  /// same fingerprint. All of them count as returned: a repeated publish is harmless, but a returned message must not count as
  /// routed.
  mutating func returned(fingerprint: UInt64, code: UInt16) -> Bool {
    var isKnown = false
    for sequence in base..<next {
      let index = index(sequence)
      guard !slots[index].isSettled, slots[index].fingerprint == fingerprint else { continue }
      slots[index].returnCode = code
      isKnown = true
    }
    return isKnown
  }

  /// The range that a confirm settles: one sequence number, or all up to it (0: all). Returns nil if the broker confirms a
  /// number that was never published, and an empty range if it was settled before.
  func covered(by sequence: UInt64, multiple: Bool) -> Range<UInt64>? {
    guard sequence < next, sequence > 0 || multiple else { return nil }
    if multiple { return base..<(sequence == 0 ? next : max(base, sequence + 1)) }
    return sequence < base ? base..<base : sequence..<sequence + 1
  }

  /// Settles a publish and returns its slot, or nil if it was settled before.
  mutating func settle(_ sequence: UInt64) -> Slot? {
    guard sequence >= base, sequence < next else { return nil }
    let position = index(sequence)
    guard !slots[position].isSettled else { return nil }
    slots[position].isSettled = true
    unconfirmed -= 1
    let slot = slots[position]
    while base < next, slots[index(base)].isSettled { base += 1 }
    return slot
  }
}
