import Glibc
import Wire

/// Writes lines to a descriptor on its own thread, so that logging never waits for a reader. Lines that don't fit in the buffer
/// or can't be written are dropped and counted; a later line reports their number. Lines are written whole and in order. The
/// descriptor's blocking mode stays unchanged, because other processes may share it.
final class LineWriter: @unchecked Sendable {
  // Allocated, because condition variables need a fixed address. The mutex protects all below, unless noted otherwise.
  private let mutex: UnsafeMutablePointer<pthread_mutex_t>
  /// Signals that there is something to write.
  private let filled: UnsafeMutablePointer<pthread_cond_t>
  /// Signals that everything has been written.
  private let settled: UnsafeMutablePointer<pthread_cond_t>
  private var buffer: LineBuffer
  private var thread: ThreadHandle?
  private var isWriting = false
  /// True if a `flush` timed out and nothing has been written since.
  private var isStuck = false
  private var droppedCount = 0
  private var notice: @Sendable (Int) -> [UInt8]

  // Used only on the writer's thread.
  private let descriptor: Int32
  /// Dropped lines that no line has reported yet.
  private var untold = 0
  /// True if the descriptor accepted only a part of a line.
  private var isMidLine = false

  /// - Parameters:
  ///   - capacity: bytes that may wait; the same number may be on their way out.
  ///   - notice: the line that reports the number of missing lines.
  init(_ descriptor: Int32, capacity: Int, notice: @escaping @Sendable (Int) -> [UInt8]) {
    self.descriptor = descriptor
    self.notice = notice
    buffer = LineBuffer(capacity: capacity)
    mutex = .allocate(capacity: 1)
    pthread_mutex_init(mutex, nil)
    var attributes = pthread_condattr_t()
    pthread_condattr_init(&attributes)
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC)
    filled = .allocate(capacity: 1)
    pthread_cond_init(filled, &attributes)
    settled = .allocate(capacity: 1)
    pthread_cond_init(settled, &attributes)
    pthread_condattr_destroy(&attributes)
  }

  deinit {
    for condition in [filled, settled] {
      pthread_cond_destroy(condition)
      condition.deallocate()
    }
    pthread_mutex_destroy(mutex)
    mutex.deallocate()
  }

  var dropped: Int { locked { droppedCount } }

  func describeDrops(_ notice: @escaping @Sendable (Int) -> [UInt8]) { locked { self.notice = notice } }

  /// Never waits for the descriptor. Drops the line if no thread can be started.
  func write(_ line: [UInt8]) {
    locked {
      if thread == nil { thread = try? startThread(named: "log") { [self] in run() } }
      guard thread != nil, buffer.append(line) else {
        droppedCount += 1
        return
      }
      pthread_cond_signal(filled)
    }
  }

  /// Waits at most `seconds` until everything is written. Doesn't wait if a flush timed out and nothing was written since.
  func flush(seconds: Double) {
    let end = Int(SystemClock.monotonic.advanced(bySeconds: seconds).nanoseconds)
    var deadline = timespec(tv_sec: end / 1_000_000_000, tv_nsec: end % 1_000_000_000)
    locked {
      while isWriting || !buffer.isEmpty, !isStuck {
        if pthread_cond_timedwait(settled, mutex, &deadline) == ETIMEDOUT { isStuck = true }
      }
    }
  }

  // MARK: On the thread

  private func run() {
    while true {
      let (bytes, refused) = locked {
        isWriting = false
        if buffer.isEmpty { pthread_cond_broadcast(settled) }
        while buffer.isEmpty { pthread_cond_wait(filled, mutex) }
        isWriting = true
        return buffer.take()
      }
      var rest = bytes[...]
      while !rest.isEmpty {
        let portion = LineBuffer.portion(of: rest)
        rest = rest[portion.endIndex...]
        if !put(portion) { untold += lose(portion) }
      }
      untold += refused
      if untold > 0, put(locked { notice }(untold)[...]) { untold = 0 }
    }
  }

  private func lose(_ lines: ArraySlice<UInt8>) -> Int {
    let count = max(lines.count { $0 == UInt8(ascii: "\n") }, 1)
    locked { droppedCount += count }
    return count
  }

  /// False if the descriptor refuses: a full disk, a closed pipe.
  private func put(_ lines: ArraySlice<UInt8>) -> Bool {
    if isMidLine {
      guard push([UInt8(ascii: "\n")]) == 1 else { return false }
      isMidLine = false
    }
    let written = push(lines)
    isMidLine = written > 0 && written < lines.count
    return written == lines.count
  }

  /// Returns the number of bytes written: all, unless the descriptor refuses.
  private func push(_ bytes: ArraySlice<UInt8>) -> Int {
    bytes.withUnsafeBytes { bytes in
      var written = 0
      while written < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written)
        if count > 0 {
          written += count
          locked { isStuck = false }
        } else if count < 0, errno == EAGAIN {
          var wait = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
          poll(&wait, 1, -1)
        } else if count == 0 || errno != EINTR {
          break
        }
      }
      return written
    }
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    pthread_mutex_lock(mutex)
    defer { pthread_mutex_unlock(mutex) }
    return body()
  }
}
