import Foundation
import PushCore
import Reactor
import Synchronization
import Wire

/// The simulator's record of all requests: an NDJSON file, memory, or both. Readable from any thread.
public final class Journal: Sendable, TurnHook {
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
  ///   - path: the file to append to, created if missing; nil for no file.
  ///   - keepsEntries: keep all requests in memory for `entries`.
  public init(path: String? = nil, keepsEntries: Bool = false) throws {
    var file: FileHandle?
    if let path {
      // Private, because it contains tokens and payloads.
      if !FileManager.default.fileExists(atPath: path) {
        try FileContents.create(path, [])
      }
      file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      try file?.seekToEnd()
    }
    self.keepsEntries = keepsEntries
    hasFile = file != nil
    state = Mutex(State(file: file))
  }

  deinit { flush() }

  public var count: Int { state.withLock { $0.count } }

  /// The requests so far, if they are kept.
  public var entries: [JournalEntry] { state.withLock { $0.entries } }

  /// Violations of HTTP/2 by clients, up to a thousand. They are always kept.
  public var violations: [String] { state.withLock { $0.violations } }

  func noteViolation(_ what: String, connection: Int, at time: Int64) {
    state.withLock { state in
      if state.violations.count < 1000 { state.violations.append(what) }
      guard hasFile else { return }
      let violation: JSONObject = ["time": Timestamp.text(time), "connection": connection, "violation": what]
      state.pending += violation.line + [UInt8(ascii: "\n")]
    }
  }

  func note(_ entry: JournalEntry) {
    state.withLock { state in
      state.count += 1
      if keepsEntries { state.entries.append(entry) }
      guard hasFile else { return }
      state.pending += entry.json.line + [UInt8(ascii: "\n")]
      if state.pending.count >= 64 * 1024 { Self.write(&state) }
    }
  }

  /// Writes the lines noted since the last call. Only whole lines, so that a reader never sees a partial one.
  func flush() {
    guard hasFile else { return }
    state.withLock { Self.write(&$0) }
  }

  private static func write(_ state: inout State) {
    guard !state.pending.isEmpty else { return }
    // If the disk is full, the lines are lost and the simulation goes on.
    try? state.file?.write(contentsOf: Data(state.pending))
    state.pending.removeAll(keepingCapacity: true)
  }

  public func turnEnding(at now: MonotonicTime) { flush() }
}
