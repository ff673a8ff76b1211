/// A command's help as it is shown: filled anew for the width that there is.
struct HelpText {
  /// Columns; lines that are longer are hard to read on any terminal.
  static let widest = 100

  private let width: Int

  /// - Parameter width: columns; a word that is longer has a line of its own.
  init(width: Int) { self.width = min(width, Self.widest) }

  /// Blocks stand apart by an empty line: the usage, paragraphs, lists of options, an example, which can be copied.
  func fitted(_ help: String) -> String {
    let lines = help.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    return lines.split { $0.isEmpty }.map { fitted(block: Array($0)) }.joined(separator: "\n\n")
  }

  private func fitted(block: [String]) -> String {
    if block[0].hasPrefix("Usage:") { return usage(block) }
    if block[0].hasPrefix("Example") {
      return block.map { WrappedText.command($0, width: width) }.joined(separator: "\n")
    }
    if block.allSatisfy({ $0.hasPrefix("  ") }) { return list(block) }
    return filled(Self.words(block.joined(separator: " ")), first: "", rest: "")
  }

  /// Each form begins a line; what stands between brackets stays together.
  private func usage(_ block: [String]) -> String {
    var forms: [[String]] = []
    for line in block {
      let words = Self.words(line.replacing("Usage:", with: ""))
      if words.first == "pushfleet" || forms.isEmpty { forms.append(words) } else { forms[forms.count - 1] += words }
    }
    return forms.enumerated().map { index, words in
      filled(Self.bracketed(words), first: index == 0 ? "Usage: " : "       ", rest: "           ")
    }.joined(separator: "\n")
  }

  /// `  --app APP   what it does`, which may go on deeper.
  private func list(_ block: [String]) -> String {
    var entries: [(head: String, words: [String])] = []
    for line in block {
      let text = line.drop { $0 == " " }
      if line.count - text.count == 2 || entries.isEmpty {
        let gap = text.firstRange(of: "  ")
        entries.append(
          (String(text[..<(gap?.lowerBound ?? text.endIndex)]), gap.map { Self.words(text[$0.lowerBound...]) } ?? []))
      } else {
        entries[entries.count - 1].words += Self.words(text)
      }
    }
    let column = 4 + (entries.map(\.head.count).max() ?? 0)
    return entries.map { head, words in
      filled(
        words, first: "  " + head.padding(toLength: column - 2, withPad: " ", startingAt: 0),
        rest: String(repeating: " ", count: column))
    }.joined(separator: "\n")
  }

  private func filled(_ words: [String], first: String, rest: String) -> String {
    WrappedText.lines(words, first: first, rest: rest, width: width).joined(separator: "\n")
  }

  private static func words(_ text: some StringProtocol) -> [String] { String(text).split(separator: " ").map(String.init) }

  private static func bracketed(_ words: [String]) -> [String] {
    var depth = 0
    return words.reduce(into: []) { whole, word in
      if depth > 0 { whole[whole.count - 1] += " " + word } else { whole.append(word) }
      depth += word.count { $0 == "[" || $0 == "(" } - word.count { $0 == "]" || $0 == ")" }
    }
  }
}
