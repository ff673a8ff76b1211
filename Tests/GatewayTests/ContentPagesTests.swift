import Testing

@testable import Gateway

@Suite("Pages of content in a browser")
struct ContentPagesTests {
  private func shown(_ content: String) -> String { String(decoding: ContentPages.page(Array(content.utf8)), as: UTF8.self) }

  @Test("show a document unchanged")
  func documents() {
    for content in ["<!doctype html><p>\u{e9}</p>", "\r\n\t <h1>x</h1>"] { #expect(shown(content) == content) }
  }

  @Test("show anything else as text without markup")
  func texts() {
    for content in ["6|a <b> & c|https://x", #"{"html":"<script>x</script>"}"#, ""] {
      let page = shown(content)
      let escaped = content.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      #expect(page.hasPrefix("<!DOCTYPE html>") && page.contains("<pre>\(escaped)</pre>") && !page.contains("<script"))
    }
  }
}
