import BrokerModel
import Dispatch
import Reactor
import Synchronization
import TLS
import Wire

/// A modelled broker behind a loopback port, on a thread of its own, so that clients connect to it as to a real one.
final class ModelServer: Sendable {
  let port: UInt16
  private let stage: Stage
  private let mailbox: Mailbox
  private let thread: Mutex<ThreadHandle?>

  /// One for the whole test process, started when first asked for.
  static var shared: ModelServer { get throws { try sharedResult.get() } }
  private static let sharedResult = Result { try ModelServer() }

  /// - Parameter tls: PEM files of a certificate and its key.
  init(tls: (certificate: String, key: String)? = nil) throws {
    let beginning = Handover<Result<(Stage, Mailbox), any Error>>()
    let thread = try startThread(named: "model broker") {
      do {
        let loop = try EventLoop()
        let stage = try Stage(loop, tls)
        beginning.give(.success((stage, loop.mailbox)))
        loop.run()
        stage.close()
        loop.turn(waitingAtMost: 0)
      } catch {
        beginning.give(.failure(error))
      }
    }
    (stage, mailbox) = try beginning.wait().get()
    port = stage.port
    self.thread = Mutex(thread)
  }

  /// Runs something on the broker's thread and waits for it.
  func perform<T: Sendable>(_ body: @escaping @Sendable (VirtualBroker, MonotonicTime) -> T) -> T {
    let answer = Handover<T>()
    mailbox.post { [stage] loop in answer.give(body(stage.broker, loop.now)) }
    return answer.wait()
  }

  func stop() {
    mailbox.post { $0.stop() }
    thread.withLock { $0.take() }?.join()
  }

  /// What lives on the thread.
  private final class Stage: TurnHook, @unchecked Sendable {
    let broker = VirtualBroker()
    let port: UInt16
    private unowned let loop: EventLoop
    private let listener: Listener
    private var timer: (token: TimerToken, deadline: MonotonicTime)?

    init(_ loop: EventLoop, _ tls: (certificate: String, key: String)?) throws {
      self.loop = loop
      let context = try tls.map { try TLSServerContext(certificate: $0.certificate, key: $0.key) }
      listener = try Listener(loop: loop, host: "127.0.0.1", port: 0, tls: context) { [broker] _ in broker.accept() }
      port = listener.port
      loop.afterEvents(self)
    }

    func turnEnding(at now: MonotonicTime) {
      guard broker.deadline != timer?.deadline ?? .distantFuture else { return }
      if let timer { loop.cancel(timer.token) }
      timer = nil
      guard broker.deadline < .distantFuture else { return }
      let deadline = broker.deadline
      let token = loop.time.schedule(at: deadline) { [unowned self] in
        timer = nil
        broker.deadlineReached(at: loop.now)
      }
      timer = (token, deadline)
    }

    func close() {
      listener.close()
      listener.closeConnections()
    }
  }

  /// Hands what one thread has made to another that waits for it.
  private final class Handover<T: Sendable>: Sendable {
    private let value = Mutex<T?>(nil)
    private let arrived = DispatchSemaphore(value: 0)

    func give(_ value: T) {
      self.value.withLock { $0 = value }
      arrived.signal()
    }

    func wait() -> T {
      arrived.wait()
      return value.withLock { $0! }
    }
  }
}
