import Dispatch
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("Pages of content, on both databases")
struct ContentPageTests {
  private static func page(_ number: UInt8, app: String = "a", keep: Int64 = 1_000, most: Int64 = 1_000) -> ContentPage {
    ContentPage(
      digest: [UInt8](repeating: number, count: 32), app: Array(app.utf8), content: [0x3C, number, 0, 0xFF], keep: keep,
      most: most)
  }

  @Test("the same content is one page for all writers, and other content is another", arguments: Backend.all)
  func same(_ backend: Backend) throws {
    let registry = try backend.open()
    let name = try #require(try registry.store.keepPage(Self.page(1), now: 10))
    #expect(ContentPage.isName(name))
    #expect(try registry.another().keepPage(Self.page(1), now: 10) == name)
    #expect(try registry.another().keepPage(Self.page(1), now: 700) == name)
    #expect(try registry.store.keepPage(Self.page(2), now: 10) != name)
    #expect(try registry.another().content(ofPage: name, now: 10) == [0x3C, 1, 0, 0xFF])
  }

  @Test("a page lives for its time, longer if it is stored again, and is removed afterwards", arguments: Backend.all)
  func time(_ backend: Backend) throws {
    let registry = try backend.open()
    let name = try #require(try registry.store.keepPage(Self.page(1), now: 0))
    let other = try #require(try registry.store.keepPage(Self.page(2), now: 0))
    #expect(try registry.store.content(ofPage: name, now: 999) != nil)
    #expect(try registry.store.content(ofPage: name, now: 1_000) == nil)
    _ = try registry.store.keepPage(Self.page(1), now: 500)
    // A shorter lifetime changes nothing.
    _ = try registry.store.keepPage(Self.page(1, keep: 1), now: 600)
    #expect(try registry.store.content(ofPage: name, now: 1_499) != nil)
    #expect(try registry.store.purge(.content, before: 1_000, limit: 0) == 0)
    #expect(try registry.store.purge(.content, before: 1_000, limit: 10) == 1)
    #expect(try registry.store.content(ofPage: other, now: 0) == nil)
    // Expired and not yet removed: the same page again.
    #expect(try registry.store.keepPage(Self.page(1), now: 5_000) == name)
    #expect(try registry.store.content(ofPage: name, now: 5_999) != nil)
    #expect(try registry.store.purge(.content, before: 9_000, limit: 10) == 1)
    #expect(try registry.store.keepPage(Self.page(1), now: 9_000) != name)
  }

  @Test("the pages of an application have a common limit, without those of others", arguments: Backend.all)
  func bound(_ backend: Backend) throws {
    let registry = try backend.open()
    let store = registry.store
    func keep(_ number: UInt8, app: String = "a", at now: Int64 = 0) throws -> [UInt8]? {
      try store.keepPage(Self.page(number, app: app, most: 9), now: now)
    }
    #expect(try keep(1) != nil && keep(2) != nil)
    #expect(try keep(3) == nil && keep(4, app: "b") != nil)
    // An existing page is kept again, and its room is free once its time is over.
    #expect(try keep(1, at: 500) == keep(1))
    #expect(try store.purge(.content, before: 1_000, limit: 10) == 2)
    #expect(try keep(3, at: 1_000) != nil && keep(2, at: 1_000) == nil)
    #expect(try store.purge(.content, before: 9_000, limit: 10) == 2)
    #expect(try keep(1, at: 9_000) != nil && keep(2, at: 9_000) != nil && keep(3, at: 9_000) == nil)
  }

  @Test("workers that keep the same pages at once count each page's size once", arguments: Backend.all)
  func concurrent(_ backend: Backend) throws {
    let registry = try backend.open()
    let location = registry.location
    let failures = Collected<String>()
    DispatchQueue.concurrentPerform(iterations: 4) { _ in
      do {
        let store = try backend.connect(location)
        for number in 1...50 where try store.keepPage(Self.page(UInt8(number), most: 204), now: 0) == nil {
          failures.add("no room for page \(number)")
        }
      } catch { failures.add("\(error)") }
    }
    #expect(failures.all == [])
    // Fifty pages of four bytes leave room for one more.
    #expect(try registry.store.keepPage(Self.page(51, most: 204), now: 0) != nil)
    #expect(try registry.store.keepPage(Self.page(52, most: 204), now: 0) == nil)
  }

  @Test("a name has every random bit, and other forms are invalid")
  func names() {
    var number: Int64 = -1
    let name = ContentPage.makeName {
      number += 1
      return number == 0 ? -1 : 0
    }
    #expect(text(name) == "__________AAAAAAAAAAAAAAAAAAAA" && ContentPage.isName(name))
    for other in ["", "__________AAAAAAAAAAAAAAAAAAA", "__________AAAAAAAAAAAAAAAAAAAAA", "__________AAAAAAAAAAAAAAAAAAA/"] {
      #expect(!ContentPage.isName(Array(other.utf8)))
    }
  }
}
