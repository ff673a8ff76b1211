import CLinux
import Glibc

/// A started thread. Joining is optional: without its handle the thread keeps running.
public final class ThreadHandle: @unchecked Sendable {
  // Confined by contract: one thread calls `join`, once.
  private let thread: pthread_t
  private var isJoined = false

  fileprivate init(_ thread: pthread_t) { self.thread = thread }

  public func join() {
    guard !isJoined else { return }
    isJoined = true
    pthread_join(thread, nil)
  }

  deinit { if !isJoined { pthread_detach(thread) } }
}

/// Starts a thread outside of Swift's pool, so that it may block. The kernel shows the first 15 bytes of the name. The thread
/// receives only the signals of its own faults; the main thread receives the others.
/// - Throws: if the process or the machine is out of threads.
@discardableResult
public func startThread(named name: String, _ body: @escaping @Sendable () -> Void) throws(SystemError) -> ThreadHandle {
  let start = Unmanaged.passRetained(ThreadStart(name: String(name.prefix(15)), body: body))
  var thread = pthread_t()
  var all = sigset_t()
  var former = sigset_t()
  sigfillset(&all)
  for fault in [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT] { sigdelset(&all, fault) }
  pthread_sigmask(SIG_SETMASK, &all, &former)
  let code = pthread_create(&thread, nil, threadMain, start.toOpaque())
  pthread_sigmask(SIG_SETMASK, &former, nil)
  guard code == 0 else {
    start.release()
    throw SystemError("pthread_create", code: code)
  }
  return ThreadHandle(thread)
}

private final class ThreadStart {
  let name: String
  let body: @Sendable () -> Void
  init(name: String, body: @escaping @Sendable () -> Void) {
    self.name = name
    self.body = body
  }
}

private func threadMain(_ argument: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
  guard let argument else { return nil }
  let start = Unmanaged<ThreadStart>.fromOpaque(argument).takeRetainedValue()
  pthread_setname_np(pthread_self(), start.name)
  start.body()
  return nil
}
