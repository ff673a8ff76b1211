import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Faults of an SQLite registry", .serialized)
struct SQLiteFaultTests {
  private let folder: TemporaryFolder
  private let path: String

  init() throws {
    folder = try TemporaryFolder()
    path = folder.path + "/registry.db"
  }

  private func fill(_ store: DeviceStore, _ range: Range<Int>) throws {
    let app = TestRegistry.app
    _ = try store.apply(
      range.map { .register(Registration(app: app, platform: .fcm, token: Array("token-\($0)".utf8))) }, now: 1)
  }

  /// The error of opening, or of any other call.
  private func fault(_ body: () throws -> Void) throws -> RegistryError {
    do { try body() } catch { return try #require(error as? RegistryError) }
    throw TestFailure("no error")
  }

  @Test("An empty file is refused, and so is a log without its database")
  func emptyByAccident() throws {
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    guard case .unusable(.notARegistry, let why) = try fault({ _ = try DeviceStore(path: path) }) else {
      throw TestFailure("opened")
    }
    #expect(why.contains("empty"))
    try remove(path)
    _ = FileManager.default.createFile(atPath: path + "-wal", contents: Data("log".utf8))
    guard case .unusable(.notARegistry, _) = try fault({ _ = try DeviceStore(path: path) }) else { throw TestFailure("opened") }
    #expect(!FileManager.default.fileExists(atPath: path))
  }

  @Test("A missing file is refused if the registry must exist, a missing folder always")
  func missing() throws {
    guard
      case .unusable(.notARegistry, _) = try fault({ _ = try DeviceStore(path: path, options: StoreOptions(create: false)) })
    else { throw TestFailure("opened") }
    guard case .unusable(.badLocation, _) = try fault({ _ = try DeviceStore(path: folder.path + "/no/registry.db") }) else {
      throw TestFailure("opened")
    }
  }

  @Test("Another program's database is refused and left as it is")
  func foreign() throws {
    let other = try SQLiteConnection(path: path, create: true, busyTimeout: 0)
    try other.execute("CREATE TABLE t (x); PRAGMA user_version = 1")
    guard case .unusable(.notARegistry, _) = try fault({ _ = try DeviceStore(path: path) }) else { throw TestFailure("opened") }
    #expect(try other.pragma("SELECT count(*) FROM sqlite_schema") == Array("1".utf8))
  }

  @Test("A folder and a file of another user are told from a missing folder")
  func notOpened() throws {
    guard case .unusable(.badLocation, let why) = try fault({ _ = try DeviceStore(path: folder.path) }) else {
      throw TestFailure("opened")
    }
    #expect(why.contains("is a folder"))
    do { try fill(try DeviceStore(path: path), 0..<1) }
    let denied = SQLiteFault.error(14, message: "", systemError: 13, path)
    #expect("\(denied)".contains("this user may not read and write the file"))
  }

  @Test("A newer schema is refused and left as it is")
  func newer() throws {
    do { try fill(try DeviceStore(path: path), 0..<3) }
    let raw = try SQLiteConnection(path: path, create: false, busyTimeout: 0)
    try raw.execute("PRAGMA user_version = 1000")
    guard case .unusable(.newerSchema, let why) = try fault({ _ = try DeviceStore(path: path) }) else {
      throw TestFailure("opened")
    }
    #expect(why.contains("1000"))
    #expect(try raw.pragma("SELECT count(*) FROM devices") == Array("3".utf8))
  }

  @Test("A damaged header and damaged pages are reported with a remedy")
  func corrupt() throws {
    do { try fill(try DeviceStore(path: path), 0..<2_000) }
    let intact = try Data(contentsOf: URL(fileURLWithPath: path))
    try overwrite(path, at: 0, with: Array("garbage garbage!".utf8))
    guard case .unusable(.corrupt, _) = try fault({ _ = try DeviceStore(path: path) }) else { throw TestFailure("opened") }

    try remove(path)
    try intact.write(to: URL(fileURLWithPath: path))
    try overwrite(path, at: 4_096, with: [UInt8](repeating: 0xFF, count: intact.count - 4_096))
    let found = try fault {
      let store = try DeviceStore(path: path)
      _ = try store.devices(app: nil, after: 0, limit: 5_000)
    }
    guard case .unusable(.corrupt, let why) = found else { throw TestFailure("\(found)") }
    #expect(why.contains("integrity_check"))
  }

  @Test(
    "A full disk refuses new data, keeps the old, and continues when there is space",
    .enabled(if: SmallDisk.isPossible, "nothing may be mounted here"))
  func full() throws {
    let disk = try SmallDisk(folder.path + "/disk", kilobytes: 2_048)
    let path = disk.path + "/registry.db"
    let store = try DeviceStore(path: path)
    try fill(store, 0..<100)
    let ballast = disk.path + "/ballast"
    #expect(FileManager.default.createFile(atPath: ballast, contents: Data(count: 1_000_000)))
    let found = try fault { for start in 1..<200 { try fill(store, start * 100..<start * 100 + 100) } }
    guard case .unavailable(.full, _) = found else { throw TestFailure("\(found)") }
    let kept = try store.devices(app: nil, after: 0, limit: 50_000).count
    #expect(kept >= 100 && kept % 100 == 0)
    try FileManager.default.removeItem(atPath: ballast)
    try store.probe(isWriting: true)
    try fill(store, 30_000..<31_000)
    #expect(try store.devices(app: nil, after: 0, limit: 50_000).count == kept + 1_000)
    #expect(try #require(store.session as? SQLiteConnection).pragma("PRAGMA integrity_check") == Array("ok".utf8))
  }

  @Test(
    "A registry on an unwritable disk is unavailable with its reason, and used again when writable",
    .enabled(if: SmallDisk.isPossible, "nothing may be mounted here"))
  func readOnly() throws {
    let disk = try SmallDisk(folder.path + "/disk", kilobytes: 4_096)
    let path = disk.path + "/registry.db"
    do { try fill(try DeviceStore(path: path), 0..<10) }
    try disk.remount("ro")
    let found = try fault { try fill(try DeviceStore(path: path), 10..<11) }
    guard case .unavailable(let kind, let why) = found else { throw TestFailure("\(found)") }
    #expect([.readOnly, .down].contains(kind) && why.contains("writable"), "\(found)")
    try disk.remount("rw")
    let store = try DeviceStore(path: path)
    try fill(store, 10..<11)
    #expect(try store.devices(app: nil, after: 0, limit: 50).count == 11)
  }

  @Test("Network file systems are known by the number that statfs(2) gives them")
  func networks() {
    let names = [0x6969, 0xFF53_4D42, 0x0102_1997, 0xEF53, 0x0102_1994].map { FileFacts.networkFileSystem(ofType: $0) }
    #expect(names == ["NFS", "CIFS", "9P", nil, nil])
    #expect(FileFacts.networkFileSystem(folder.path) == nil && FileFacts.networkFileSystem("/nowhere at all") == nil)
  }

  @Test(
    "A file that is deleted or replaced while in use accepts nothing more, and nothing is read from it",
    arguments: [true, false])
  func goneUnderneath(isReplaced: Bool) throws {
    let store = try DeviceStore(path: path)
    try fill(store, 0..<10)
    if isReplaced {
      do { try fill(try DeviceStore(path: path + "2"), 0..<1) }
      try FileManager.default.removeItem(atPath: path)
      try FileManager.default.moveItem(atPath: path + "2", toPath: path)
    } else {
      try remove(path)
    }
    guard case .unavailable(.down, _) = try fault({ try store.probe(isWriting: false) }) else { throw TestFailure("probed") }
    guard case .unavailable(.down, let why) = try fault({ try fill(store, 10..<20) }) else { throw TestFailure("stored") }
    #expect(why.contains("deleted or replaced"))
    guard case .unavailable(.down, _) = try fault({ _ = try store.resolve([[1]], app: TestRegistry.app) }) else {
      throw TestFailure("read")
    }
  }

  @Test("The registry and its log are readable for no other user")
  func permissions() throws {
    let store = try DeviceStore(path: path)
    try fill(store, 0..<10)
    for suffix in ["", "-wal", "-shm"] {
      let rights = try FileManager.default.attributesOfItem(atPath: path + suffix)[.posixPermissions] as? Int
      #expect(rights == 0o600, "\(suffix)")
    }
  }

  /// One read of the listing may end within a name. The address sanitizer checks that nothing beyond it is read.
  @Test("A registry works in a folder with thousands of files, each of which is seen")
  func crowdedFolder() throws {
    let names = (0..<2_000).map { String(repeating: "x", count: 1 + $0 % 180) + "-\($0)" }
    for name in names { #expect(FileManager.default.createFile(atPath: "\(folder.path)/\(name)", contents: nil)) }
    #expect(Set(FileFacts.names(in: folder.path)).isSuperset(of: names))
    _ = try DeviceStore(path: path)
  }

  @Test("The remains of a process that ended during creation are removed, another's draft is not")
  func drafts() throws {
    let ended = try ChildProcess(["/bin/true"], output: "/dev/null")
    ended.wait()
    let left = ["", "-wal", "-shm"].map { "\(path).new-\(ended.pid)-7\($0)" }
    let others = ["\(path).new-\(getpid())-7", "\(path).new-year", "\(path).newer"]
    for name in left + others { #expect(FileManager.default.createFile(atPath: name, contents: nil)) }
    _ = try DeviceStore(path: path)
    #expect(left.allSatisfy { !FileManager.default.fileExists(atPath: $0) })
    #expect(others.allSatisfy { FileManager.default.fileExists(atPath: $0) })
  }

  @Test("Two workers that create one registry at the same time both succeed")
  func concurrentCreation() throws {
    let path = path
    let failures = Collected<String>()
    DispatchQueue.concurrentPerform(iterations: 8) { index in
      do {
        let store = try DeviceStore(path: path)
        _ = try store.apply(
          [.register(Registration(app: TestRegistry.app, platform: .fcm, token: Array("w\(index)".utf8)))], now: 1)
      } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    #expect(
      try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy {
        $0.hasPrefix("registry.db") && !$0.contains("new")
      })
    #expect(try DeviceStore(path: path).devices(app: nil, after: 0, limit: 50).count == 8)
  }

  /// For a long run: `PUSHFLEET_TEST_KILLS=200 swift test --filter SQLiteFaultTests.killed`.
  private static let kills = ProcessInfo.processInfo.environment["PUSHFLEET_TEST_KILLS"].flatMap { Int($0) } ?? 2

  @Test("A writer killed in the middle of bulk writes leaves whole transactions only", arguments: 0..<kills)
  func killed(_ round: Int) throws {
    let ownProgram = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().path
    let writer = try ChildProcess(
      [ownProgram] + CommandLine.arguments.dropFirst().prefix(1).filter { $0.hasSuffix(".xctest") } + [
        "--testing-library", "swift-testing", "--filter", "writesUntilKilled",
      ],
      environment: ProcessInfo.processInfo.environment.merging([
        "PUSHFLEET_TEST_WRITE_TO": path, "SWIFT_BACKTRACE": "enable=no",
      ]) { $1 },
      output: "/dev/null")
    let wanted = 700_000 + 300_000 * (round % 10)
    #expect(eventually { size(path) + size(path + "-wal") >= wanted || !writer.isRunning })
    #expect(writer.isRunning)
    writer.end()

    let store = try DeviceStore(path: path)
    #expect(try #require(store.session as? SQLiteConnection).pragma("PRAGMA integrity_check") == Array("ok".utf8))
    let topics = try store.topics(app: TestRegistry.app, after: [], limit: 100_000)
    #expect(!topics.isEmpty)
    #expect(topics.allSatisfy { $0.members == 50 })
    #expect(
      try #require(store.session as? SQLiteConnection).pragma("SELECT count(*) FROM devices")
        == Array("\(topics.count * 50)".utf8))
  }
}

/// The process that is killed above. It is a separate suite because it must leave nothing behind.
@Suite("A writer")
struct WriterToKill {
  @Test("Writes until it is killed", .enabled(if: ProcessInfo.processInfo.environment["PUSHFLEET_TEST_WRITE_TO"] != nil))
  func writesUntilKilled() throws {
    let store = try DeviceStore(path: try #require(ProcessInfo.processInfo.environment["PUSHFLEET_TEST_WRITE_TO"]))
    for batch in 0..<20_000 {
      _ = try store.apply(
        (0..<50).map { index in
          var device = Registration(app: TestRegistry.app, platform: .fcm, token: Array("b\(batch)-\(index)".utf8))
          device.topics = [Array("batch\(batch)".utf8)]
          return .register(device)
        }, now: 1)
    }
  }
}

/// A file system in memory, of its own size, mounted for one test.
final class SmallDisk {
  let path: String

  static let isPossible: Bool = {
    let folder = NSTemporaryDirectory() + "/pushfleet-mount-\(UUID().uuidString.prefix(8))"
    defer { rmdir(folder) }
    return (try? SmallDisk(folder, kilobytes: 64)) != nil
  }()

  init(_ path: String, kilobytes: Int) throws {
    self.path = path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    guard mount("tmpfs", path, "tmpfs", 0, "size=\(kilobytes)k") == 0 else { throw TestFailure("not mounted: \(errno)") }
  }

  /// - Parameter access: `ro` or `rw`.
  func remount(_ access: String) throws {
    let flags = UInt(MS_REMOUNT) | (access == "ro" ? UInt(MS_RDONLY) : 0)
    guard mount("tmpfs", path, "tmpfs", flags, nil) == 0 else { throw TestFailure("not mounted again: \(errno)") }
  }

  deinit { umount2(path, Int32(MNT_DETACH)) }
}

/// Collects the findings of several threads.
final class Collected<Element: Sendable>: @unchecked Sendable {
  private let lock = NSLock()
  private var elements: [Element] = []
  func add(_ element: Element) { lock.withLock { elements.append(element) } }
  var all: [Element] { lock.withLock { elements } }
}
