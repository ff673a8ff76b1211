/// Splits bytes in portions of any size into lines. Omits empty lines.
struct LineReader {
  private var buffer: [UInt8] = []
  private var at = 0
  private var searched = 0
  private var line = 0
  /// True if the current line exceeds the limit. Its remaining bytes are dropped.
  private var isDropping = false

  static let longestLine = 8 << 20

  mutating func append(_ bytes: some Sequence<UInt8>) {
    if at > 0 {
      buffer.removeFirst(at)
      searched -= at
      at = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The next line with its number from 1; the text is nil if it was too long. Returns nil if more bytes are needed.
  mutating func next(isEnd: Bool) -> (line: Int, text: [UInt8]?)? {
    while true {
      while searched < buffer.count, buffer[searched] != 0x0A { searched += 1 }
      let isWhole = searched < buffer.count
      guard isWhole || isEnd else {
        if searched - at > Self.longestLine {
          isDropping = true
          at = searched
        }
        return nil
      }
      guard at < buffer.count || isDropping else { return nil }
      var end = searched
      let start = at
      searched = min(searched + 1, buffer.count)
      at = searched
      line += 1
      if isDropping || end - start > Self.longestLine {
        isDropping = false
        return (line, nil)
      }
      if end > start, buffer[end - 1] == 0x0D { end -= 1 }
      if end > start { return (line, Array(buffer[start..<end])) }
      guard isWhole else { return nil }
    }
  }
}
