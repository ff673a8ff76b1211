import Reactor

/// Notices that a file was written or replaced, or that what its links lead to was.
public struct FileWatch {
  /// nil: there was none.
  private var seen: [String: FileStamp?] = [:]

  public init(_ files: [String]) { follow(files) }

  /// Watches these files from now on; of those that it knows already, a change since the last look counts.
  public mutating func follow(_ files: [String]) {
    let known = seen
    seen = [:]
    for file in files { seen[file] = .some(known[file] ?? FileStamp(of: file)) }
  }

  /// Whether one of the files has changed since the last look. One that is missing for a moment, while it is replaced, has not.
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
