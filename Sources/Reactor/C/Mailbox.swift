import CLinux
import Glibc
import Synchronization

/// The only way into a loop from another thread: posted closures run on the loop's thread, in order. May outlive its loop.
public final class Mailbox: Sendable {
  public typealias Letter = @Sendable (EventLoop) -> Void

  private struct State {
    var letters: [Letter] = []
    var isClosed = false
  }
  private let state = Mutex(State())
  let wakeup: Int32

  init() throws(SystemError) {
    wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard wakeup >= 0 else { throw SystemError("eventfd") }
  }

  deinit { _ = Glibc.close(wakeup) }

  /// Callable from any thread. Returns false if the loop is gone and the closure was dropped.
  @discardableResult
  public func post(_ letter: @escaping Letter) -> Bool {
    let (accepted, isFirst) = state.withLock { state in
      guard !state.isClosed else { return (false, false) }
      state.letters.append(letter)
      return (true, state.letters.count == 1)
    }
    if isFirst { wake() }
    return accepted
  }

  /// Takes at most `limit` letters; wakes the loop again if more are left.
  func take(_ limit: Int) -> [Letter] {
    var count: UInt64 = 0
    _ = read(wakeup, &count, 8)
    let (taken, isMore) = state.withLock { state in
      let count = min(limit, state.letters.count)
      let taken = Array(state.letters[..<count])
      state.letters.removeFirst(count)
      return (taken, !state.letters.isEmpty)
    }
    if isMore { wake() }
    return taken
  }

  func close() {
    // Releases the letters outside of the lock: a captured object may post in its deinit.
    _ = state.withLock { state in
      state.isClosed = true
      defer { state.letters = [] }
      return state.letters
    }
  }

  private func wake() {
    var one: UInt64 = 1
    _ = write(wakeup, &one, 8)
  }
}
