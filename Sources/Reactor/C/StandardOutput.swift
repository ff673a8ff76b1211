import Glibc

/// The process's standard output, for commands whose result it carries.
public enum StandardOutput {
  /// Why a result could not be written.
  public enum Failure: Error, Equatable {
    /// Whoever read it has gone: the rest of the result is of no use to anybody.
    case readerGone
    /// The process was started with its standard output closed.
    case closed
    /// Another error, in the system's words: a full disk for one.
    case other(String)
  }

  /// Writes all of it.
  public static func write(_ bytes: [UInt8]) throws(Failure) {
    var written = 0
    while written < bytes.count {
      let count = bytes.withUnsafeBytes { rest in
        Glibc.write(STDOUT_FILENO, rest.baseAddress! + written, rest.count - written)
      }
      if count >= 0 {
        written += count
        continue
      }
      switch errno {
      case EINTR: continue
      case EPIPE: throw .readerGone
      case EBADF: throw .closed
      default: throw .other(SystemError("write").description)
      }
    }
  }

  /// Ends the process as a closed pipe ends any other program of a pipeline: by SIGPIPE, without a word.
  public static func endForReaderGone() -> Never {
    signal(SIGPIPE, SIG_DFL)
    raise(SIGPIPE)
    exit(128 + SIGPIPE)
  }
}
