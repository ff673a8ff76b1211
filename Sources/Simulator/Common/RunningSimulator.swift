import Foundation
import Reactor
import Synchronization

/// A simulator on a separate thread. Safe to use from any thread. Ends with `stop` or when it is released.
public final class RunningSimulator: Sendable {
  /// The data that `launch` needs from the simulator on its thread.
  struct Part {
    let port: UInt16
    let close: () -> Void
  }

  public let port: UInt16
  public let journal: Journal
  private let mailbox: Mailbox
  private let thread: Mutex<ThreadHandle?>

  init(journal: Journal, make: @escaping @Sendable (EventLoop) throws -> Part) throws {
    let beginning = Beginning()
    let thread = try startThread(named: "simulator") {
      do {
        let loop = try EventLoop()
        let part = try make(loop)
        beginning.succeed(part.port, loop.mailbox)
        loop.run()
        part.close()
        loop.turn(waitingAtMost: 0)
      } catch {
        beginning.fail(error)
      }
    }
    (port, mailbox) = try beginning.wait()
    self.journal = journal
    self.thread = Mutex(thread)
  }

  deinit { stop() }

  /// Closes all connections and waits for the thread's end.
  public func stop() {
    mailbox.post { $0.stop() }
    thread.withLock { $0.take() }?.join()
  }
}

/// Passes the port or the error from the new thread to the waiting one.
private final class Beginning: Sendable {
  private let outcome = Mutex<Result<(UInt16, Mailbox), any Error>?>(nil)
  private let arrived = DispatchSemaphore(value: 0)

  func succeed(_ port: UInt16, _ mailbox: Mailbox) { settle(.success((port, mailbox))) }
  func fail(_ error: any Error) { settle(.failure(error)) }

  private func settle(_ result: sending Result<(UInt16, Mailbox), any Error>) {
    outcome.withLock { $0 = result }
    arrived.signal()
  }

  func wait() throws -> (UInt16, Mailbox) {
    arrived.wait()
    return try outcome.withLock { $0 }!.get()
  }
}
