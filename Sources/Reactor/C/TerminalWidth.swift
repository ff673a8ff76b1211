import Glibc

public enum TerminalWidth {
  /// Nil if the stream isn't a terminal with a known size.
  public static var ofOutput: Int? { size(STDOUT_FILENO, \.ws_col) }
  public static var ofErrors: Int? { size(STDERR_FILENO, \.ws_col) }
  public static var linesOfOutput: Int? { size(STDOUT_FILENO, \.ws_row) }

  private static func size(_ descriptor: Int32, _ side: (winsize) -> UInt16) -> Int? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, side(size) > 0 else { return nil }
    return Int(side(size))
  }
}
