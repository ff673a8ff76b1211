/// The changes that a shard has taken from one connection and not yet acknowledged, bounded by their bytes: an outage of the registry keeps
/// all of them.
///
/// The broker sends as many ahead as the prefetch allows, and what it sends has to be read. So the first change that doesn't fit is left
/// unread with all behind it, which keeps the order, and comes again by the next connection once those before it are done. That costs it a return,
/// and each return has brought at least a few changes to their end: the prefetch and the largest change bound their number.
struct ChangeWindow {
  /// Bytes of bodies and headers.
  static let budget = 16 << 20

  private var count = 0
  private var bytes = 0
  /// Something was left to the broker.
  private var isFull = false

  /// - Returns: false when the change, and whatever comes after it, is left to the broker.
  mutating func take(_ size: Int) -> Bool {
    isFull = isFull || count > 0 && bytes + size > Self.budget
    guard !isFull else { return false }
    count += 1
    bytes += size
    return true
  }

  /// - Returns: true when all that was taken is done and something was left: the connection is to be renewed.
  mutating func done(_ size: Int) -> Bool {
    count -= 1
    bytes -= size
    return isFull && count == 0
  }
}
