/// A command's help as it is shown: filled for the width that there is.
struct HelpText {
  /// Columns; lines that are longer are hard to read on any terminal.
  static let widest = 100

  private let width: Int

  /// - Parameter width: columns; a word that is longer has a line of its own.
  init(width: Int) { self.width = min(width, Self.widest) }

  /// Blocks stand apart by an empty line: the forms, paragraphs, lists of options, an example, which can be copied.
  func text(_ page: CommandPage) -> String {
    let blocks = page.blocks.flatMap { block in
      switch block {
      case .text(let text): text.split(separator: "\n\n").map { filled($0.split { $0.isWhitespace }) }
      case .list(let entries): [list(entries.compactMap(\.row))]
      }
    }
    return ([usage(page)] + blocks + [WrappedText.command("Example: \(page.example)", width: width)]).joined(separator: "\n\n")
  }

  /// Each form begins a line; what stands between brackets stays together.
  private func usage(_ page: CommandPage) -> String {
    page.forms.enumerated().map { index, form in
      filled(
        ["pushfleet", page.name] + form.pieces(page.value), first: index == 0 ? "Usage: " : "       ",
        rest: "           ")
    }.joined(separator: "\n")
  }

  /// `  --app APP   what it does`, which may go on deeper.
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
