import PushCore
import Testing

@Suite("What a misspelled word was meant to be")
struct SpellingTests {
  private static let known = ["title", "title_loc_key", "body", "click_action", "color"]

  @Test(
    "is the known word that is few letters apart, of another letter case, or inside of it",
    arguments: [
      ("titel", "title"), ("TITLE", "title"), ("colour", "color"), ("titleLocKey", "title_loc_key"),
      ("click-action", "click_action"),
      ("x-body-x", "body"), ("tag", nil), ("", nil),
    ] as [(String, String?)])
  func nearest(word: String, meant: String?) {
    #expect(Spelling.nearest(to: word, among: Self.known) == meant)
    #expect(Spelling.suggestion(for: word, among: Self.known) == (meant.map { ": did you mean \($0)?" } ?? ""))
  }

  @Test("is not looked for where a word is longer than any name: who sends it has others wait for nothing")
  func long() {
    #expect(Spelling.nearest(to: String(repeating: "title", count: 100), among: Self.known) == nil)
  }
}
