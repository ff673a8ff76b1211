import PushCore
import Testing

@Suite struct RequestFixtureTests {
  @Test("each of the six requests of the source documents is accepted")
  func fixturesParse() throws {
    let fixtures = try requestFixtures()
    #expect(fixtures.count == 6)
    for (name, body) in fixtures {
      let request = try SendRequest.parse(body).get()
      guard case .one(.fcm) = request.targets else {
        Issue.record("\(name): \(request.targets)")
        continue
      }
    }
  }

  @Test("the request for both systems keeps its arguments byte-exact and its badge as a number")
  func bothSystems() throws {
    let body = try #require(try requestFixtures().first { $0.name == "seed004-both-systems.json" }).body
    let request = try SendRequest.parse(body).get()
    #expect(request.priority == .normal)
    #expect(request.count(.badge) == 2)
    #expect(request.notification[.titleLocArgs] == nil)
    var arguments: [UInt8] = []
    #expect(request.appendArguments(.bodyLocArgs, to: &arguments))
    #expect(String(decoding: arguments, as: UTF8.self) == #"["雑談部屋","2"]"#)
    let color = try #require(request.notification[.color])
    #expect(request.document.text(color) == "#fb9200")
    #expect(request.data.map { request.document.text($0.name) } == ["type", "rid"])
  }

  @Test("a lifetime of three seconds with delay_while_idle and a collapse key is read (GS-067)")
  func ttl() throws {
    let body = try #require(try requestFixtures().first { $0.name == "seed000-ttl.json" }).body
    let request = try SendRequest.parse(body).get()
    #expect(request.timeToLive == 3)
    #expect(request.delayWhileIdle)
    #expect(request.collapseKey.map { String(decoding: $0, as: UTF8.self) } == "demo")
    #expect(!request.hasNotification)
  }
}
