import Foundation

/// Notices that a file was written or replaced, by size, inode and time of modification.
struct FileWatch {
  private var seen: [String: Stamp] = [:]

  private struct Stamp: Equatable {
    var size: Int
    var inode: Int
    var modified: Date
  }

  /// - Returns: whether one of the files has changed since the last look; the first look at a file is no change.
  mutating func hasChanged(_ files: [String]) -> Bool {
    var isChanged = false
    var now: [String: Stamp] = [:]
    for file in files {
      // A file that is being replaced may be missing for a moment: that is not yet a change.
      guard let stamp = Self.stamp(of: file) ?? seen[file] else { continue }
      now[file] = stamp
      if let earlier = seen[file], earlier != stamp { isChanged = true }
    }
    seen = now
    return isChanged
  }

  private static func stamp(of file: String) -> Stamp? {
    guard let attributes = try? FileManager.default.attributesOfItem(atPath: file) else { return nil }
    return Stamp(
      size: attributes[.size] as? Int ?? 0, inode: attributes[.systemFileNumber] as? Int ?? 0,
      modified: attributes[.modificationDate] as? Date ?? .distantPast)
  }
}
