import Reactor

/// Detects that a file, or the target of a link, was written or replaced.
public struct FileWatch {
  /// nil if the file was missing.
  private var seen: [String: FileStamp?] = [:]

  public init(_ files: [String]) { follow(files) }

  /// Watches these files from now on. Files that were watched before keep their earlier state, so that no change is missed.
  public mutating func follow(_ files: [String]) {
    let known = seen
    seen = [:]
    for file in files { seen[file] = .some(known[file] ?? FileStamp(of: file)) }
  }

  /// True if a file has changed since the last call. A missing file doesn't count, because it may be about to be replaced.
  public mutating func hasChanged() -> Bool {
    var isChanged = false
    for (file, earlier) in seen {
      guard let stamp = FileStamp(of: file), stamp != earlier else { continue }
      seen[file] = stamp
      isChanged = true
    }
    return isChanged
  }
}
