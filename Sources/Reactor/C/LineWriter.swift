import Glibc
import Wire

/// Writes lines to a descriptor on its own thread, so that logging never waits for a reader. Lines that don't fit in the buffer
/// or can't be written are dropped and counted; a later line reports their number. Lines are written whole and in order. The
/// descriptor's blocking mode stays unchanged, because other processes may share it.
final class LineWriter: @unchecked Sendable {
  /// Protects all below, unless noted otherwise.
  private let monitor = Monitor()
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
  }

  var dropped: Int { monitor.locked { droppedCount } }

  func describeDrops(_ notice: @escaping @Sendable (Int) -> [UInt8]) { monitor.locked { self.notice = notice } }

  /// Never waits for the descriptor. Drops the line if no thread can be started.
  func write(_ line: [UInt8]) {
    monitor.locked {
      if thread == nil { thread = try? startThread(named: "log") { [self] in run() } }
      guard thread != nil, buffer.append(line) else {
        droppedCount += 1
        return
      }
      monitor.wakeAll()
    }
  }

  /// Waits at most `seconds` until everything is written. Doesn't wait if a flush timed out and nothing was written since.
  func flush(seconds: Double) {
    let end = SystemClock.monotonic.advanced(bySeconds: seconds)
    monitor.locked {
      while isWriting || !buffer.isEmpty, !isStuck {
        if !monitor.wait(until: end) { isStuck = true }
      }
    }
  }

  // MARK: On the thread

  private func run() {
    while true {
      let (bytes, refused) = monitor.locked {
        isWriting = false
        if buffer.isEmpty { monitor.wakeAll() }
        while buffer.isEmpty { monitor.wait() }
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
      if untold > 0, put(monitor.locked { notice }(untold)[...]) { untold = 0 }
    }
  }

  private func lose(_ lines: ArraySlice<UInt8>) -> Int {
    let count = max(lines.count { $0 == UInt8(ascii: "\n") }, 1)
    monitor.locked { droppedCount += count }
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
          monitor.locked { isStuck = false }
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
}
