import Glibc

public enum StandardOutput {
  public enum Failure: Error, Equatable {
    /// The reader has closed the pipe: the rest of the result has no use.
    case readerGone
    /// The process was started with standard output closed.
    case closed
    /// Another system error, for example a full disk.
    case other(String)
  }

  public static func write(_ bytes: [UInt8]) throws(Failure) {
    do throws(SystemError) { try FileContents.write(bytes, to: STDOUT_FILENO) } catch {
      switch error.code {
      case EPIPE: throw .readerGone
      case EBADF: throw .closed
      default: throw .other(error.description)
      }
    }
  }

  /// Ends the process by SIGPIPE without a message, like other programs of a pipeline.
  public static func endForReaderGone() -> Never {
    signal(SIGPIPE, SIG_DFL)
    raise(SIGPIPE)
    exit(128 + SIGPIPE)
  }
}
