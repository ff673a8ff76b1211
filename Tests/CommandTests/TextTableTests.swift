import Testing

@testable import pushfleet

@Suite("Tables in a terminal")
struct TextTableTests {
  private static let columns: [TextTable.Column] = [
    .name("NAME", least: 9), .figure("COUNT", rank: 1), .text("WHY", least: 6, rank: 2), .figure("LEAST", rank: 3),
  ]
  private static let figures = ["1,234,567", "89,012"]

  private static func lines(_ width: Int) -> [String] {
    TextTable(columns, rows: [["a-name-with-its-own-end", figures[0], "because of this", figures[1]], ["b", "1", "", "2"]])
      .lines(width: width)
  }

  @Test("texts give way first, names in the middle, then columns by their rank")
  func order() {
    #expect(Self.lines(80)[1] == "a-name-with-its-own-end  1,234,567  because of this  89,012")
    #expect(Self.lines(50)[1] == "a-name…own-end  1,234,567  because of this  89,012")
    #expect(Self.lines(36)[1] == "a-na…-end  1,234,567  becau…  89,012")
    #expect(Self.lines(35)[0].split(separator: " ") == ["NAME", "COUNT", "WHY"])
    #expect(Self.lines(25)[0].split(separator: " ") == ["NAME", "COUNT"])
    #expect(Self.lines(19)[0] == "NAME")
  }

  @Test("columns without content are left out first, and those with content are named")
  func emptyFirst() {
    let columns: [TextTable.Column] = [.name("NAME", least: 9), .figure("RATE", rank: 1), .text("BY", least: 6, rank: 2)]
    let table = TextTable(columns, rows: [["a-name", "-", "a-person"], ["b", "-", "-"]])
    #expect(table.text(width: 18) == "NAME    BY\na-name  a-person\nb       -")
    #expect(table.lines(width: 8) == ["NAME", "a-name", "b"])
    #expect(table.note(width: 8).joined(separator: " ") == "no room for BY: widen the terminal, or use --json")
    #expect(table.note(width: 80).isEmpty)
  }

  @Test("whatever the width, no line is longer, none ends in spaces, and a figure is whole or not there")
  func anyWidth() {
    for width in 1...80 {
      let lines = Self.lines(width)
      #expect(lines.count == 3 && lines.allSatisfy { $0.count <= width && $0.last != " " }, "\(width): \(lines)")
      for figure in Self.figures { #expect(lines[1].contains(figure) || !lines[1].contains(figure.prefix(2)), "\(width)") }
    }
  }
}
