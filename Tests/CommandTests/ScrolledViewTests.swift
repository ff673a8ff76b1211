import Testing

@testable import pushfleet

@Suite("The screen of pushfleet top")
struct ScrolledViewTests {
  private let lines = (1...30).map { "line \($0)" }

  @Test("shows as many lines as there is room for, from where one has moved to, and never beyond the end")
  func moves() {
    var view = ScrolledView()
    func screen(_ moves: [ScrolledView.Move] = []) -> [String] {
      for move in moves { view.move(move) }
      return view.screen(lines, width: 60, height: 11, foot: "q ends")
    }
    #expect(screen().first == "line 1" && screen().last == "q ends; 0 lines above, 20 below: arrows")
    #expect(screen([.down, .down]).first == "line 3" && screen([.up]).first == "line 2")
    #expect(screen([.pageDown]).first == "line 11" && screen([.pageDown, .pageDown, .pageDown]).first == "line 21")
    #expect(screen().last == "q ends; 20 lines above, 0 below: arrows" && screen().count == 11)
    #expect(screen([.pageUp]).first == "line 12" && screen([.home]).first == "line 1" && screen([.up]).first == "line 1")
  }

  @Test(
    "fills a screen that is higher, and bears one that is smaller than anything",
    arguments: [(80, 40), (10, 3), (1, 1), (0, 0)])
  func sizes(width: Int, height: Int) {
    var view = ScrolledView()
    for _ in 0..<3 {
      let shown = view.screen(lines, width: width, height: height, foot: "q ends")
      #expect(shown.count == height && (shown.last?.count ?? 0) <= width)
      view.move(.pageDown)
    }
    #expect(view.screen([], width: 80, height: 4, foot: "q ends") == ["", "", "", "q ends"])
  }

  @Test("keys are read as terminals send them, and what means nothing is none")
  func keys() {
    func read(_ text: String) -> [TerminalKey] { TerminalKey.read(Array(text.utf8)) }
    #expect(read("q") == [.quit] && read("\u{3}") == [.quit] && read("xp") == [.pools])
    #expect(read("\u{1B}[A\u{1B}OB\u{1B}[6~j") == [.move(.up), .move(.down), .move(.pageDown), .move(.down)])
    #expect(read("\u{1B}[1;5q\u{1B}[Z\u{1B}") == [] && read("\u{1B}[5") == [] && read("\u{FF}é") == [])
  }
}
