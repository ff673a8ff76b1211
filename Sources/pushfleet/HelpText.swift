/// A command's help, wrapped to the terminal's width.
struct HelpText {
  /// Columns; longer lines are hard to read.
  static let widest = 100

  private let width: Int

  /// - Parameter width: columns; a longer word has its own line.
  init(width: Int) { self.width = min(width, Self.widest) }

  /// Empty lines separate the blocks: forms, paragraphs, lists, and an example that can be copied.
  func text(_ page: CommandPage) -> String {
    let blocks = page.blocks.flatMap { block in
      switch block {
      case .text(let text): text.split(separator: "\n\n").map { filled($0.split { $0.isWhitespace }) }
      case .list(let entries): [list(entries.compactMap(\.row))]
      }
    }
    return ([usage(page)] + blocks + [WrappedText.command("Example: \(page.example)", width: width)]).joined(separator: "\n\n")
  }

  /// One line per form; bracketed parts stay together.
  private func usage(_ page: CommandPage) -> String {
    page.forms.enumerated().map { index, form in
      filled(
        ["pushfleet", page.name] + form.pieces(page.value), first: index == 0 ? "Usage: " : "       ",
        rest: "           ")
    }.joined(separator: "\n")
  }

  /// Rows such as `  --app APP   what it does`, with aligned continuation lines.
  func list(_ entries: [(head: String, words: String)]) -> String {
    let column = 4 + (entries.map(\.head.count).max() ?? 0)
    return entries.map { head, words in
      filled(
        words.split(separator: " "), first: "  " + head.padded(to: column - 2), rest: String(repeating: " ", count: column))
    }.joined(separator: "\n")
  }

  private func filled(_ words: [some StringProtocol], first: String = "", rest: String = "") -> String {
    WrappedText.lines(words, first: first, rest: rest, width: width).joined(separator: "\n")
  }
}
