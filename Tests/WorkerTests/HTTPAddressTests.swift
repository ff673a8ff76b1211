import Testing

@testable import Settings

@Suite("An HTTP address")
struct HTTPAddressTests {
  @Test(
    "keeps its path as it is written",
    arguments: [
      ("https://h/hook/a%2Fb", "/hook/a%2Fb"), ("https://h/a%3Fb/", "/a%3Fb"), ("https://h/a%20b", "/a%20b"),
      ("https://h/", ""), ("http://h:81", ""), ("https://h/a;b=c,d", "/a;b=c,d"),
    ])
  func path(_ text: String, _ path: String) { #expect(HTTPAddress(text, defaultPort: 443)?.path == path) }

  @Test(
    "has no user, query, fragment, space or byte beyond ASCII",
    arguments: [
      "https://u@h/", "https://h/?a", "https://h/#a", "https://h/a b", "https://h/ü", "https://h/a\n", "ftp://h/", "h",
    ])
  func refused(_ text: String) { #expect(HTTPAddress(text, defaultPort: 443) == nil) }
}
