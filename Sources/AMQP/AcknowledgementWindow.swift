/// The deliveries of one channel that the broker still holds for us, and which of them may be acknowledged together.
///
/// Tags count 1, 2, 3 … (AMQP 0-9-1 §1.8.3.13), so a ring of one byte per delivery is enough.
struct AcknowledgementWindow {
  private enum Mark {
    static let inHand: UInt8 = 0
    /// Acknowledged by the handler, not yet told to the broker.
    static let waiting: UInt8 = 1
    static let settled: UInt8 = 2
  }

  private var marks = [UInt8](repeating: Mark.settled, count: 256)
  /// The lowest tag not yet settled.
  private var base: UInt64 = 1
  private var next: UInt64 = 1
  /// Deliveries acknowledged but not yet told to the broker.
  private(set) var waiting = 0

  /// Deliveries neither acknowledged nor rejected.
  private(set) var inHand = 0

  private func index(_ tag: UInt64) -> Int { Int(truncatingIfNeeded: tag) & (marks.count - 1) }

  mutating func reset() {
    base = 1
    next = 1
    waiting = 0
    inHand = 0
  }

  /// False when the broker's tag is not the next one.
  mutating func delivered(_ tag: UInt64) -> Bool {
    guard tag == next else { return false }
    if next - base == UInt64(marks.count) { grow() }
    marks[index(tag)] = Mark.inHand
    next += 1
    inHand += 1
    return true
  }

  private mutating func grow() {
    var larger = [UInt8](repeating: Mark.settled, count: marks.count * 2)
    for tag in base..<next { larger[Int(truncatingIfNeeded: tag) & (larger.count - 1)] = marks[index(tag)] }
    marks = larger
  }

  private func isInHand(_ tag: UInt64) -> Bool { tag >= base && tag < next && marks[index(tag)] == Mark.inHand }

  /// False for a tag that is unknown or settled already.
  mutating func acknowledge(_ tag: UInt64) -> Bool {
    guard isInHand(tag) else { return false }
    marks[index(tag)] = Mark.waiting
    waiting += 1
    inHand -= 1
    return true
  }

  /// Settles a delivery that is rejected by a frame of its own; false for a tag that is unknown or settled already.
  mutating func reject(_ tag: UInt64) -> Bool {
    guard isInHand(tag) else { return false }
    marks[index(tag)] = Mark.settled
    inHand -= 1
    return true
  }

  /// Takes what one acknowledgement of everything up to a tag may cover.
  mutating func takePrefix() -> (tag: UInt64, multiple: Bool)? {
    var last: UInt64 = 0
    var count = 0
    while base < next {
      let mark = marks[index(base)]
      guard mark != Mark.inHand else { break }
      if mark == Mark.waiting {
        last = base
        count += 1
      }
      base += 1
    }
    waiting -= count
    return count == 0 ? nil : (last, count > 1)
  }

  /// Takes, one by one, what lies behind a delivery still in hand.
  mutating func takeScattered(_ body: (UInt64) -> Void) {
    var tag = base
    while waiting > 0, tag < next {
      if marks[index(tag)] == Mark.waiting {
        marks[index(tag)] = Mark.settled
        waiting -= 1
        body(tag)
      }
      tag += 1
    }
  }
}
