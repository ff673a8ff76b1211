import Glibc

public enum TerminalWidth {
  /// Nil if the stream isn't a terminal with a known size.
  public static var ofOutput: Int? { columns(STDOUT_FILENO) }
  public static var ofErrors: Int? { columns(STDERR_FILENO) }

  private static func columns(_ descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }
}
