/// Lines that wait for a writer, so many bytes at most: a reader who has stopped costs lines and nothing else.
struct LineBuffer {
  let capacity: Int
  private var bytes: [UInt8] = []
  /// Lines refused since the last `take`; all of them came after what `take` hands out.
  private var refused = 0

  init(capacity: Int) { self.capacity = capacity }

  var isEmpty: Bool { bytes.isEmpty && refused == 0 }

  /// False when there is no room: the line is dropped. One that would fit into no buffer is dropped as well.
  mutating func append(_ line: [UInt8]) -> Bool {
    guard bytes.count + line.count <= capacity else {
      refused += 1
      return false
    }
    bytes.append(contentsOf: line)
    return true
  }

  /// Everything that waits, and how many lines were dropped after it.
  mutating func take() -> (bytes: [UInt8], refused: Int) {
    defer {
      bytes = []
      refused = 0
    }
    return (bytes, refused)
  }

  /// How much of `bytes` to write at once: whole lines, and no more than a pipe takes in one piece (pipe(7), PIPE_BUF), so that lines of
  /// several processes that share a pipe don't mix. A longer line goes by itself.
  static func portion(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let newline = UInt8(ascii: "\n")
    guard bytes.count > atomic else { return bytes }
    if let last = bytes.prefix(atomic).lastIndex(of: newline) { return bytes[...last] }
    return bytes.firstIndex(of: newline).map { bytes[...$0] } ?? bytes
  }

  private static let atomic = 4096
}
