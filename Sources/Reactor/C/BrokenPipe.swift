import Glibc

/// SIGPIPE is ignored in the whole process: OpenSSL writes with `write`, and a peer that went away is an error, not a death.
enum BrokenPipe {
  private static let ignored: Void = { _ = signal(SIGPIPE, SIG_IGN) }()
  static func ignore() { ignored }
}
