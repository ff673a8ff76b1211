import Foundation
import PushCore
import Synchronization

/// Where a simulator notes every request: a file of NDJSON, memory, or both. Readable from any thread.
public final class Journal: Sendable {
  private struct State {
    var entries: [JournalEntry] = []
    var violations: [String] = []
    var count = 0
    var pending: [UInt8] = []
    var file: FileHandle?
  }

  private let state: Mutex<State>
  private let keepsEntries: Bool
  private let hasFile: Bool

  /// - Parameters:
  ///   - path: appended to, created when absent; nil for none.
  ///   - keepsEntries: for `entries`, at the price of memory for each request.
  public init(path: String? = nil, keepsEntries: Bool = false) throws {
    var file: FileHandle?
    if let path {
      // It has tokens and payloads.
      if !FileManager.default.fileExists(atPath: path) {
        _ = FileManager.default.createFile(atPath: path, contents: nil, attributes: [.posixPermissions: 0o600])
      }
      file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file?.seekToEnd()
    }
    self.keepsEntries = keepsEntries
    hasFile = file != nil
    state = Mutex(State(file: file))
  }

  deinit { flush() }

  /// Requests noted so far.
  public var count: Int { state.withLock { $0.count } }

  /// The requests so far, when they are kept.
  public var entries: [JournalEntry] { state.withLock { $0.entries } }

  /// What clients did to HTTP/2 itself; kept whether entries are or not, up to a thousand.
  public var violations: [String] { state.withLock { $0.violations } }

  func noteViolation(_ what: String, connection: Int, at time: Int64) {
    state.withLock { state in
      if state.violations.count < 1000 { state.violations.append(what) }
      guard hasFile else { return }
      var json = JSONObjectWriter(after: state.pending)
      json.set("time", Timestamp.text(time))
      json.set("connection", Int64(connection))
      json.set("violation", what)
      state.pending = json.closed() + [UInt8(ascii: "\n")]
    }
  }

  func note(_ entry: JournalEntry) {
    state.withLock { state in
      state.count += 1
      if keepsEntries { state.entries.append(entry) }
      guard hasFile else { return }
      entry.append(to: &state.pending)
      if state.pending.count >= 64 * 1024 { Self.write(&state) }
    }
  }

  /// Writes out the lines noted since the last time: whole lines only, so that a reader sees no half one.
  func flush() {
    guard hasFile else { return }
    state.withLock { Self.write(&$0) }
  }

  private static func write(_ state: inout State) {
    guard !state.pending.isEmpty else { return }
    // A full disk costs the journal lines, not the simulation.
    try? state.file?.write(contentsOf: Data(state.pending))
    state.pending.removeAll(keepingCapacity: true)
  }
}
