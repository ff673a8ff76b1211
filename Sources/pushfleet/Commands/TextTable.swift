/// Rows below each other, in columns; the last one is as wide as it gets.
struct TextTable {
  private let lines: [String]

  /// - Parameter figures: columns of numbers.
  init(heads: [String], rows: [[String]], figures: Set<Int> = []) {
    let all = [heads] + rows
    let widths = heads.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    lines = all.map { row in
      row.indices.map { column in
        let space = String(repeating: " ", count: widths[column] - row[column].count)
        if figures.contains(column) { return space + row[column] }
        return column == heads.count - 1 ? row[column] : row[column] + space
      }.joined(separator: "  ")
    }
  }

  /// Of the longest line.
  var width: Int { lines.map(\.count).max() ?? 0 }

  /// - Parameter width: of the terminal: no line is longer. The last column gives way first, then what stands at a line's end.
  func text(width: Int = .max) -> String {
    lines.map { $0.count > width ? $0.prefix(max(0, width - 1)) + "…" : $0 }.joined(separator: "\n")
  }
}
