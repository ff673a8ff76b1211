import CLinux
import Glibc

/// Delivers signals as events of a loop, through a signalfd. The signals must be blocked in every thread, or the kernel
/// delivers them directly. Call `Signals.block` at the start of the process: threads inherit the mask.
public final class Signals {
  private unowned let loop: EventLoop
  private let descriptor: Descriptor
  private let handler: (Int32) -> Void
  private var watch: Watch?
  private var formerMask: sigset_t

  /// Blocks the signals in the calling thread and in threads that it starts later.
  /// - Returns: the previous mask of the calling thread.
  @discardableResult
  public static func block(_ signals: [Int32]) -> sigset_t {
    var set = mask(signals)
    var former = sigset_t()
    pthread_sigmask(SIG_BLOCK, &set, &former)
    return former
  }

  /// SIGHUP, which asks for a reload. A process that reloads blocks it at its start: sent before the handler is there, it waits.
  public static let hangUp: Int32 = 1

  public static func ignore(_ signals: [Int32]) {
    for number in signals { signal(number, SIG_IGN) }
  }

  /// OpenSSL uses `write`, and a closed connection must not end the process.
  static func ignoreBrokenPipe() { ignore([SIGPIPE]) }

  /// Calls the handler on the loop for each signal until `close`; the kernel merges equal pending signals. Blocks them in the
  /// calling thread, which must also call `close`.
  public init(loop: EventLoop, _ signals: [Int32], _ handler: @escaping (Int32) -> Void) throws(SystemError) {
    formerMask = Self.block(signals)
    self.loop = loop
    self.handler = handler
    var set = Self.mask(signals)
    descriptor = try Descriptor(adopting: signalfd(-1, &set, Int32(SFD_CLOEXEC | SFD_NONBLOCK)), of: "signalfd")
    watch = try loop.watch(descriptor.raw, .input, self)
    loop.own(self)
  }

  public func close() {
    if let watch { loop.unwatch(watch, descriptor.raw) }
    if watch != nil { pthread_sigmask(SIG_SETMASK, &formerMask, nil) }
    watch = nil
    loop.disown(self)
  }

  private static func mask(_ signals: [Int32]) -> sigset_t {
    var set = sigset_t()
    sigemptyset(&set)
    for signal in signals { sigaddset(&set, signal) }
    return set
  }
}

extension Signals: EventSource {
  func ready(_ readiness: Readiness) {
    var info = signalfd_siginfo()
    while watch != nil, read(descriptor.raw, &info, MemoryLayout<signalfd_siginfo>.size) == MemoryLayout<signalfd_siginfo>.size
    {
      handler(Int32(info.ssi_signo))
    }
  }
}
