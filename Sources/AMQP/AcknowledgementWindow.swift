/// The unacknowledged deliveries of one channel, and which of them one acknowledgement may cover. Tags count 1, 2, 3 … (AMQP
/// 0-9-1 §1.8.3.13), so a ring of flags is enough. A delivery that outlasts many others moves from the ring to a set.
struct AcknowledgementWindow {
  /// The ring: whether each delivery is settled.
  private var isDone = [Bool](repeating: true, count: 256)
  /// The lowest tag in the ring. Lower tags are done, unless they are in `stragglers`.
  private var base: UInt64 = 1
  private var next: UInt64 = 1
  /// Tags below `base` that are still in hand.
  private var stragglers: Set<UInt64> = []
  /// Tags that the handler acknowledged and that are not yet sent to the broker; in no order.
  private var untold: [UInt64] = []

  var waiting: Int { untold.count }

  /// Number of deliveries neither acknowledged nor rejected.
  private(set) var inHand = 0

  var span: Int { isDone.count }

  private func index(_ tag: UInt64) -> Int { Int(truncatingIfNeeded: tag) & (isDone.count - 1) }

  mutating func reset() {
    base = 1
    next = 1
    inHand = 0
    stragglers.removeAll()
    untold.removeAll(keepingCapacity: true)
  }

  /// Returns false if the tag is not the next one.
  mutating func delivered(_ tag: UInt64) -> Bool {
    guard tag == next else { return false }
    if next - base == UInt64(isDone.count) { makeRoom() }
    isDone[index(tag)] = false
    next += 1
    inHand += 1
    return true
  }

  private mutating func makeRoom() {
    skipDone()
    guard next - base == UInt64(isDone.count) else { return }
    if inHand - stragglers.count > isDone.count / 2 { return grow() }
    stragglers.insert(base)
    base += 1
    skipDone()
  }

  private mutating func skipDone() {
    while base < next, isDone[index(base)] { base += 1 }
  }

  private mutating func grow() {
    var larger = [Bool](repeating: true, count: isDone.count * 2)
    for tag in base..<next { larger[Int(truncatingIfNeeded: tag) & (larger.count - 1)] = isDone[index(tag)] }
    isDone = larger
  }

  /// Returns false for a tag that is unknown or already settled.
  mutating func acknowledge(_ tag: UInt64) -> Bool {
    guard settle(tag) else { return false }
    untold.append(tag)
    return true
  }

  /// Settles a delivery. The caller sends the acknowledgement or rejection. Returns false for a tag that is unknown or already settled.
  mutating func settle(_ tag: UInt64) -> Bool {
    if tag >= base {
      guard tag < next, !isDone[index(tag)] else { return false }
      isDone[index(tag)] = true
    } else {
      guard !stragglers.isEmpty, stragglers.remove(tag) != nil else { return false }
    }
    inHand -= 1
    return true
  }

  /// Removes the acknowledgements that one frame can cover. Returns the highest tag, or nil if there are none.
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

  /// Removes the acknowledgements that need one frame each, because an earlier delivery is still in hand.
  mutating func takeScattered(_ body: (UInt64) -> Void) {
    for tag in untold { body(tag) }
    untold.removeAll(keepingCapacity: true)
  }
}
