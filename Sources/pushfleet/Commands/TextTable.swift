/// Rows in aligned columns. Narrow terminals get shortened texts, then fewer columns: first those without content. Figures stay whole.
struct TextTable {
  struct Column {
    fileprivate enum Kind {
      case figure
      /// Shortened in the middle, because beginning and end of a name distinguish it.
      case name
      case text
    }

    fileprivate var head: String
    fileprivate var kind: Kind
    /// Characters that remain in a shortened cell.
    fileprivate var least = 0
    /// Columns with the highest rank are left out first; columns with rank 0 always stay.
    fileprivate var rank = 0

    static func figure(_ head: String, rank: Int = 0) -> Column { Column(head: head, kind: .figure, rank: rank) }

    static func name(_ head: String, least: Int, rank: Int = 0) -> Column {
      .init(head: head, kind: .name, least: least, rank: rank)
    }
    static func text(_ head: String, least: Int, rank: Int = 0) -> Column {
      .init(head: head, kind: .text, least: least, rank: rank)
    }
  }

  private static let gap = 2

  private let columns: [Column]
  private let rows: [[String]]
  private let widths: [Int]
  private let isEmpty: [Bool]

  init(_ columns: [Column], rows: [[String]]) {
    self.columns = columns
    self.rows = rows
    widths = columns.indices.map { column in max(columns[column].head.count, rows.map { $0[column].count }.max() ?? 0) }
    isEmpty = columns.indices.map { column in rows.allSatisfy { ["", "-"].contains($0[column]) } }
  }

  init<Row>(_ columns: [(Column, (Row) -> String)], of rows: [Row]) {
    self.init(columns.map(\.0), rows: rows.map { row in columns.map { $0.1(row) } })
  }

  /// Width of the longest line if nothing is shortened.
  var width: Int { sum(Array(columns.indices)) { widths[$0] } }

  func text(width: Int = .max) -> String { (lines(width: width) + note(width: width)).joined(separator: "\n") }

  /// Names the columns with content that are left out; empty if there are none.
  func note(width: Int) -> [String] {
    let missing = Set(columns.indices).subtracting(columns(within: width)).filter { !isEmpty[$0] }.sorted()
    let words = "no room for \(missing.map { columns[$0].head }.joined(separator: ", ")): widen the terminal, or use --json"
    return missing.isEmpty ? [] : WrappedText.lines(words, room: width)
  }

  /// The heading line, then a line per row.
  /// - Parameter width: columns of the terminal; no line is longer.
  func lines(width: Int = .max) -> [String] {
    let shown = columns(within: width)
    let room = room(shown, within: width)
    return ([columns.map(\.head)] + rows).map { row in
      let cells = zip(shown, room).map { cell(row[$0], columns[$0].kind, $1) }
      let line = cells.joined(separator: String(repeating: " ", count: Self.gap))
      return Shortened.end(String(line.reversed().drop { $0 == " " }.reversed()), to: width)
    }
  }

  // MARK: room

  private func columns(within width: Int) -> [Int] {
    var shown = Array(columns.indices)
    while sum(shown, least) > width, let first = leastImportant(of: shown) { shown.removeAll { $0 == first } }
    return shown
  }

  private func leastImportant(of shown: [Int]) -> Int? {
    func order(_ column: Int) -> Int { columns[column].rank + (isEmpty[column] ? columns.count : 0) }
    return shown.filter { columns[$0].rank > 0 }.max { order($0) < order($1) }
  }

  private func least(_ column: Int) -> Int {
    let kind = columns[column].kind
    return kind == .figure ? widths[column] : min(widths[column], max(columns[column].least, columns[column].head.count))
  }

  /// Takes the excess width from the widest columns.
  private func room(_ shown: [Int], within width: Int) -> [Int] {
    var room = shown.map { widths[$0] }
    var excess = sum(shown) { widths[$0] } - width
    while excess > 0 {
      let shrinkable = shown.indices.filter { room[$0] > least(shown[$0]) }
      guard let widest = shrinkable.max(by: { room[$0] < room[$1] }) else { break }
      room[widest] -= 1
      excess -= 1
    }
    return room
  }

  private func sum(_ shown: [Int], _ width: (Int) -> Int) -> Int {
    shown.reduce(0) { $0 + width($1) } + Self.gap * max(0, shown.count - 1)
  }

  private func cell(_ text: String, _ kind: Column.Kind, _ width: Int) -> String {
    let shown = kind == .name ? Shortened.middle(text, to: width) : Shortened.end(text, to: width)
    let space = String(repeating: " ", count: width - shown.count)
    return kind == .figure ? space + shown : shown + space
  }
}

enum Shortened {
  /// `com.example.ap…`
  static func end(_ text: String, to width: Int) -> String {
    text.count > width ? text.prefix(max(0, width - 1)) + (width > 0 ? "…" : "") : text
  }

  /// `pushfl…-x7k2p:1`
  static func middle(_ text: String, to width: Int) -> String {
    guard text.count > width, width > 2 else { return end(text, to: width) }
    let tail = width / 2
    return text.prefix(width - 1 - tail) + "…" + text.suffix(tail)
  }
}
