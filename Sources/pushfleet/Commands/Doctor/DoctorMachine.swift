import DeviceRegistry
import Foundation
import Reactor
import Settings

enum DoctorMachine {
  static func look(_ configuration: Configuration) -> [Finding] {
    var found = [descriptors(limit: ProcessUsage.raiseDescriptorLimit(), needed: needed(configuration))]
    if case .sqlite(let path)? = configuration.registry {
      let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
      let free = (try? FileManager.default.attributesOfFileSystem(forPath: folder))?[.systemFreeSize] as? NSNumber
      if let free { found.append(disk(free: free.int64Value, folder)) }
    }
    return found
  }

  // MARK: open files

  /// Files that a worker opens besides connections: event loops, registry, log.
  private static let others = 30
  /// Connections per shard: to a busy FCM project, and to the broker.
  private static let busiest = 8
  private static let brokers = 5

  /// Files that a worker with this configuration opens.
  static func needed(_ configuration: Configuration) -> Int {
    let pools = configuration.credentials.reduce(0) { sum, credential in
      if case .fcm = credential.source.kind { sum + busiest } else { sum + 1 }
    }
    return others + configuration.shards * (pools + brokers)
  }

  static func descriptors(limit: Int, needed: Int) -> Finding {
    let words = "a process of this user may open \(limit) files, and a worker of this configuration needs about \(needed)"
    guard limit < needed else { return Finding(.ok, "open files", words) }
    return Finding(.error, "open files", words, "raise `LimitNOFILE` of the unit, or `ulimit -Hn`")
  }

  // MARK: who listens

  static var program: String? { program(of: "self") }

  /// The name of the program that listens on a TCP port; nil if this user may not see it.
  static func listener(on port: UInt16) -> String? {
    let suffix = ":" + String(Int(port) + 0x10000, radix: 16).suffix(4).uppercased()
    var sockets: Set<String> = []
    for table in ["/proc/net/tcp", "/proc/net/tcp6"] {
      // Foundation would read only the first page of such a file.
      for line in String(decoding: (try? FileContents.read(table)) ?? [], as: UTF8.self).split(separator: "\n") {
        // The local address, the state (0A: listening), the socket's inode: proc_net_tcp.rst.
        let words = line.split(separator: " ")
        if words.count > 9, words[1].hasSuffix(suffix), words[3] == "0A" { sockets.insert("socket:[\(words[9])]") }
      }
    }
    let files = FileManager.default
    for process in (try? files.contentsOfDirectory(atPath: "/proc")) ?? [] where Int(process) != nil {
      let open = "/proc/\(process)/fd"
      for file in (try? files.contentsOfDirectory(atPath: open)) ?? [] {
        if let name = try? files.destinationOfSymbolicLink(atPath: "\(open)/\(file)"), sockets.contains(name) {
          return program(of: process)
        }
      }
    }
    return nil
  }

  private static func program(of process: String) -> String? {
    (try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8))?.trimmingCharacters(in: .newlines)
  }

  // MARK: disk

  private static let little: Int64 = 1 << 30
  private static let none: Int64 = 64 << 20

  static func disk(free: Int64, _ folder: String) -> Finding {
    let level: Finding.Level = free < none ? .error : free < little ? .warning : .ok
    let remedy = level == .ok ? nil : "free space there: a registry on a full disk can't store changes"
    return Finding(level, "registry", "\(free >> 20) MiB are free in \(folder)", remedy)
  }

  /// - Parameter file: the SQLite file; nil for PostgreSQL.
  static func remedy(for error: RegistryError, file: String?, user: String) -> (level: Finding.Level, words: String?) {
    switch error {
    case .unavailable(.full, _): (.error, "free space on the disk of the registry")
    case .unavailable(.readOnly, _):
      (
        .error,
        file.map { "make \($0) and its folder writable for the user \(user): the folder too, for the -wal file" }
          ?? "point `registry` to the primary: this one is read-only"
      )
    case .unavailable(.locked, _): (.unreachable, "end the process that holds the lock")
    case .unavailable where file != nil:
      (.unreachable, "let the user \(user) read and write the file and its folder")
    case .unavailable: (.unreachable, "check that the database runs, and user, password and host of `registry`")
    // These say themselves what to do.
    case .unusable(.corrupt, _), .unusable(.notARegistry, _), .unusable(.newerSchema, _): (.error, nil)
    case .unusable, .refused, .fenced: (.error, "check `registry` and its access rights")
    }
  }
}
