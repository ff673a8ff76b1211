/// Parses CSV rows (RFC 4180: quotes, doubled quotes, line breaks in quotes, LF or CRLF) from bytes in portions of any size.
struct CSVRows {
  enum Row {
    case fields([[UInt8]])
    case broken(String)
  }

  private var buffer: [UInt8] = []
  private var at = 0
  /// The line number of `at`, from 1.
  private var line = 1
  /// Why the row that began on this line is broken. The next row begins after the line break, which may not have arrived yet.
  private var givenUp: String?
  /// Start of the last row, and the part of a broken row that has left the buffer.
  private var rowStart = 0
  private var abandoned: [UInt8] = []

  /// Maximum bytes of a row. It also bounds the effect of an unclosed quote.
  static let longestRow = 4 << 20

  mutating func append(_ bytes: some Sequence<UInt8>) {
    if at > 0 {
      if givenUp != nil { abandoned += buffer[rowStart..<at].prefix(Self.longestRow - abandoned.count) }
      buffer.removeFirst(at)
      at = 0
      rowStart = 0
    }
    buffer.append(contentsOf: bytes)
  }

  /// The bytes of the last row without its line break, until more bytes are appended. For an oversized row, its beginning.
  var row: [UInt8] {
    var bytes = abandoned + buffer[rowStart..<at]
    while let last = bytes.last, last == 0x0A || last == 0x0D { bytes.removeLast() }
    return bytes
  }

  /// The next complete row and its first line; nil if more bytes are needed.
  /// - Parameter isEnd: true if no more bytes follow. The last row then needs no line break.
  mutating func next(isEnd: Bool) -> (line: Int, row: Row)? {
    if let why = givenUp { return giveUp(why, isEnd) }
    while let end = buffer[at...].prefix(2).firstIndex(of: 0x0A), end == at || buffer[at] == 0x0D {
      at = end + 1
      line += 1
    }
    guard at < buffer.count else { return nil }
    rowStart = at
    abandoned = []
    let start = line
    var fields: [[UInt8]] = []
    var position = at
    var lines = 0
    while true {
      switch field(&position, &lines, isEnd) {
      case .needsMore:
        guard isEnd || buffer.count - at > Self.longestRow else { return nil }
        let isQuoted = position < buffer.count && buffer[position] == 0x22
        return giveUp(isQuoted ? "a quote is never closed" : "the row is longer than \(Self.longestRow) bytes", isEnd)
      case .malformed(let why): return giveUp(why, isEnd)
      case .ended(let content, let isLast):
        fields.append(content)
        guard isLast else { continue }
        at = position
        line += lines
        return (start, .fields(fields))
      }
    }
  }

  private mutating func giveUp(_ why: String, _ isEnd: Bool) -> (line: Int, row: Row)? {
    while at < buffer.count, buffer[at] != 0x0A { at += 1 }
    guard at < buffer.count || isEnd else {
      givenUp = why
      return nil
    }
    at = min(at + 1, buffer.count)
    givenUp = nil
    defer { line += 1 }
    return (line, .broken(why))
  }

  private enum Field {
    case ended([UInt8], isLast: Bool)
    case needsMore
    case malformed(String)
  }

  private func field(_ position: inout Int, _ lines: inout Int, _ isEnd: Bool) -> Field {
    guard position < buffer.count else { return isEnd ? .ended([], isLast: true) : .needsMore }
    guard buffer[position] == 0x22 else {
      var end = position
      while end < buffer.count, buffer[end] != 0x2C, buffer[end] != 0x0A {
        if buffer[end] == 0x22 { return .malformed("a quote inside an unquoted field") }
        end += 1
      }
      guard end < buffer.count || isEnd else { return .needsMore }
      let isComma = end < buffer.count && buffer[end] == 0x2C
      let contentEnd = !isComma && end > position && buffer[end - 1] == 0x0D ? end - 1 : end
      let content = Array(buffer[position..<contentEnd])
      if end < buffer.count, !isComma { lines += 1 }
      position = min(end + 1, buffer.count)
      return .ended(content, isLast: !isComma)
    }
    var content: [UInt8] = []
    var end = position + 1
    while end < buffer.count {
      if buffer[end] == 0x22 {
        guard end + 1 < buffer.count || isEnd else { return .needsMore }
        guard end + 1 < buffer.count, buffer[end + 1] == 0x22 else { break }
        end += 1
      } else if buffer[end] == 0x0A {
        lines += 1
      }
      content.append(buffer[end])
      end += 1
    }
    guard end < buffer.count else { return .needsMore }
    end += 1
    if end < buffer.count, buffer[end] == 0x0D { end += 1 }
    guard end < buffer.count else {
      position = end
      return isEnd ? .ended(content, isLast: true) : .needsMore
    }
    guard buffer[end] == 0x2C || buffer[end] == 0x0A else { return .malformed("text after a closing quote") }
    if buffer[end] == 0x0A { lines += 1 }
    position = end + 1
    return .ended(content, isLast: buffer[end] == 0x0A)
  }
}
