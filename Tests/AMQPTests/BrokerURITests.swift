import AMQP
import Testing

@Suite("Broker URI")
struct BrokerURITests {
  @Test("Every part is read, with its default")
  func parts() throws {
    let cases: [(String, BrokerURI)] = [
      ("amqp://host", BrokerURI(host: "host", port: 5672)),
      ("amqps://host", BrokerURI(host: "host", port: 5671, isTLS: true)),
      ("AMQP://host:1/", BrokerURI(host: "host", port: 1)),
      ("amqp://u@h/v", BrokerURI(host: "h", virtualHost: "v", user: "u", password: "")),
      ("amqp://u%40x:p%2F%3A%25@10.0.0.1:5673/%2F", BrokerURI(host: "10.0.0.1", port: 5673, user: "u@x", password: "p/:%")),
      ("amqp://a:b:c@h", BrokerURI(host: "h", user: "a", password: "b:c")),
      ("amqp://[::1]:5673/a%2Fb", BrokerURI(host: "::1", port: 5673, virtualHost: "a/b")),
      ("amqp://[fe80::1]", BrokerURI(host: "fe80::1")),
    ]
    for (text, expected) in cases { #expect(try BrokerURI(parsing: text) == expected, "\(text)") }
  }

  @Test("A certificate proves the user of an amqps address without a password, and of no other")
  func external() throws {
    let cases: [(String, BrokerURI)] = [
      ("amqps://h", BrokerURI(host: "h", user: "", password: "", isTLS: true, isExternal: true)),
      ("amqps://u@h/v", BrokerURI(host: "h", virtualHost: "v", user: "u", password: "", isTLS: true, isExternal: true)),
      ("amqps://u:p@h", BrokerURI(host: "h", user: "u", password: "p", isTLS: true)), ("amqp://h", BrokerURI(host: "h")),
    ]
    for (text, expected) in cases { #expect(try BrokerURI(parsing: text, hasCertificate: true) == expected, "\(text)") }
    #expect("\(try BrokerURI(parsing: "amqps://h", hasCertificate: true))" == "amqps://h:5671/")
  }

  @Test(
    "What is no broker URI is refused",
    arguments: [
      "", "amqp", "amqp://", "amqp:///", "http://h", "amqp://h:0", "amqp://h:65536", "amqp://h:", "amqp://h:+1", "amqp://h/a/b",
      "amqp://h/%zz", "amqp://h/%2", "amqp://u:%ff@h", "amqp://h/%00", "amqp://h?x=1", "amqp://[::1", "amqp://[]",
      "amqp://[::1]x",
      "amqp://h st", "amqp://h\r\n", "amqp://::1",
    ])
  func refused(_ text: String) {
    #expect(throws: BrokerURIError.self) { try BrokerURI(parsing: text) }
  }

  @Test("The password is in no description")
  func hidden() throws {
    let uri = try BrokerURI(parsing: "amqp://me:s3cret@[::1]/v")
    for text in ["\(uri)", String(reflecting: uri), "\(Optional(uri) as Any)"] { #expect(!text.contains("s3cret"), "\(text)") }
    #expect("\(uri)" == "amqp://me@[::1]:5672/v")
  }
}
