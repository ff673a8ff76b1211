/// The publishes of one channel that the broker has not confirmed yet, oldest first.
///
/// Confirms count publishes 1, 2, 3 … since `confirm.select` (https://www.rabbitmq.com/docs/confirms), may cover several
/// and may come out of order; a ring holds one small slot for each outstanding publish.
struct ConfirmWindow {
  struct Slot {
    /// The caller's.
    var tag: Int
    /// Tells the message from others when it is returned.
    var fingerprint: UInt64
    /// Reply code of `basic.return`; 0 when not returned.
    var returnCode: UInt16
    var isSettled: Bool
  }

  private var slots = [Slot](repeating: Slot(tag: 0, fingerprint: 0, returnCode: 0, isSettled: true), count: 1024)
  /// Sequence number of the oldest unsettled publish.
  private(set) var base: UInt64 = 1
  private(set) var next: UInt64 = 1
  /// Publishes without a confirm.
  private(set) var unconfirmed = 0

  private func index(_ sequence: UInt64) -> Int { Int(truncatingIfNeeded: sequence) & (slots.count - 1) }

  /// The channel was opened: sequence numbers start again. Whatever was outstanding has been settled before.
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

  /// Marks what a returned message may have been; false when nothing outstanding looks like it.
  ///
  /// Outstanding messages that can't be told from the returned one count as returned as well: a repeated publish is
  /// harmless, a publish taken for routed is not.
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

  /// What a confirm settles: one sequence number, or all up to it (0: all). Nil when the broker confirms what was never
  /// published; empty when it was settled before.
  func covered(by sequence: UInt64, multiple: Bool) -> Range<UInt64>? {
    guard sequence < next, sequence > 0 || multiple else { return nil }
    if multiple { return base..<(sequence == 0 ? next : max(base, sequence + 1)) }
    return sequence < base ? base..<base : sequence..<sequence + 1
  }

  /// Takes an unsettled publish; nil when it was settled before.
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
