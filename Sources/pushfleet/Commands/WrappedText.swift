/// Wraps text between words; a word longer than the room has its own line.
enum WrappedText {
  static func lines(_ text: String, room: Int) -> [String] {
    lines(text.split(separator: " ", omittingEmptySubsequences: false), room: room)
  }

  static func lines(_ words: [some StringProtocol], room: Int) -> [String] {
    var lines = [""]
    for word in words {
      if let line = lines.last, !line.isEmpty, line.count + 1 + word.count > room { lines.append("") }
      lines[lines.count - 1] += (lines[lines.count - 1].isEmpty ? "" : " ") + word
    }
    return lines
  }

  static func lines(_ text: String, first: String, rest: String, width: Int) -> [String] {
    lines(text.split(separator: " ", omittingEmptySubsequences: false), first: first, rest: rest, width: width)
  }

  /// - Parameter rest: prefix of all lines but the first; not shorter than `first`.
  static func lines(_ words: [some StringProtocol], first: String, rest: String, width: Int) -> [String] {
    lines(words, room: room(width: width, margin: rest.count)).enumerated().map { ($0 == 0 ? first : rest) + $1 }
  }

  /// Wraps a shell command with backslashes at line ends. Quoted parts stay together.
  static func command(_ line: String, width: Int) -> String {
    var words = [""]
    var quote: Character?
    for character in line {
      if character == quote { quote = nil } else if quote == nil, "'\"".contains(character) { quote = character }
      if character == " ", quote == nil { words.append("") } else { words[words.count - 1].append(character) }
    }
    return lines(words, room: room(width: width, margin: 4)).joined(separator: " \\\n  ")
  }

  /// Columns left beside a margin. The last column stays free, because some terminals wrap after it.
  static func room(width: Int, margin: Int = 0) -> Int { width == .max ? .max : max(width - margin - 1, 20) }
}

extension String {
  func padded(to width: Int) -> String { self + String(repeating: " ", count: max(width - count, 0)) }
}
