import PushCore
import Testing

@Suite("The suggestion for a misspelled word")
struct SpellingTests {
  private static let known = ["title", "title_loc_key", "body", "click_action", "color"]

  @Test(
    "is the known word that differs in few letters or in letter case, or is contained in it",
    arguments: [
      ("titel", "title"), ("TITLE", "title"), ("colour", "color"), ("titleLocKey", "title_loc_key"),
      ("click-action", "click_action"),
      ("x-body-x", "body"), ("tag", nil), ("", nil),
    ] as [(String, String?)])
  func nearest(word: String, meant: String?) {
    #expect(Spelling.nearest(to: word, among: Self.known) == meant)
    #expect(Spelling.suggestion(for: word, among: Self.known) == (meant.map { ": did you mean \($0)?" } ?? ""))
  }

  @Test("is not searched for a word longer than any name, so that such words cost nothing")
  func long() {
    #expect(Spelling.nearest(to: String(repeating: "title", count: 100), among: Self.known) == nil)
  }
}
