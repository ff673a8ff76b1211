import Glibc

/// The process's standard error, written a whole line at a time so that lines of several threads don't mix.
public enum StandardError {
  /// What can't be written is dropped: a full disk or a closed pipe must not stop whoever logs.
  public static func write(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}

/// The time of day for those who have no loop to ask.
public enum SystemClock {
  /// Unix time in milliseconds.
  public static var unixMilliseconds: Int64 { Clock.wall() }
}
