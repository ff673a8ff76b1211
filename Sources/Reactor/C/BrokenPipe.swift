import Glibc

/// Ignores SIGPIPE in the whole process: OpenSSL uses `write`, and a closed connection must not end the process.
enum BrokenPipe {
  private static let ignored: Void = { _ = signal(SIGPIPE, SIG_IGN) }()
  static func ignore() { ignored }
}
