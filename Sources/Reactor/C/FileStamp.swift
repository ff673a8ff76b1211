import Glibc

/// Detects whether a file was written or replaced. Follows links: a mounted secret is replaced behind its link.
public struct FileStamp: Equatable, Sendable {
  private let device: UInt
  private let inode: UInt
  private let size: Int
  /// Seconds and nanoseconds.
  private let modified: [Int]

  /// Nil if there is no such file.
  public init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    device = status.st_dev
    inode = status.st_ino
    size = status.st_size
    modified = [status.st_mtim.tv_sec, status.st_mtim.tv_nsec]
  }
}
