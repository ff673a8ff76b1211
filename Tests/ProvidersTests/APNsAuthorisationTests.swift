import HTTP2
import PushCore
import Reactor
import Testing
import Wire

@testable import Providers

@Suite("An APNs pool's authorisation")
struct APNsAuthorisationTests {
  static let expired = ScriptedProvider.Answer.status(403, #"{"reason":"ExpiredProviderToken"}"#)

  @Test("one token serves half an hour's pushes, on one connection, and then the next")
  func renewal() throws {
    let bench = try APNsBench()
    for minute in 0..<30 {
      bench.offer([minute])
      bench.world.advance(by: 60)
    }
    #expect(bench.tokensSeen.count == 1)
    for minute in 30..<60 {
      bench.offer([minute])
      bench.world.advance(by: 60)
    }
    #expect(bench.delivered == 60)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.connections.count == 1)
  }

  @Test("a thousand in flight when the token expires: one new token, a new connection, each push again exactly once")
  func expiredStorm() throws {
    let bench = try APNsBench()
    bench.provider.streamLimit = 2000
    bench.warmUp()
    bench.world.advance(by: 1800)
    let first = bench.provider.requests[0].authorization
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<1000)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    #expect(held.count == 1000)
    bench.provider.answer = { $0.authorization == first ? Self.expired : .status(200) }
    for request in held { bench.provider.give(Self.expired, to: request) }
    bench.world.settle()
    #expect(bench.delivered == 1001)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.connections.count == 2)
    #expect(bench.provider.requests.count == 1 + 1000 + 1000)
    #expect(Set(bench.provider.delivered).count == 1001)
  }

  @Test("what has expired while it waited to be sent again behind a silent provider isn't sent")
  func expiredInThePool() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.world.advance(by: 1800)
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<5)
    bench.world.settle()
    for request in bench.provider.requests.dropFirst() { bench.provider.give(Self.expired, to: request) }
    bench.world.settle()
    func sent() -> Int { bench.provider.requests.count { !$0.isCanary } }
    let before = sent()
    bench.expired = Set(0..<5)
    bench.world.advance(by: 120)
    #expect(sent() == before && bench.answers.count == 1, "\(bench.unknown)")
    #expect(bench.notSent.count + bench.unknown.count == 5)
    #expect(bench.notSent.count >= 3 && bench.notSent.allSatisfy { $0.why == .unwanted }, "\(bench.notSent)")
  }

  @Test("a token expired at its first use is replaced once, and when that helps nothing the credential stops")
  func expiredForEver() throws {
    let bench = try APNsBench()
    bench.provider.answer = { _ in Self.expired }
    bench.offer(0..<5)
    bench.world.advance(by: 30)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.isStopped)
    #expect(bench.answers.count == 1 && bench.notSent.allSatisfy { $0.why == .unauthorised })
    bench.world.advance(by: 600)
    #expect(bench.answers.count == 1)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.provider.requests.count < 20)
  }

  @Test(
    "TooManyProviderTokenUpdates: the token stays, nothing is minted for twenty minutes, one push a minute asks, no other is spent"
  )
  func tooManyUpdates() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.warmUp()
    bench.world.advance(by: 15 * 60)
    bench.provider.answer = { _ in .status(429, #"{"reason":"TooManyProviderTokenUpdates"}"#) }
    bench.offer(0..<300)
    bench.world.advance(by: 10 * 60)
    #expect(bench.answers.count == 1 && bench.notSent.allSatisfy { $0.why == .unauthorised })
    #expect(bench.provider.requests.count < 1 + 300 + 15)
    #expect(bench.pool.state == .paused(reason: "TooManyProviderTokenUpdates"))
    #expect(bench.tokensSeen.count == 1)
    #expect(bench.events.count { if case .alarm = $0 { true } else { false } } <= 3)
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 70)
    #expect(bench.delivered == 301)
    #expect(bench.tokensSeen.count == 1)
    bench.world.advance(by: 20 * 60)
    bench.offer([900])
    bench.world.settle()
    #expect(bench.delivered == 302 && bench.tokensSeen.count == 2)
  }

  /// A token's pushes wait here for their answers, but for those of the one that is tried.
  private func atTheHalfHour(_ refusal: ScriptedProvider.Answer) throws -> (bench: APNsBench, old: String) {
    let bench = try APNsBench()
    bench.warmUp()
    let old = bench.provider.requests[0].authorization
    bench.world.advance(by: 1800)
    bench.provider.answer = { $0.authorization == old ? .status(200) : refusal }
    bench.offer(0..<100)
    bench.world.settle()
    return (bench, old)
  }

  @Test("at the half hour one push tries the next token; until it is answered the others go with the one before")
  func oneTries() throws {
    let (bench, old) = try atTheHalfHour(.stall)
    #expect(bench.delivered == 100)
    let tries = bench.provider.requests.filter { $0.authorization != old }
    #expect(tries.count == 1)
    bench.provider.give(.status(200), to: tries[0])
    bench.provider.answer = { _ in .status(200) }
    bench.world.settle()
    bench.offer(100..<200)
    bench.world.settle()
    #expect(bench.delivered == 201 && bench.tokensSeen.count == 2)
    #expect(bench.provider.requests.suffix(100).allSatisfy { $0.authorization == tries[0].authorization })
  }

  @Test(
    "a next token that is refused costs no push: its one goes with the one before, as the others do",
    arguments: [(429, "TooManyProviderTokenUpdates"), (403, "InvalidProviderToken"), (403, "ExpiredProviderToken")])
  func nextRefused(status: Int, reason: String) throws {
    let (bench, old) = try atTheHalfHour(.status(status, #"{"reason":"\#(reason)"}"#))
    #expect(bench.delivered == 101 && bench.notSent.isEmpty && !bench.isStopped)
    #expect(bench.provider.requests.count { $0.authorization != old } == 1)
    bench.world.advance(by: 4 * 60)
    bench.offer(100..<200)
    bench.world.settle()
    #expect(bench.delivered == 201 && bench.provider.requests.count { $0.authorization != old } == 1)
  }

  @Test("a push that tries a token and is neither taken nor refused leaves it to another")
  func unanswered() throws {
    let (bench, old) = try atTheHalfHour(.status(503))
    bench.provider.answer = { _ in .status(200) }
    bench.offer(100..<110)
    bench.world.settle()
    #expect(bench.delivered == 110 && bench.answers.count == 111)
    bench.offer([110])
    bench.world.settle()
    #expect(bench.provider.requests.last?.authorization != old)
  }

  @Test("a pool whose token is too old waits for the push that tries the next")
  func tooOld() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.world.advance(by: 3600)
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<100)
    bench.world.settle()
    #expect(bench.provider.requests.count == 2)
    bench.provider.answer = { _ in .status(200) }
    bench.provider.give(.status(200), to: bench.provider.requests[1])
    bench.world.settle()
    #expect(bench.delivered == 101 && bench.tokensSeen.count == 2)
  }

  @Test("a push that tries a token and whose stream the provider refuses tries it again")
  func triesAgain() throws {
    let bench = try APNsBench()
    var refusals = 1
    bench.provider.answer = { _ in
      refusals -= 1
      return refusals >= 0 ? .refuse : .status(200)
    }
    bench.offer(0..<10)
    bench.world.settle()
    #expect(bench.delivered == 10)
  }

  @Test("a refused credential stops, asks once a minute at the cost of no push, and goes on when it is accepted")
  func stopped() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.world.advance(by: 600)
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(0..<100)
    bench.world.settle()
    #expect(bench.account.state == .stopped(reason: "InvalidProviderToken"))
    #expect(bench.answers.isEmpty && bench.notSent.map(\.why) == [.unauthorised])
    #expect(bench.account.refusalCode == .invalidAPNsCredential)
    #expect(
      bench.events.contains(
        .credentialStopped(
          reason: "InvalidProviderToken", topic: nil,
          credential: "APNs key ABC123DEFG of team DEF123GHIJ")))
    bench.world.advance(by: 305)
    #expect((5...6).contains(bench.provider.requests.count))
    #expect(bench.tokensSeen.count == 1)
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 61)
    #expect(bench.delivered == 100)
    #expect(bench.pool.state == .open)
    #expect(bench.events.contains(.credentialAccepted))
    #expect(bench.events.count { if case .credentialStopped = $0 { true } else { false } } == 1)
  }

  @Test("of a thousand in flight when the credential is refused none is spent, and those that were taken don't start it again")
  func stoppedUnderLoad() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.warmUp()
    bench.provider.streamLimit = 1000
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<100)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    #expect(held.count == 100)
    for (index, request) in held.enumerated() {
      bench.provider.give(
        index % 2 == 0 ? .status(403, #"{"reason":"InvalidProviderToken"}"#) : .status(200), to: request)
    }
    bench.provider.answer = { _ in .status(200) }
    bench.world.settle()
    #expect(bench.isStopped && bench.delivered == 51 && bench.waiting.count == 50)
    bench.world.advance(by: 61)
    #expect(bench.delivered == 101 && bench.answers.count == 101)
    #expect(bench.events.count { if case .credentialStopped = $0 { true } else { false } } == 1)
  }

  @Test("a topic that the credential may not send to stops it at the cost of no push; one that a request chose stops nothing")
  func topic() throws {
    for reason in ["TopicDisallowed", "BadTopic", "MissingTopic"] {
      let bench = try APNsBench()
      bench.sendsAgain = true
      bench.provider.answer = { _ in .status(400, #"{"reason":"\#(reason)"}"#) }
      bench.offer(0..<100)
      bench.world.advance(by: 200)
      #expect(bench.account.state == .stopped(reason: reason))
      #expect(bench.answers.isEmpty && bench.provider.requests.count <= 5 && bench.account.refusalCode == .invalidPackageName)
      let stops = bench.events.compactMap { if case .credentialStopped(_, let topic, _) = $0 { topic } else { nil } }
      #expect(stops == ["com.example.app"])
      bench.provider.answer = { _ in .status(200) }
      bench.world.advance(by: 61)
      #expect(bench.delivered == 100)

      let chosen = try APNsBench()
      chosen.headers = #","apns-topic":"com.other""#
      chosen.provider.answer = { _ in .status(400, #"{"reason":"\#(reason)"}"#) }
      chosen.offer(0..<100)
      chosen.world.settle()
      #expect(chosen.answers.count == 100 && !chosen.isStopped)
      #expect(chosen.answers.values.allSatisfy { $0.reaction == .credential(.invalidPackageName) })
      #expect(chosen.events.count { if case .alarm(reason, _, 1) = $0 { true } else { false } } == 1)
    }
  }

  @Test(
    "a pool's first push, to a push type's topic that the credential lacks, has the app's own topic asked for, and stops nothing",
    arguments: [false, true], ["TopicDisallowed", "BadTopic"])
  func topicOfPushType(certificate: Bool, reason: String) throws {
    let bench = try APNsBench(certificate: certificate)
    bench.sendsAgain = true
    bench.provider.answer = {
      $0.header("apns-topic") == "com.example.app.voip" ? .status(400, #"{"reason":"\#(reason)"}"#) : .status(200)
    }
    bench.headers = #","apns-push-type":"voip""#
    bench.offer(0..<100)
    bench.world.settle()
    bench.headers = ""
    bench.offer(100..<200)
    bench.world.settle()
    let asked = bench.provider.requests.filter(\.asksForCredential)
    #expect(asked.map { $0.header("apns-topic") } == ["com.example.app"] && bench.delivered == 100 && !bench.isStopped)
    #expect((0..<100).allSatisfy { bench.answers[$0]?.reaction == .credential(.invalidPackageName) })
    #expect(!bench.events.contains { if case .credentialStopped = $0 { true } else { false } })
    #expect(bench.events.contains { if case .alarm(reason, _, _) = $0 { true } else { false } })
  }

  @Test("where the app's own topic is refused as well, a first push of another type stops nothing, and an alert all")
  func allTopics() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.provider.answer = { _ in .status(400, #"{"reason":"TopicDisallowed"}"#) }
    bench.headers = #","apns-push-type":"voip""#
    bench.offer([0])
    bench.world.settle()
    #expect(!bench.isStopped && bench.answers[0]?.reaction == .credential(.invalidPackageName))
    #expect(bench.provider.requests.map(\.asksForCredential) == [false, true, false])
    bench.headers = ""
    bench.offer([1])
    bench.world.settle()
    bench.headers = #","apns-push-type":"voip""#
    bench.offer([2])
    bench.world.advance(by: 600)
    #expect(bench.account.state == .stopped(reason: "TopicDisallowed") && bench.answers.count == 1)
    #expect((10...11).contains(bench.provider.requests.count - 4))
    let stops = bench.events.compactMap { if case .credentialStopped(_, let topic, _) = $0 { topic } else { nil } }
    #expect(stops == ["com.example.app"])
    bench.provider.answer = { _ in .status(200) }
    bench.world.advance(by: 61)
    #expect(bench.delivered == 2 && bench.events.contains(.credentialAccepted))
  }

  @Test(
    "a credential for one push type's topic alone sends pushes of that type, whatever other type's came first",
    arguments: [nil, [], ["com.example.app.voip"]] as [[String]?])
  func oneTypeAlone(certificate: [String]?) throws {
    let bench = try APNsBench(certificate: certificate != nil, topics: certificate ?? [])
    bench.sendsAgain = true
    bench.provider.answer = {
      $0.header("apns-topic") == "com.example.app.voip" ? .status(200) : .status(400, #"{"reason":"TopicDisallowed"}"#)
    }
    bench.headers = #","apns-push-type":"complication""#
    bench.offer([0])
    bench.world.settle()
    bench.headers = #","apns-push-type":"voip""#
    bench.offer([1, 2])
    bench.world.settle()
    #expect(!bench.isStopped && bench.delivered == 2)
    #expect(bench.answers[0]?.reaction == .credential(.invalidPackageName))
    // A certificate that lists its topics is asked for none.
    #expect(bench.provider.requests.count(where: \.asksForCredential) == (certificate?.isEmpty == false ? 0 : 1))
    #expect(!bench.events.contains { if case .credentialStopped = $0 { true } else { false } })
  }

  @Test("a push that is refused whenever it comes delays others by a minute at most each time")
  func poison() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.provider.answer = {
      $0.device == APNsBench.device(0) ? .status(403, #"{"reason":"InvalidProviderToken"}"#) : .status(200)
    }
    bench.offer([0, 1, 2, 3])
    bench.world.settle()
    #expect(bench.isStopped && bench.delivered == 0)
    bench.world.advance(by: 61)
    #expect(bench.delivered == 3)
  }

  @Test("a certificate for another push type alone refuses alerts one by one, and goes on with what it is for")
  func certificateForOtherType() throws {
    let bench = try APNsBench(certificate: true, topics: ["com.example.app.voip"])
    bench.provider.answer = {
      $0.header("apns-topic") == "com.example.app.voip" ? .status(200) : .status(400, #"{"reason":"TopicDisallowed"}"#)
    }
    bench.offer(0..<10)
    bench.world.settle()
    bench.headers = #","apns-push-type":"voip""#
    bench.offer(10..<20)
    bench.world.settle()
    #expect(bench.delivered == 10 && bench.answers.count == 20 && !bench.isStopped)
  }

  @Test("any number of pushes in a row whose push type's topic the credential lacks stop nothing where alerts have been taken")
  func manyTopicsOfPushTypes() throws {
    for reason in ["TopicDisallowed", "BadTopic", "MissingTopic"] {
      let bench = try APNsBench()
      bench.provider.answer = {
        $0.header("apns-topic") == "com.example.app.voip" ? .status(400, #"{"reason":"\#(reason)"}"#) : .status(200)
      }
      bench.warmUp()
      bench.headers = #","apns-push-type":"voip""#
      bench.offer(0..<100)
      bench.world.settle()
      #expect(!bench.isStopped && bench.notSent.isEmpty)
      #expect((0..<100).allSatisfy { bench.answers[$0]?.reaction == .credential(.invalidPackageName) })
      bench.headers = ""
      bench.offer(100..<200)
      bench.world.settle()
      #expect(bench.delivered == 101)
    }
  }

  @Test("an alarm is given once in five minutes for each reason, and says how many there were")
  func alarms() throws {
    let bench = try APNsBench()
    bench.provider.answer = {
      $0.device.hasSuffix("7") ? .status(403, #"{"reason":"Forbidden"}"#) : .status(200)
    }
    for round in 0..<60 {
      bench.offer(round * 100..<round * 100 + 100)
      bench.world.advance(by: 10)
    }
    let alarms = bench.events.compactMap { event -> Int? in
      if case .alarm("Forbidden", "the action is not allowed", let count) = event { count } else { nil }
    }
    #expect(alarms == [1, 300] && bench.answers.count == 6000)
  }

  @Test("a refused certificate stops the credential with the provider's reason")
  func badCertificate() throws {
    let bench = try APNsBench(certificate: true)
    bench.provider.answer = { _ in .status(403, #"{"reason":"BadCertificateEnvironment"}"#) }
    bench.offer([1])
    bench.world.settle()
    #expect(bench.account.state == .stopped(reason: "BadCertificateEnvironment"))
  }

  @Test("the provider's date tells an operator that the clock is wrong")
  func clockOff() throws {
    let bench = try APNsBench()
    // 1,800,000,000 s is 2027-01-15 08:00:00 UTC.
    bench.provider.answer = { _ in
      .status(403, #"{"reason":"InvalidProviderToken"}"#, [("date", "Fri, 15 Jan 2027 10:00:00 GMT")])
    }
    bench.offer([1])
    bench.world.settle()
    #expect(bench.events.contains(.clockOff(seconds: 7200)))
  }

  @Test("a token made under a wrong clock is made anew once the clock is right, before its twenty minutes are over")
  func misdated() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.world.setClock(forwardBy: -6_600_000)
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(0..<10)
    bench.world.advance(by: 90)
    #expect(bench.isStopped && bench.tokensSeen.count == 1)
    let wrong = bench.provider.requests[0].authorization
    bench.provider.answer = {
      $0.authorization == wrong ? .status(403, #"{"reason":"InvalidProviderToken"}"#) : .status(200)
    }
    bench.world.setClock(forwardBy: 6_600_000)
    bench.world.advance(by: 60)
    #expect(bench.delivered == 10 && bench.tokensSeen.count == 2)
    #expect(bench.pool.state == .open)
  }

  @Test("a token refused under a right clock is not made anew")
  func refusedUnderARightClock() throws {
    let bench = try APNsBench()
    bench.sendsAgain = true
    bench.world.advance(by: 600)
    bench.provider.answer = { _ in .status(403, #"{"reason":"InvalidProviderToken"}"#) }
    bench.offer(0..<10)
    bench.world.advance(by: 900)
    #expect(bench.tokensSeen.count == 1)
  }

  @Test("single pushes whose token is called expired wait alone: the token that others go with is replaced once")
  func expiredForSome() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { $0.device.hasSuffix("99") ? Self.expired : .status(200) }
    for round in 0..<30 {
      bench.offer(round * 100..<round * 100 + 100)
      bench.world.advance(by: 1)
    }
    #expect(bench.answers.count == 3001 && bench.delivered == 2971)
    #expect(bench.tokensSeen.count == 2 && bench.world.connections.count == 2)
  }

  @Test("new credentials take over under load without a failed push")
  func replacement() throws {
    let bench = try APNsBench()
    bench.warmUp()
    bench.provider.answer = { _ in .stall }
    bench.offer(0..<20)
    bench.world.settle()
    let held = bench.provider.requests.dropFirst()
    bench.apns.replaceCredentials(
      APNsCredentials(
        authentication: .token(try TestKeys.tokenCredential(TestKeys.otherP256)),
        target: DialTarget(Endpoint(host: "apns.test", port: 443), tls: nil)))
    bench.provider.answer = { _ in .status(200) }
    bench.offer(20..<40)
    bench.world.settle()
    for (index, request) in held.enumerated() {
      bench.provider.give(index < 10 ? .status(200) : .status(403, #"{"reason":"InvalidProviderToken"}"#), to: request)
    }
    bench.world.settle()
    #expect(bench.delivered == 41)
    #expect(!bench.isStopped)
    #expect(bench.tokensSeen.count == 2)
    #expect(bench.world.openConnections.count == 1)
  }

  @Test("two pools that know nothing of each other have the same token of a key")
  func shared() throws {
    let one = try APNsBench()
    let other = try APNsBench()
    one.warmUp()
    other.warmUp()
    #expect(one.tokensSeen == other.tokensSeen)
  }
}
