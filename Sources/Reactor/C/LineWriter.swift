import Glibc
import Wire

/// Writes lines to a descriptor on its own thread, so that logging never waits for a reader. Lines that don't fit in the buffer
/// or can't be written are dropped and counted; a later line reports their number. Lines are written whole and in order. The
/// descriptor's blocking mode stays unchanged, because other processes may share it.
final class LineWriter: @unchecked Sendable {
  /// Protects all below, unless noted otherwise.
  private let monitor = Monitor()
  private var waiting: [UInt8] = []
  /// Lines refused since the writer last took `waiting`, all later than the lines in it.
  private var refused = 0
  private var thread: ThreadHandle?
  private var isWriting = false
  /// True if a `flush` timed out and nothing has been written since.
  private var isStuck = false
  private var droppedCount = 0
  private var notice: @Sendable (Int) -> [UInt8]

  private let capacity: Int
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
    self.capacity = capacity
  }

  var dropped: Int { monitor.locked { droppedCount } }

  func describeDrops(_ notice: @escaping @Sendable (Int) -> [UInt8]) { monitor.locked { self.notice = notice } }

  /// Never waits for the descriptor. Drops the line if no thread can be started.
  func write(_ line: [UInt8]) {
    monitor.locked {
      if thread == nil { thread = try? startThread(named: "log") { [self] in run() } }
      if thread != nil, waiting.count + line.count <= capacity {
        waiting += line
        return monitor.wakeAll()
      }
      droppedCount += 1
      if thread != nil { refused += 1 }
    }
  }

  /// Waits at most `seconds` until everything is written. Doesn't wait if a flush timed out and nothing was written since.
  func flush(seconds: Double) {
    let end = SystemClock.monotonic.advanced(bySeconds: seconds)
    monitor.locked {
      while isWriting || hasWork, !isStuck {
        if !monitor.wait(until: end) { isStuck = true }
      }
    }
  }

  private var hasWork: Bool { !waiting.isEmpty || refused > 0 }

  // MARK: On the thread

  private func run() {
    while true {
      let (bytes, refused) = monitor.locked {
        isWriting = false
        if !hasWork { monitor.wakeAll() }
        while !hasWork { monitor.wait() }
        isWriting = true
        defer { (waiting, self.refused) = ([], 0) }
        return (waiting, self.refused)
      }
      var rest = bytes[...]
      while !rest.isEmpty {
        let portion = Self.portion(of: rest)
        rest = rest[portion.endIndex...]
        if !put(portion) { untold += lose(portion) }
      }
      untold += refused
      if untold > 0, put(monitor.locked { notice }(untold)[...]) { untold = 0 }
    }
  }

  /// The part of `bytes` to write at once: whole lines, at most what a pipe writes atomically (pipe(7), PIPE_BUF), so that
  /// lines of several processes don't mix. A longer line is written alone.
  static func portion(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let newline = UInt8(ascii: "\n")
    guard bytes.count > atomic else { return bytes }
    if let last = bytes.prefix(atomic).lastIndex(of: newline) { return bytes[...last] }
    return bytes.firstIndex(of: newline).map { bytes[...$0] } ?? bytes
  }

  private static let atomic = 4096

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
