import Dispatch
import Reactor
import Simulator
import Synchronization

/// A simulator on a separate thread. Safe to use from any thread. Ends with `stop` or when it is released.
public final class RunningSimulator: Sendable {
  public let port: UInt16
  public let journal: Journal
  private let mailbox: Mailbox
  private let thread: Mutex<ThreadHandle?>

  /// Returns once the simulator listens, with the certificate of 127.0.0.1.
  public init(_ certificates: TestCertificates, journal: Journal? = nil, _ make: @escaping SimulatedService.Make) throws {
    let journal = try journal ?? Journal(keepsEntries: true)
    let place = (Endpoint(host: "127.0.0.1", port: 0), certificates.server, certificates.serverKey)
    let beginning = Beginning()
    let thread = try startThread(named: "simulator") {
      do {
        let loop = try EventLoop()
        let simulator = try ProviderSimulator(make(journal, loop.time), at: place, loop: loop)
        beginning.settle(.success((simulator.port, loop.mailbox)))
        loop.run()
        simulator.close()
        loop.turn(waitingAtMost: 0)
      } catch {
        beginning.settle(.failure(error))
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

  func settle(_ result: sending Result<(UInt16, Mailbox), any Error>) {
    outcome.withLock { $0 = result }
    arrived.signal()
  }

  func wait() throws -> (UInt16, Mailbox) {
    arrived.wait()
    return try outcome.withLock { $0 }!.get()
  }
}
