import Glibc

/// The process's standard error. A separate thread writes whole lines, so lines don't mix and no thread waits for the reader.
public enum StandardError {
  private static let writer = LineWriter(STDERR_FILENO, capacity: 256 * 1024) {
    Array("pushfleet: \($0) lines were dropped: nobody read standard error, or it couldn't be written\n".utf8)
  }

  public static let isTerminal = isatty(STDERR_FILENO) == 1

  /// Drops bytes that can't be written: a full disk, a closed pipe or a stopped reader must not stop the caller.
  public static func write(_ bytes: [UInt8]) { writer.write(bytes) }

  /// Waits until everything is written, at most a second.
  public static func flush() { writer.flush(seconds: 1) }

  public static var droppedLines: Int { writer.dropped }

  /// Sets the text that reports a number of missing lines.
  public static func describeDrops(_ line: @escaping @Sendable (Int) -> [UInt8]) { writer.describeDrops(line) }
}

/// Repairs streams that the parent process left in a bad state.
public enum StandardStreams {
  /// Call at the start of the process. Opens the closed ones of the three streams read-only on /dev/null: otherwise the first
  /// socket could get number 2 and receive log lines. Writing to them still fails, so a lost result is an error. Makes a closed
  /// pipe an error instead of a signal. Writes pending log lines at exit.
  public static func prepare() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    Signals.ignoreBrokenPipe()
    atexit { StandardError.flush() }
  }
}
