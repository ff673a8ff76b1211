import Glibc

/// Reads the keys of a terminal on standard input one by one, without echo. Doesn't change signals.
public final class RawTerminal {
  private var before = termios()

  public init?() {
    guard tcgetattr(STDIN_FILENO, &before) == 0 else { return nil }
    var raw = before
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    // A read returns at once.
    withUnsafeMutableBytes(of: &raw.c_cc) { characters in
      characters[Int(VMIN)] = 0
      characters[Int(VTIME)] = 0
    }
    guard tcsetattr(STDIN_FILENO, TCSANOW, &raw) == 0 else { return nil }
  }

  /// Keys pressed since the last call; nil if the terminal has gone.
  public func keys() -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: 64)
    let count = read(STDIN_FILENO, &buffer, buffer.count)
    if count < 0 { return errno == EINTR || errno == EAGAIN ? [] : nil }
    return Array(buffer.prefix(count))
  }

  public func restore() { tcsetattr(STDIN_FILENO, TCSANOW, &before) }
}
