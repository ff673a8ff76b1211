import Glibc

/// The process's standard error, written a whole line at a time so that lines of several threads don't mix.
public enum StandardError {
  /// What can't be written is dropped: a full disk or a closed pipe must not stop whoever logs.
  public static func write(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

/// What a parent may have left in a bad state.
public enum StandardStreams {
  /// To be called first thing in the process: takes the places of what is closed of the three streams, or the first socket would get
  /// number 2 and be logged into; and makes a closed pipe an error instead of a death. What was closed can still not be written to, so
  /// that a result without a reader is an error.
  public static func prepare() {
    for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) < 0 { _ = open("/dev/null", O_RDONLY) }
    BrokenPipe.ignore()
  }
}

/// The time of day for those who have no loop to ask.
public enum SystemClock {
  /// Unix time in milliseconds.
  public static var unixMilliseconds: Int64 { Clock.wall() }
}
