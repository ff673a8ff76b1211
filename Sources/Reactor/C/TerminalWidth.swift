import Glibc

/// How many columns a terminal has.
public enum TerminalWidth {
  /// nil where standard output (or standard error) is no terminal, or one that doesn't know its size.
  public static var ofOutput: Int? { columns(STDOUT_FILENO) }
  public static var ofErrors: Int? { columns(STDERR_FILENO) }

  private static func columns(_ descriptor: Int32) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }
}
