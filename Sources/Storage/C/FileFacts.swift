import CSQLite
import Glibc

/// What must be known of a database's file before SQLite touches it.
enum FileFacts {
  /// Nil when there is no such file.
  static func size(_ path: String) -> Int64? {
    var status = stat()
    return stat(path, &status) == 0 ? Int64(status.st_size) : nil
  }

  static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  /// Gives a file a second name; false when that name is taken or the file system has no links.
  static func link(_ path: String, to name: String) -> Bool { Glibc.link(path, name) == 0 }

  static func remove(_ path: String) { _ = unlink(path) }

  /// The kind of a file system on which SQLite's locks and shared memory can't be relied on (sqlite.org/wal.html: "does not work over a
  /// network filesystem"), or nil.
  static func networkFileSystem(_ path: String) -> String? {
    var facts = statfs()
    guard statfs(path, &facts) == 0 else { return nil }
    return network.first { $0.magic == UInt32(truncatingIfNeeded: facts.f_type) }?.name
  }

  /// Magic numbers of statfs(2).
  private static let network: [(magic: UInt32, name: String)] = [
    (0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB2"), (0x517B, "SMB"), (0x5346_414F, "AFS"), (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
  ]
}
