import Glibc

/// Detects whether a file was written or replaced. Follows links: a mounted secret is replaced behind its link.
public struct FileStamp: Equatable, Sendable {
  /// Device, inode, size, and seconds and nanoseconds of the last change.
  private let facts: [Int]

  /// Nil if there is no such file.
  public init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    let file = [Int(bitPattern: status.st_dev), Int(bitPattern: status.st_ino), status.st_size]
    facts = file + [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
  }
}
