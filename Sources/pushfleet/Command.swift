/// One command of the command line.
protocol Command {
  static var page: CommandPage { get }
  /// - Parameter options: the words after the command's name, as its page takes them apart.
  /// - Throws: `CommandFailure`, `ConfigurationError`.
  static func run(_ options: Options) throws
}

/// Exit statuses, those of sysexits.h.
enum ExitStatus: Int32 {
  case done = 0
  case usage = 64
  case badInput = 65
  case unavailable = 69
  case configuration = 78
  /// Ended by SIGINT or SIGTERM before everything was done, as shells count it.
  case interrupted = 130

  /// For people: as the help, the manual and docs/operate/install.md say it.
  static let words =
    "0 done, 64 usage, 65 bad input, 69 broker or provider unreachable, or it refuses the user, or the output can't be written, "
    + "or a place to listen on is taken; 78 bad configuration, 130 interrupted."
}

/// Ends a command with a sentence on standard error and a status.
struct CommandFailure: Error, CustomStringConvertible {
  var status: ExitStatus
  var message: String
  var description: String { message }

  init(_ status: ExitStatus, _ message: String) {
    self.status = status
    self.message = message
  }
}
