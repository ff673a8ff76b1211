/// Notices that an abnormal share of an application's tokens is refused as dead or suspect, which is the mark of a wrong environment,
/// topic or registry rather than of so many uninstalled apps; while it is open nothing is marked.
struct Breaker {
  /// Share of refused tokens, of at least `sample` answers within `window` milliseconds.
  var share: Double
  var sample: Int
  static let window: Int64 = 60_000

  private var answers = 0
  private var refused = 0
  private var since: Int64 = 0
  private var openedAt: Int64 = 0
  private(set) var isOpen = false

  init(share: Double, sample: Int) {
    self.share = share
    self.sample = sample
  }

  /// - Returns: true when this answer opened it.
  mutating func note(isRefused: Bool, at now: Int64) -> Bool {
    if now - since > Self.window {
      // A window that went well closes it.
      if answers >= sample, Double(refused) <= share * Double(answers) { isOpen = false }
      since = now
      answers = 0
      refused = 0
    }
    answers += 1
    if isRefused { refused += 1 }
    guard !isOpen, answers >= sample, Double(refused) > share * Double(answers) else { return false }
    isOpen = true
    openedAt = now
    return true
  }

  /// A campaign that was stopped at a time runs again: an operator has looked at it (`campaigns resume`). What opened the breaker
  /// later than that, the operator hasn't seen.
  /// - Returns: true when it closed now.
  mutating func resumed(since stop: Int64) -> Bool {
    guard isOpen, openedAt <= stop else { return false }
    isOpen = false
    answers = 0
    refused = 0
    return true
  }

  var percent: Int { answers == 0 ? 0 : refused * 100 / answers }
}
