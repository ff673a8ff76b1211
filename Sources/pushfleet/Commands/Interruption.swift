import Reactor

/// Lets a command without an event loop check for SIGINT and SIGTERM between its steps.
final class Interruption {
  private let loop: EventLoop
  private var signals: Signals?
  private var count = 0

  init() throws {
    loop = try EventLoop()
    signals = try Signals(loop: loop, [2, 15]) { [weak self] _ in self?.count += 1 }
  }

  deinit { signals?.close() }

  func wait(for input: InputDescriptor) throws(SystemError) {
    var isThere = false
    let watch = try ForeignDescriptor(input.raw, loop: loop) { isThere = true }
    while !isThere, count == 0 { loop.turn(waitingAtMost: 60) }
    watch.close()
  }

  var hasCome: Bool {
    loop.turn(waitingAtMost: 0)
    return count > 0
  }
}
