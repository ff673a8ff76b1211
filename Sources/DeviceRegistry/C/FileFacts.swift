import CSQLite
import Glibc

/// Facts about a database file that are checked before SQLite opens it.
enum FileFacts {
  private static func status(_ path: String) -> stat? {
    var status = stat()
    return stat(path, &status) == 0 ? status : nil
  }

  /// Bytes; nil if the file doesn't exist.
  static func size(_ path: String) -> Int64? { status(path).map { Int64($0.st_size) } }

  static func identity(_ path: String) -> Identity? {
    status(path).map { Identity(device: $0.st_dev, number: $0.st_ino) }
  }

  struct Identity: Equatable {
    let device: dev_t
    let number: ino_t
  }

  static func isFolder(_ path: String) -> Bool { status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false }

  /// Makes a hard link. Returns false if the name exists or the file system has no links.
  static func link(_ path: String, to name: String) -> Bool { Glibc.link(path, name) == 0 }

  static func remove(_ path: String) { _ = unlink(path) }

  /// Makes an empty file that only its owner can read. SQLite gives its log the same permissions.
  static func makePrivate(_ path: String) {
    let descriptor = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
  }

  static func names(in folder: String) -> [String] {
    guard let listing = opendir(folder) else { return [] }
    defer { closedir(listing) }
    var names: [String] = []
    // An entry is only as long as its name, not as the declared field. A copy of the struct could read beyond it.
    while let entry = readdir(listing) {
      names.append(String(cString: UnsafeRawPointer(entry).advanced(by: nameOffset).assumingMemoryBound(to: CChar.self)))
    }
    return names
  }

  private static let nameOffset = MemoryLayout<dirent>.offset(of: \.d_name)!

  static func isRunning(_ process: Int32) -> Bool { kill(process, 0) == 0 || errno != ESRCH }
  static var ownProcess: Int32 { getpid() }

  /// The kind of network file system, or nil. SQLite's locks and shared memory don't work there (sqlite.org/wal.html: "does not
  /// work over a network filesystem").
  static func networkFileSystem(_ path: String) -> String? {
    var facts = statfs()
    guard statfs(path, &facts) == 0 else { return nil }
    return networkFileSystem(ofType: Int(facts.f_type))
  }

  static func networkFileSystem(ofType type: Int) -> String? {
    network.first { $0.magic == UInt32(truncatingIfNeeded: type) }?.name
  }

  /// Magic numbers of statfs(2).
  private static let network: [(magic: UInt32, name: String)] = [
    (0x6969, "NFS"), (0xFF53_4D42, "CIFS"), (0xFE53_4D42, "SMB2"), (0x517B, "SMB"), (0x5346_414F, "AFS"), (0x0102_1997, "9P"),
    (0x00C3_6400, "Ceph"),
  ]
}
