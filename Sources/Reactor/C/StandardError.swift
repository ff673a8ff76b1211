import Glibc
import Wire

/// The process's standard error, written a whole line at a time by a thread of its own, so that lines of several threads don't mix and
/// nobody waits for whoever reads them, or doesn't.
public enum StandardError {
  private static let writer = LineWriter(STDERR_FILENO, capacity: 256 * 1024) {
    Array("pushfleet: \($0) lines were dropped: nobody read standard error, or it couldn't be written\n".utf8)
  }

  /// Somebody reads it as it comes.
  public static let isTerminal = isatty(STDERR_FILENO) == 1

  /// What can't be written is dropped: a full disk, a closed pipe or a reader who has stopped must not stop whoever logs.
  public static func write(_ bytes: [UInt8]) { writer.write(bytes) }

  /// Waits until everything has been written, a moment at most.
  public static func flush() { writer.flush(seconds: 1) }

  /// Lines that could not be written so far.
  public static var droppedLines: Int { writer.dropped }

  /// How a line says that so many lines are missing.
  public static func describeDrops(_ line: @escaping @Sendable (Int) -> [UInt8]) { writer.describeDrops(line) }
}

/// What a parent may have left in a bad state.
public enum StandardStreams {
  /// To be called first thing in the process: takes the places of what is closed of the three streams, or the first socket would get
  /// number 2 and be logged into; makes a closed pipe an error instead of a death; and has the process write what it logged before it
  /// exits. What was closed can still not be written to, so that a result without a reader is an error.
  public static func prepare() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    BrokenPipe.ignore()
    atexit { StandardError.flush() }
  }
}

/// The time of day for those who have no loop to ask.
public enum SystemClock {
  /// Unix time in milliseconds.
  public static var unixMilliseconds: Int64 { Clock.wall() }
  public static var monotonic: MonotonicTime { Clock.monotonic() }
}
