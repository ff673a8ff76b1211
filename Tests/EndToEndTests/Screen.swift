/// The screen of a terminal, as far as pushfleet uses its control sequences.
struct Screen {
  private(set) var lines: [String]
  /// Lines that were wrapped at the terminal's width.
  private(set) var wrapped: [String]

  init(_ bytes: String, columns: Int) {
    var rows: [[Character]] = [[]]
    var wraps: Set<Int> = []
    var (row, column) = (0, 0)
    func down() {
      row += 1
      if row == rows.count { rows.append([]) }
    }
    // As a string, CR LF would be one character.
    var rest = bytes.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "\r": column = 0
      case "\n": down()
      case "\u{1B}":
        guard rest.popFirst() == "[" else { break }
        rest = rest.drop { "?;0123456789".unicodeScalars.contains($0) }
        switch rest.popFirst() {
        case "K": rows[row] = Array(rows[row].prefix(column))
        case "H": (row, column) = (0, 0)
        case "J": rows = Array(rows.prefix(row)) + [Array(rows[row].prefix(column))]
        default: break
        }
      default:
        if column == columns {
          wraps.insert(row)
          down()
          column = 0
        }
        while rows[row].count <= column { rows[row].append(" ") }
        rows[row][column] = Character(scalar)
        column += 1
      }
    }
    lines = rows.map { String($0) }
    wrapped = wraps.sorted().map { String(rows[$0]) }
  }
}
