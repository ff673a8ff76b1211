/// A bounded buffer of lines for a writer: a stopped reader costs lines, but no memory.
struct LineBuffer {
  let capacity: Int
  private var bytes: [UInt8] = []
  /// Lines refused since the last `take`, all later than the lines in `bytes`.
  private var refused = 0

  init(capacity: Int) { self.capacity = capacity }

  var isEmpty: Bool { bytes.isEmpty && refused == 0 }

  /// Returns false and drops the line if there is no room, or if it is longer than the buffer.
  mutating func append(_ line: [UInt8]) -> Bool {
    guard bytes.count + line.count <= capacity else {
      refused += 1
      return false
    }
    bytes.append(contentsOf: line)
    return true
  }

  mutating func take() -> (bytes: [UInt8], refused: Int) {
    defer {
      bytes = []
      refused = 0
    }
    return (bytes, refused)
  }

  /// The part of `bytes` to write at once: whole lines, at most what a pipe writes atomically (pipe(7), PIPE_BUF), so that
  /// lines of several processes don't mix. A longer line is written alone.
  static func portion(of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    let newline = UInt8(ascii: "\n")
    guard bytes.count > atomic else { return bytes }
    if let last = bytes.prefix(atomic).lastIndex(of: newline) { return bytes[...last] }
    return bytes.firstIndex(of: newline).map { bytes[...$0] } ?? bytes
  }

  private static let atomic = 4096
}
