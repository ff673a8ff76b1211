import Reactor

extension EventLoop {
  /// Runs turns until the condition holds. False if it doesn't within this many seconds.
  public func run(atMost seconds: Double = 10, until condition: () -> Bool) -> Bool {
    let limit = now.advanced(bySeconds: seconds)
    while !condition() {
      guard now < limit else { return false }
      turn(waitingAtMost: 0.05)
    }
    return true
  }
}
