import HTTP2
import PushCore
import Testing
import Wire

@testable import Providers

@Suite("An FCM pool")
struct FCMPoolTests {
  @Test("fetches an access token, connects and delivers; answers give the message's name")
  func delivers() throws {
    let bench = try FCMBench()
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 10)
    #expect(bench.tokensGiven == 1)
    let request = try #require(bench.provider.requests.first)
    #expect(request.path == "/v1/projects/example-project/messages:send")
    #expect(request.authorization == "Bearer token-1")
    #expect(request.header("content-type") == "application/json")
    #expect(bench.names[3] == Array("projects/example-project/messages/3".utf8))
    bench.wantsNames = false
    bench.offer(1_000..<1_001)
    bench.world.settle()
    #expect(bench.answers[1_000]?.reaction == .delivered && bench.names[1_000] == nil)
    let form = try #require(bench.oauth.requests.first)
    #expect(form.path == "/token")
    #expect(form.header("content-type") == "application/x-www-form-urlencoded")
    #expect(form.header("content-length") == "\(form.body.count)")
  }

  @Test("opens another connection when all streams are busy, up to its limit, and closes the surplus when idle")
  func connections() throws {
    var settings = PoolSettings.fcm
    settings.connections = 4
    let bench = try FCMBench(settings: settings)
    bench.provider.streamLimit = 100
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<1000)
    bench.world.settle()
    #expect(bench.provider.requests.count == 400)
    #expect(bench.provider.violations.isEmpty)
    let held = bench.provider.requests
    bench.provider.answer = { FCMBench.success($0) }
    for request in held { bench.provider.give(FCMBench.success(request), to: request) }
    bench.world.settle()
    #expect(bench.delivered == 1000)
    bench.world.advance(by: 300)
    #expect(bench.world.openConnections.filter { $0.target.endpoint.host == "fcm.test" }.count == 1)
  }

  @Test("renews the token five minutes early, once, without stopping for it")
  func renewsEarly() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.world.advance(by: 3290)
    #expect(bench.tokensGiven == 1)
    bench.oauth.answer = { _ in .stall }
    bench.world.advance(by: 10)
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 11)
    #expect(bench.provider.requests.last?.authorization == "Bearer token-1")
    bench.oauth.answer = { [unowned bench] _ in bench.token() }
    bench.oauth.give(bench.token(), to: bench.oauth.requests[1])
    bench.world.settle()
    bench.offer([20])
    bench.world.settle()
    #expect(bench.provider.requests.last?.authorization == "Bearer token-2")
    #expect(bench.oauth.requests.count == 2)
  }

  @Test("a token endpoint that is down: the old token is used to its end, then pushes wait, and come when it is back")
  func endpointDown() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.oauth.answer = { _ in .status(503, "<html>busy</html>") }
    bench.world.advance(by: 3500)
    bench.offer([1])
    bench.world.settle()
    #expect(bench.delivered == 2)
    bench.world.advance(by: 100)
    bench.offer(2..<12)
    bench.world.advance(by: 600)
    #expect(bench.delivered == 2)
    #expect(bench.oauth.requests.count < 40)
    #expect(bench.waiting.count == 10)
    if case .backingOff(let reason) = bench.pool.state {
      #expect(reason.contains("HTTP 503"))
    } else {
      Issue.record("state is \(bench.pool.state)")
    }
    bench.oauth.answer = { [unowned bench] _ in bench.token() }
    bench.world.advance(by: 61)
    #expect(bench.delivered == 12)
  }

  @Test("a token endpoint that refuses the account says so, and is asked with growing pauses")
  func invalidGrant() throws {
    let bench = try FCMBench()
    bench.oauth.answer = { _ in .status(400, #"{"error":"invalid_grant","error_description":"x"}"#) }
    bench.offer([1])
    bench.world.advance(by: 600)
    #expect((10...25).contains(bench.oauth.requests.count))
    #expect(bench.provider.requests.isEmpty)
    #expect(
      bench.events.contains(
        .tokenRefused(reason: "invalid_grant", credential: "the service account of project example-project")))
  }

  @Test(
    "a token endpoint that never answers is tried beside that every two seconds, and pushes go within two of its first answer")
  func slowEndpoint() throws {
    let bench = try FCMBench()
    bench.oauth.answer = { _ in .stall }
    bench.offer([1])
    bench.world.advance(by: 20)
    #expect((8...12).contains(bench.oauth.requests.count))
    #expect(bench.world.openConnections.count { $0.target.endpoint.host == "oauth.test" } <= 2)
    bench.oauth.answer = { [unowned bench] _ in bench.token() }
    bench.world.advance(by: 2.1)
    #expect(bench.delivered == 1)
  }

  @Test("a token of a short life is renewed at half of it")
  func shortLife() throws {
    let bench = try FCMBench()
    bench.lifetime = 60
    for step in 0..<20 {
      bench.offer([step])
      bench.world.advance(by: 10)
    }
    #expect(bench.delivered == 20)
    #expect((6...8).contains(bench.tokensGiven))
  }

  @Test("UNAUTHENTICATED fetches one new token for all in flight and sends each again once")
  func unauthenticated() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = {
      $0.authorization == "Bearer token-1" ? FCMBench.error(401, "UNAUTHENTICATED") : FCMBench.success($0)
    }
    bench.offer(0..<50)
    bench.world.settle()
    #expect(bench.delivered == 51)
    #expect(bench.tokensGiven == 2)
    #expect(bench.provider.requests.count == 1 + 50 + 50)
  }

  @Test("UNAUTHENTICATED with a new token too stops the credential")
  func unauthenticatedForEver() throws {
    let bench = try FCMBench()
    bench.provider.answer = { _ in FCMBench.error(401, "UNAUTHENTICATED") }
    bench.offer(0..<50)
    bench.world.advance(by: 30)
    #expect(bench.isStopped)
    #expect(bench.tokensGiven <= 3)
    #expect(bench.answers.count + bench.notSent.count == 50)
    bench.provider.answer = { FCMBench.success($0) }
    bench.offer([100])
    bench.world.advance(by: 29)
    #expect(bench.delivered == 0)
    bench.world.advance(by: 5)
    #expect(bench.delivered == 1)
    #expect(bench.pool.state == .open)
  }

  @Test("401 to one push in a hundred: a token a minute, no other connection, few words; those pushes wait alone")
  func unauthenticatedForSome() throws {
    let bench = try FCMBench()
    bench.provider.answer = { [unowned bench] in
      bench.provider.requests.count % 100 == 0 ? FCMBench.error(401, "UNAUTHENTICATED") : FCMBench.success($0)
    }
    for step in 0..<250 {
      bench.offer(step * 50..<step * 50 + 50)
      bench.world.advance(by: 0.1)
    }
    #expect(bench.answers.count == 12_500 && bench.notSent.isEmpty && bench.delivered > 12_300)
    #expect(
      bench.answers.values.allSatisfy { $0.reaction == .delivered || $0.reaction == .retry(.refreshedToken, .unavailable) })
    #expect(bench.tokensGiven == 2 && !bench.isStopped)
    #expect(bench.world.connections.count <= 4)
    #expect(bench.events.count < 10)
  }

  @Test(
    "401 to one push in a hundred and a token endpoint that is down or silent: the others go on with the token that is taken from them",
    arguments: [true, false])
  func unauthenticatedForSomeWithoutEndpoint(isDown: Bool) throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.oauth.answer = { _ in isDown ? .status(503, "<html>busy</html>") : .stall }
    bench.provider.answer = { [unowned bench] in
      bench.provider.requests.count % 100 == 0 ? FCMBench.error(401, "UNAUTHENTICATED") : FCMBench.success($0)
    }
    for step in 0..<250 {
      bench.offer(step * 50..<step * 50 + 50)
      bench.world.advance(by: 0.1)
      #expect(bench.waiting.isEmpty)
    }
    bench.world.advance(by: 20)
    #expect(bench.answers.count == 12_501 && bench.notSent.isEmpty && bench.delivered > 12_300)
    #expect(bench.tokensGiven == 1 && bench.oauth.requests.count <= 2 && !bench.isStopped)
  }

  @Test("a token that nobody is taken with any more, and no other to be had: pushes wait, hardly any is spent")
  func revokedWithoutEndpoint() throws {
    let bench = try FCMBench()
    bench.sendsAgain = true
    bench.warmUp()
    bench.oauth.answer = { _ in .status(503, "<html>busy</html>") }
    bench.provider.answer = {
      $0.authorization == "Bearer token-1" ? FCMBench.error(401, "UNAUTHENTICATED") : FCMBench.success($0)
    }
    bench.offer(0..<1_000)
    bench.world.advance(by: 30)
    #expect(bench.delivered == 1 && bench.answers.count <= 21 && bench.provider.requests.count < 300)
    bench.oauth.answer = { [unowned bench] _ in bench.token() }
    bench.world.advance(by: 120)
    #expect(bench.answers.count == 1_001 && bench.delivered >= 980)
  }

  @Test("a project that doesn't exist stops the pool at the cost of no push")
  func noSuchProject() throws {
    let bench = try FCMBench()
    bench.sendsAgain = true
    bench.provider.answer = { _ in FCMBench.error(404, "NOT_FOUND") }
    bench.offer(0..<300)
    bench.world.advance(by: 200)
    #expect(bench.pool.state == .stopped(reason: "NOT_FOUND") && bench.answers.isEmpty)
    #expect(
      bench.events.count {
        if case .credentialStopped("NOT_FOUND", nil, let credential) = $0 {
          credential.hasSuffix("example-project")
        } else {
          false
        }
      } == 1)
    bench.provider.answer = { FCMBench.success($0) }
    bench.world.advance(by: 70)
    #expect(bench.delivered == 300)
  }

  @Test("a project that is there for others is not missed for one push; twenty in a row are believed")
  func projectForOthers() throws {
    let bench = try FCMBench()
    bench.sendsAgain = true
    bench.provider.answer = { $0.body == Array("0".utf8) ? FCMBench.error(404, "NOT_FOUND") : FCMBench.success($0) }
    bench.offer(0..<100)
    bench.world.advance(by: 5)
    #expect(bench.delivered == 99 && bench.answers[0]?.reaction == .credential(.internalServerError) && !bench.isStopped)
    bench.provider.answer = { _ in FCMBench.error(404, "NOT_FOUND") }
    bench.offer(100..<200)
    bench.world.advance(by: 5)
    #expect(bench.isStopped && (101...120).contains(bench.answers.count))
  }

  @Test("no more than the quota leaves in a minute")
  func pace() throws {
    var settings = PoolSettings.fcm
    settings.messagesPerMinute = 600
    let bench = try FCMBench(settings: settings)
    bench.offer(0..<5000)
    bench.world.advance(by: 60)
    #expect((500...601).contains(bench.delivered))
    bench.world.advance(by: 60)
    #expect((1050...1201).contains(bench.delivered))
  }

  @Test("after an outage the rate rises over a minute")
  func ramp() throws {
    var settings = PoolSettings.fcm
    settings.messagesPerMinute = 6000
    let bench = try FCMBench(settings: settings)
    bench.warmUp()
    let up = bench.world.answerDial
    bench.world.answerDial = { _ in .fail(.connectFailed("refused")) }
    bench.world.cut(bench.world.connections.last!)
    bench.offer(0..<20_000)
    bench.world.advance(by: 120)
    bench.world.answerDial = up
    while bench.pool.state != .open && bench.pool.state != .probing { bench.world.advance(by: 0.5) }
    let before = bench.delivered
    bench.world.advance(by: 10)
    let early = bench.delivered - before
    #expect((30...160).contains(early))
    bench.world.advance(by: 60)
    let full = bench.delivered
    bench.world.advance(by: 10)
    #expect((900...1100).contains(bench.delivered - full))
  }

  @Test("after a pause that the provider asked for the rate rises over a minute, on the same connection")
  func rampAfterPause() throws {
    var settings = PoolSettings.fcm
    settings.messagesPerMinute = 6000
    let bench = try FCMBench(settings: settings)
    bench.provider.answer = { _ in FCMBench.error(503, "UNAVAILABLE", [("retry-after", "10")]) }
    bench.warmUp()
    bench.provider.answer = { FCMBench.success($0) }
    bench.offer(0..<5000)
    bench.world.advance(by: 21)
    #expect((10...160).contains(bench.delivered))
    #expect(bench.world.connections.filter { $0.target.endpoint.host == "fcm.test" }.count <= 2)
  }

  @Test("Retry-After of ten quota refusals in a row holds the whole pool")
  func quotaRetryAfter() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = { _ in FCMBench.error(429, "RESOURCE_EXHAUSTED", [("retry-after", "30")]) }
    bench.offer(0..<10)
    bench.world.settle()
    bench.provider.answer = { FCMBench.success($0) }
    bench.offer(10..<15)
    bench.world.advance(by: 29)
    #expect(bench.delivered == 1)
    bench.world.advance(by: 10)
    #expect(bench.delivered == 6)
  }

  @Test("a quota refusal that may be one device's holds nobody else, whatever it says of the time")
  func quotaOfOneDevice() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = {
      $0.body.last == UInt8(ascii: "7")
        ? FCMBench.error(429, "RESOURCE_EXHAUSTED", [("retry-after", "600")]) : FCMBench.success($0)
    }
    for step in 0..<30 {
      bench.offer(step * 10..<step * 10 + 10)
      bench.world.advance(by: 1)
    }
    #expect(bench.delivered == 1 + 270 && bench.answers.count == 301)
    #expect(bench.answers[7]?.retryAfter == 600)
  }

  @Test("one quota refusal without a time holds nobody else; many do, for a minute")
  func quotaWithoutTime() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = {
      $0.body == Array("0".utf8) ? FCMBench.error(429, "RESOURCE_EXHAUSTED") : FCMBench.success($0)
    }
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 10)
    bench.provider.answer = { _ in FCMBench.error(429, "RESOURCE_EXHAUSTED") }
    bench.offer(10..<200)
    bench.world.advance(by: 55)
    #expect(bench.provider.requests.count < 11 + 120)
    bench.provider.answer = { FCMBench.success($0) }
    bench.world.advance(by: 60)
    #expect(bench.answers.count == 201)
  }

  @Test("a quota that is used up before its minute is over is believed to be smaller")
  func quotaLearnt() throws {
    var settings = PoolSettings.fcm
    settings.messagesPerMinute = 6000
    let bench = try FCMBench(settings: settings)
    bench.sendsAgain = true
    bench.provider.answer = { _ in FCMBench.error(429, "RESOURCE_EXHAUSTED") }
    bench.offer(0..<20_000)
    bench.world.advance(by: 30)
    bench.provider.answer = { FCMBench.success($0) }
    bench.world.advance(by: 120)
    let before = bench.delivered
    bench.world.advance(by: 10)
    #expect((700...780).contains(bench.delivered - before))
  }

  @Test("a new account takes over under load without a failed push")
  func replacement() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<20)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    bench.fcm.replaceCredentials(try FCMBench.credentials())
    bench.provider.answer = { FCMBench.success($0) }
    bench.offer(20..<40)
    bench.world.settle()
    for request in held { bench.provider.give(FCMBench.error(401, "UNAUTHENTICATED"), to: request) }
    bench.world.settle()
    #expect(bench.delivered == 41)
    #expect(bench.tokensGiven == 2)
  }

  @Test("GOAWAY for too many streams moves to another connection")
  func goAway() throws {
    let bench = try FCMBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<10)
    bench.world.settle()
    bench.provider.answer = { FCMBench.success($0) }
    bench.provider.sessions[0].goAway(
      lastStreamID: 1, code: .protocolError, debugData: Array("exceeded_max_concurrent_streams".utf8))
    bench.world.settle()
    #expect(bench.delivered == 11)
  }

  /// FCM was unreachable once, and turns away the first push when it is back, at which the rate begins anew.
  private func turnedAway(_ answer: ScriptedProvider.Answer) throws -> FCMBench {
    let bench = try FCMBench()
    var dials = 0
    bench.answerDials { [provider = bench.provider] in
      dials += 1
      return dials == 1 ? .fail(.connectFailed("refused")) : .accept(provider.accept())
    }
    bench.provider.answer = { [unowned bench] in bench.provider.requests.count == 1 ? answer : FCMBench.success($0) }
    return bench
  }

  @Test("a push that is turned away when the rate has nothing left goes again by itself, though nobody else waits")
  func turnedAwayAtTheRatesEnd() throws {
    for answer in [ScriptedProvider.Answer.refuse, FCMBench.error(401, "UNAUTHENTICATED")] {
      let bench = try turnedAway(answer)
      bench.offer([0])
      bench.world.advance(by: 10)
      #expect(bench.delivered == 1 && bench.pool.inFlight == 0)
    }
    var settings = PoolSettings.fcm
    settings.messagesPerMinute = 60
    let slow = try FCMBench(settings: settings)
    slow.provider.answer = { [unowned slow] in slow.provider.requests.count == 1 ? .refuse : FCMBench.success($0) }
    slow.offer([0])
    slow.world.advance(by: 10)
    #expect(slow.delivered == 1)
  }

  @Test(
    "a connection whose window is used up is as busy as one whose streams are: another one is made", arguments: [10, 1_000])
  func windowUsedUp(_ size: Int) throws {
    let bench = try FCMBench()
    bench.filler = [UInt8](repeating: 0x78, count: size)
    bench.provider.answer = { _ in .stall }
    bench.answerDials { [provider = bench.provider] in
      var configuration = ServerConfiguration()
      configuration.updatesWindows = false
      return .accept(ServerSession(configuration: configuration, handler: provider))
    }
    bench.offer(0..<2_000)
    bench.world.advance(by: 5)
    #expect(bench.pool.openConnections > 1)
    #expect(bench.pool.inFlight > 300)
  }
}
