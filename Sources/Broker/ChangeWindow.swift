/// The unacknowledged changes of one connection. An outage of the registry keeps all of them, so their total size is limited.
///
/// The broker sends up to the prefetch, and everything sent must be read. So the first change that doesn't fit is dropped with
/// all that follow it, which keeps the order. A new connection delivers them again after the earlier ones are done. Each such
/// return follows at least a few completed changes, so the prefetch and the largest change limit the number of returns.
struct ChangeWindow {
  static let budget = 16 << 20

  private var count = 0
  private var bytes = 0
  /// True if a change was left to the broker.
  private var isFull = false

  /// - Returns: false if the change, and every later one, is left to the broker.
  mutating func take(_ size: Int) -> Bool {
    isFull = isFull || count > 0 && bytes + size > Self.budget
    guard !isFull else { return false }
    count += 1
    bytes += size
    return true
  }

  /// - Returns: true if all accepted changes are done and some were left, so the connection must be renewed.
  mutating func done(_ size: Int) -> Bool {
    count -= 1
    bytes -= size
    return isFull && count == 0
  }
}
