import Foundation
import Testing

@testable import Reactor

@Suite("The address of a proxy")
struct ProxyAddressTests {
  @Test(
    "is read with and without a port, a user and a password",
    arguments: [
      ("http://proxy.test:3128", "http://proxy.test:3128", nil), ("HTTP://proxy.test/", "http://proxy.test:80", nil),
      ("http://[::1]:3128/", "http://[::1]:3128", nil), ("http://user@proxy.test:1", "http://proxy.test:1", "user:"),
      ("http://user:secret@proxy.test:1", "http://proxy.test:1", "user:secret"),
      ("http://us%40er:p%3A%25%C3%A9@[::1]:1", "http://[::1]:1", "us@er:p:%é"),
      ("http://user:a:b@c@proxy.test:1", "http://proxy.test:1", "user:a:b@c"),
      ("http://:@proxy.test:1", "http://proxy.test:1", ":"),
    ] as [(String, String, String?)])
  func forms(url: String, address: String, login: String?) throws {
    let proxy = try #require(ProxyAddress(url))
    #expect(proxy.description == address)
    #expect(try proxy.endpoint == Endpoint(parsing: address))
    let expected = login.map { "Basic " + Data($0.utf8).base64EncodedString() }
    #expect(proxy.authorization.map { String(decoding: $0, as: UTF8.self) } == expected)
  }

  @Test(
    "is refused with another scheme, a path, a wrong escape, or a user that Basic authentication can't name",
    arguments: [
      "", "proxy.test:3128", "https://proxy.test:3128", "socks5://proxy.test", "http://", "http://proxy.test:0",
      "http://proxy.test/path", "http://proxy.test?query", "http://user:100%@proxy.test", "http://us%3Aer:x@proxy.test",
      "http://proxy.test:1\r\nX: y", "http://http://proxy.test", "http://a b:1",
      "http://user:\(String(repeating: "x", count: 1024))@proxy.test",
    ])
  func refused(url: String) { #expect(ProxyAddress(url) == nil) }

  @Test("shows neither user nor password when it is printed, alone or within another value")
  func secret() throws {
    let proxy = try #require(ProxyAddress("http://user:secret@proxy.test:3128"))
    for text in ["\(proxy)", String(reflecting: proxy), "\(LinkOptions(proxy: proxy))"] {
      #expect(text.contains("proxy.test") && !text.contains("Basic") && !text.contains("secret") && !text.contains("user:"))
    }
  }
}
