import Foundation
import TestSupport
import Testing

@Suite("Independent clients and servers", .blocking)
struct ForeignClientTests {
  @Test("amqp-publish reaches Python's HTTP/2 server, through the exchange and through the default exchange")
  func amqpPublish() throws {
    let site = try Site()
    let server = try site.startForeignProvider()
    try site.declareTopology()
    let body = #"{ "to": "\#(token(1))", "priority":"high", "notification": {"title": "Grüße", "body": "„Tschüß“ 🎉"} }"#
    let common = ["/usr/bin/amqp-publish", "-u", site.broker.uri, "-p"]
    try site.foreign(common + ["-e", "\(site.prefix).send", "-r", "high", "-C", "application/json", "-b", body])
    try site.foreign(common + ["-r", "\(site.prefix).send.normal", "-b", body.replacing(token(1), with: token(2))])
    try site.drain()

    let requests = Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
    #expect(requests.count == 2)
    #expect(Set(requests.compactMap { $0["connection"] as? Int }) == [1])
    for (index, request) in requests.sorted(by: { path($0) < path($1) }).enumerated() {
      #expect(request["protocol"] as? String == "h2")
      #expect(request["body"] as? String == #"{"aps":{"alert":{"title":"Grüße","body":"„Tschüß“ 🎉"}}}"#)
      #expect(header(request, ":method") == "POST" && header(request, ":scheme") == "https")
      #expect(path(request) == "/3/device/\(token(index + 1))")
      #expect(header(request, "apns-topic") == Site.app)
      #expect(header(request, "apns-push-type") == "alert")
      #expect(header(request, "apns-priority") == "10")
      #expect(
        header(request, "apns-id")?.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil
      )
      #expect(header(request, "authorization")?.hasPrefix("bearer ") == true)
      let names = (request["headers"] as? [[String]] ?? []).map { $0[0] }
      #expect(Set(names).count == names.count && names.allSatisfy { $0 == $0.lowercased() })
    }
  }

  static let fixtures: [(name: String, payload: String)] = [
    (
      "seed000-data.json",
      #"{"aps":{"content-available":1},"Nick":"Mario","body":"great match!","Room":"PortugalVSDenmark"}"#
    ),
    (
      "seed000-hybrid.json",
      #"{"aps":{"alert":{"title":"Portugal vs. Denmark","body":"great match!"}},"Nick":"Mario","Room":"PortugalVSDenmark"}"#
    ),
    ("seed000-notification.json", #"{"aps":{"alert":{"title":"Portugal vs. Denmark","body":"great match!"}}}"#),
    (
      "seed000-priority.json",
      #"{"aps":{"alert":{"title":"NewsMagazine.com","body":"This week’s edition is now available."}},"volume":"3.21.15","contents":"http://www.news-magazine.com/world-week/21659772"}"#
    ),
    ("seed000-ttl.json", #"{"aps":{"content-available":1},"key1":"value1","key2":"value2"}"#),
    (
      "seed004-both-systems.json",
      #"{"aps":{"alert":{"title-loc-key":"title","loc-key":"r_rcv","loc-args":["雑談部屋","2"]},"badge":2,"sound":"default","category":"N"},"type":"r","rid":"300"}"#
    ),
  ]

  @Test("pika's fixtures arrive byte for byte, all on one connection, and each keeps its id")
  func pika() throws {
    let site = try Site()
    let server = try site.startForeignProvider(settings: #"results: "all","#)
    try site.declareTopology()
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../Fixtures/requests")
    try site.publish(
      try Self.fixtures.enumerated().map { index, fixture in
        let text = try String(contentsOf: folder.appendingPathComponent(fixture.name), encoding: .utf8)
        let request = text.replacing(/"to": "[^"]*"/, with: #""to": "\#(token(index))""#)
        return (request, ["message_id": fixture.name, "app_id": Site.app, "content_type": "application/json"])
      })
    try site.drain()
    let requests = Site.objects(server.outputSoFar).filter { $0["event"] as? String == "request" }
    #expect(requests.count == Self.fixtures.count)
    #expect(Set(requests.compactMap { $0["connection"] as? Int }) == [1])
    let results = try site.take("results")
    for (index, fixture) in Self.fixtures.enumerated() {
      let request = try #require(requests.first { path($0) == "/3/device/\(token(index))" })
      #expect(request["body"] as? String == fixture.payload)
      let result = try #require(results.first { $0.id == fixture.name })
      let id = (result.json["results"] as? [[String: String]])?.first?["message_id"]
      #expect(id != nil && id == header(request, "apns-id"))
    }
    let collapsing = try #require(requests.first { header($0, "apns-collapse-id") == "demo" })
    #expect(header(collapsing, "apns-push-type") == "background" && header(collapsing, "apns-priority") == "5")
  }

  @Test("nghttpd can answer the requests")
  func nghttpd() throws {
    let site = try Site()
    let port = Int(try FreePorts.take(1)[0])
    let server = try ChildProcess(
      [
        "/usr/sbin/nghttpd", "-v", "--echo-upload", "-a", "127.0.0.1", "\(port)", site.certificates.serverKey,
        site.certificates.server,
      ], environment: ["PATH": "/usr/bin:/bin"], output: nil)
    defer { server.end() }
    try site.configure(port: port, settings: #"results: "all","#)
    try site.declareTopology()
    try site.send(tokens: [token(7)])
    try site.drain()
    let log = server.outputSoFar
    #expect(log.contains(":path: /3/device/\(token(7))"))
    #expect(log.contains("apns-topic: \(Site.app)"))
    #expect(try site.take("results").first?.json["success"] as? Int == 1)
  }

  private func header(_ request: [String: Any], _ name: String) -> String? {
    (request["headers"] as? [[String]])?.first { $0[0] == name }?[1]
  }

  private func path(_ request: [String: Any]) -> String { header(request, ":path") ?? "" }
}
