/// The deliveries of one channel that the broker still holds for us, and which of them may be acknowledged together.
///
/// Tags count 1, 2, 3 … (AMQP 0-9-1 §1.8.3.13), so a ring of one byte per delivery is enough. It is as long as what is in hand
/// needs: a delivery that stays in hand while many others come and go leaves it for a set of its own.
struct AcknowledgementWindow {
  private enum Mark {
    static let inHand: UInt8 = 0
    static let done: UInt8 = 1
  }

  private var marks = [UInt8](repeating: Mark.done, count: 256)
  /// The lowest tag in the ring; what is below it and not among `stragglers` is done.
  private var base: UInt64 = 1
  private var next: UInt64 = 1
  /// In hand, and below `base`.
  private var stragglers: Set<UInt64> = []
  /// Acknowledged by the handler, not yet told to the broker; in no order.
  private var untold: [UInt64] = []

  /// Deliveries acknowledged but not yet told to the broker.
  var waiting: Int { untold.count }

  /// Deliveries neither acknowledged nor rejected.
  private(set) var inHand = 0

  /// Bytes of the ring.
  var span: Int { marks.count }

  private func index(_ tag: UInt64) -> Int { Int(truncatingIfNeeded: tag) & (marks.count - 1) }

  mutating func reset() {
    base = 1
    next = 1
    inHand = 0
    stragglers.removeAll()
    untold.removeAll(keepingCapacity: true)
  }

  /// False when the broker's tag is not the next one.
  mutating func delivered(_ tag: UInt64) -> Bool {
    guard tag == next else { return false }
    if next - base == UInt64(marks.count) { makeRoom() }
    marks[index(tag)] = Mark.inHand
    next += 1
    inHand += 1
    return true
  }

  private mutating func makeRoom() {
    skipDone()
    guard next - base == UInt64(marks.count) else { return }
    if inHand - stragglers.count > marks.count / 2 { return grow() }
    stragglers.insert(base)
    base += 1
    skipDone()
  }

  private mutating func skipDone() {
    while base < next, marks[index(base)] == Mark.done { base += 1 }
  }

  private mutating func grow() {
    var larger = [UInt8](repeating: Mark.done, count: marks.count * 2)
    for tag in base..<next { larger[Int(truncatingIfNeeded: tag) & (larger.count - 1)] = marks[index(tag)] }
    marks = larger
  }

  /// False for a tag that is unknown or settled already.
  mutating func acknowledge(_ tag: UInt64) -> Bool {
    guard settle(tag) else { return false }
    untold.append(tag)
    return true
  }

  /// Settles a delivery that is rejected by a frame of its own; false for a tag that is unknown or settled already.
  mutating func reject(_ tag: UInt64) -> Bool { settle(tag) }

  private mutating func settle(_ tag: UInt64) -> Bool {
    if tag >= base {
      guard tag < next, marks[index(tag)] == Mark.inHand else { return false }
      marks[index(tag)] = Mark.done
    } else {
      guard !stragglers.isEmpty, stragglers.remove(tag) != nil else { return false }
    }
    inHand -= 1
    return true
  }

  /// Takes what one acknowledgement of everything up to a tag may cover.
  mutating func takePrefix() -> (tag: UInt64, multiple: Bool)? {
    skipDone()
    guard stragglers.isEmpty else { return nil }
    var last: UInt64 = 0
    var count = 0
    for tag in untold where tag < base {
      last = max(last, tag)
      count += 1
    }
    guard count > 0 else { return nil }
    if count == untold.count { untold.removeAll(keepingCapacity: true) } else { untold.removeAll { $0 < base } }
    return (last, count > 1)
  }

  /// Takes, one by one, what can't be acknowledged together because something before it is still in hand.
  mutating func takeScattered(_ body: (UInt64) -> Void) {
    for tag in untold { body(tag) }
    untold.removeAll(keepingCapacity: true)
  }
}
