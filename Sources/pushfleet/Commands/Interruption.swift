import Reactor

/// SIGINT and SIGTERM for a command that works without a loop: it asks between its steps.
final class Interruption {
  private let loop: EventLoop
  private var signals: Signals?
  private var count = 0

  init() throws {
    loop = try EventLoop()
    signals = try Signals(loop: loop, [2, 15]) { [weak self] _ in self?.count += 1 }
  }

  deinit { signals?.close() }

  var hasCome: Bool {
    loop.turn(waitingAtMost: 0)
    return count > 0
  }
}
