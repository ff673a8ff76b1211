import Testing

@testable import PushCore

@Suite("A date in a header")
struct HTTPDateTests {
  @Test(
    "is read in its three forms",
    arguments: [
      ("Fri, 20 Nov 2026 21:22:00 GMT", 1_795_209_720), ("Thu, 29 Feb 2024 00:00:00 GMT", 1_709_164_800),
      ("Friday, 20-Nov-26 21:22:00 GMT", 1_795_209_720), ("Fri Nov 20 21:22:00 2026", 1_795_209_720),
    ] as [(String, Int64)])
  func forms(text: String, seconds: Int64) { #expect(HTTPDate.seconds(Array(text.utf8)[...]) == seconds) }

  @Test("in another form is ignored", arguments: ["", "now", "Fri, 99 Nov 2026 21:22:00 GMT", "Fri, 20 Nov 2026 21:22 GMT"])
  func unreadable(text: String) { #expect(HTTPDate.seconds(Array(text.utf8)[...]) == nil) }
}
