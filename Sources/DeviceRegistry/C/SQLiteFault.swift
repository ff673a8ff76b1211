import CSQLite
import Glibc

/// Maps SQLite's result codes to registry errors (sqlite.org/rescode.html).
enum SQLiteFault {
  /// - Parameter systemError: SQLite's last `errno`. For file errors it is more specific than the result code.
  static func error(_ code: Int32, message: String, systemError: Int32, _ path: String) -> RegistryError {
    if code & 0xFF == SQLITE_IOERR || code & 0xFF == SQLITE_CANTOPEN {
      if systemError == ENOSPC || systemError == EDQUOT { return error(SQLITE_FULL, message: message, systemError: 0, path) }
      if systemError == EROFS { return error(SQLITE_READONLY, message: message, systemError: 0, path) }
    }
    if code & 0xFF == SQLITE_CANTOPEN, let size = FileFacts.size(path), size > 0 {
      if FileFacts.isFolder(path) { return .unusable(.badLocation, "\(path) is a folder: name a file") }
      if systemError == EACCES || systemError == EPERM {
        return .unavailable(.down, "\(path) can't be opened: this user may not read and write the file, or not its folder")
      }
    }
    return switch code & 0xFF {
    case SQLITE_BUSY, SQLITE_LOCKED:
      .unavailable(.locked, "another process holds the lock on \(path) (\(message))")
    case SQLITE_FULL:
      .unavailable(.full, "no space left for \(path) (\(message)): free space, or raise max_page_count")
    case SQLITE_READONLY:
      .unavailable(
        .readOnly, "\(path) can't be written to (\(message)): the file and its folder must be writable, for the -wal file too")
    case SQLITE_IOERR:
      .unavailable(.down, "reading or writing \(path) failed (\(message), code \(code))")
    case SQLITE_CANTOPEN:
      .unavailable(.down, "\(path) can't be opened (\(message)): its folder must exist and be writable, for the -wal file too")
    case SQLITE_NOMEM:
      .unavailable(.overloaded, "out of memory")
    case SQLITE_PERM, SQLITE_AUTH:
      .unusable(.accessDenied, "access to \(path) is denied (\(message))")
    case SQLITE_CORRUPT:
      .unusable(
        .corrupt,
        "\(path) is damaged (\(message)): stop the workers, run `sqlite3 \(path) \"PRAGMA integrity_check\"`, then restore a "
          + "backup or save what can be read with `.recover`")
    case SQLITE_NOTADB:
      .unusable(.corrupt, "\(path) isn't an SQLite database, or its header is damaged (\(message)): restore a backup")
    case SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_RANGE:
      .refused("\(message) (code \(code))")
    default:
      .unusable(.broken, "\(message) (code \(code))")
    }
  }
}
