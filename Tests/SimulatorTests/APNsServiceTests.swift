import Foundation
import HTTP2
import Reactor
import Simulator
import TLS
import TestSupport
import Testing

@Suite struct APNsServiceTests {
  @Test("A good push is accepted, its id echoed, and journaled without its provider token")
  func accepted() throws {
    let talk = try APNsTalk()
    let id = "123e4567-e89b-12d3-a456-426614174000"
    talk.push(0, ["apns-id": id, "apns-priority": "5", "apns-expiration": "1764000600"])
    let answer = try #require(talk.answers[0])
    #expect(answer.status == 200)
    #expect(answer.body.isEmpty)
    #expect(answer.header(0) == Array(id.utf8))
    #expect(answer.header(1) == nil)
    let entry = try #require(talk.service.journal.entries.first)
    #expect(entry.status == 200)
    #expect(entry.tokenText == String(repeating: "ab", count: 32))
    #expect(entry.header("apns-topic") == "com.example.app")
    #expect(entry.header("authorization") == nil)
    #expect(entry.authorization?.keyID == Array(APNsTalk.keyID.utf8))
    #expect(entry.violations.isEmpty)
  }

  @Test("The sandbox names each push for the delivery log; without an apns-id one is made")
  func sandbox() throws {
    var configuration = APNsConfiguration()
    configuration.isSandbox = true
    let talk = try APNsTalk(configuration)
    talk.push()
    #expect(talk.answers[0]?.header(0)?.count == 36)
    #expect(talk.answers[0]?.header(1)?.count == 36)
  }

  @Test("One stream until the first authorised request, a thousand afterwards")
  func streamLimit() throws {
    let talk = try APNsTalk()
    #expect(talk.client.availableStreams == 1)
    talk.push(0, ["authorization": nil])
    #expect(talk.reason(0) == #"403 {"reason":"MissingProviderToken"}"#)
    #expect(talk.client.availableStreams == 1)
    talk.push(1)
    #expect(talk.client.availableStreams == 1000)
  }

  @Test("What is wrong with a request gets the status and reason of Apple's table", arguments: refusals)
  func refused(_ what: String, _ headers: [String: String?], _ expected: String) throws {
    var configuration = APNsConfiguration()
    configuration.topics = ["com.example.app"]
    let talk = try APNsTalk(configuration)
    talk.push(0, headers)
    #expect(talk.reason() == expected, "\(what)")
    #expect(talk.answers[0]?.header(3) == Array("application/json".utf8))
  }

  @Test(
    "Each push type has its topic suffix",
    arguments: [
      ("alert", ""), ("background", ""), ("voip", ".voip"), ("complication", ".complication"),
      ("fileprovider", ".pushkit.fileprovider"), ("mdm", ""), ("location", ".location-query"),
      ("liveactivity", ".push-type.liveactivity"), ("pushtotalk", ".voip-ptt"), ("widgets", ".push-type.widgets"),
      ("controls", ".push-type.controls"),
    ])
  func topicSuffixes(_ type: String, _ suffix: String) throws {
    let talk = try APNsTalk()
    talk.push(0, ["apns-push-type": type, "apns-topic": "com.example.app" + suffix, "apns-priority": "5"])
    talk.push(
      1,
      [
        "apns-push-type": type, "apns-topic": "com.example.app.voip.no" + suffix + (suffix.isEmpty ? ".voip" : "x"),
        "apns-priority": "5",
      ])
    #expect(talk.answers[0]?.status == 200)
    #expect(talk.reason(1) == #"400 {"reason":"BadTopic"}"#)
  }

  @Test(
    "Paths, methods and tokens are judged before the rest",
    arguments: [
      ("/3/device/", #"400 {"reason":"MissingDeviceToken"}"#), ("/4/device/abab", #"404 {"reason":"BadPath"}"#),
      ("/3/device/abz0", #"400 {"reason":"BadDeviceToken"}"#), ("/3/device/abc", #"400 {"reason":"BadDeviceToken"}"#),
    ])
  func targets(_ path: String, _ expected: String) throws {
    let talk = try APNsTalk()
    talk.push(path: path)
    #expect(talk.reason() == expected)
  }

  @Test("A header given twice is refused")
  func duplicateHeaders() throws {
    let talk = try APNsTalk(names: APNsTalk.usualNames + ["apns-priority"])
    talk.push(0, ["apns-priority": "5"])
    #expect(talk.reason() == #"400 {"reason":"DuplicateHeaders"}"#)
  }

  @Test("Payload sizes are judged in bytes: 4,096 for most, 5,120 for voip")
  func payloadSizes() throws {
    let talk = try APNsTalk()
    func payload(_ size: Int) -> String {
      let frame = #"{"aps":{"alert":""}}"#
      return #"{"aps":{"alert":""# + String(repeating: "a", count: size - frame.utf8.count) + #""}}"#
    }
    talk.push(0, payload: payload(4096))
    talk.push(1, payload: payload(4097))
    let voip: [String: String?] = ["apns-push-type": "voip", "apns-topic": "com.example.app.voip"]
    talk.push(2, payload: payload(5120), voip)
    talk.push(3, payload: payload(5121), voip)
    talk.push(4, payload: "")
    talk.push(5, payload: #"{"aps":{}"#)
    #expect(
      (0..<6).map { talk.reason($0) } == [
        "200 ", #"413 {"reason":"PayloadTooLarge"}"#, "200 ", #"413 {"reason":"PayloadTooLarge"}"#,
        #"400 {"reason":"PayloadEmpty"}"#,
        #"400 {"reason":"PayloadEmpty"}"#,
      ])
  }

  @Test(
    "Payloads that a device would not show are journaled as violations",
    arguments: [
      (#"{"aps":{"badge":"1"}}"#, "aps.badge is a string"), (#"{"alert":"hi"}"#, "the payload has no aps"),
      (#"{"aps":[]}"#, "aps is an array, not an object"),
      (#"{"aps":{"custom":1}}"#, "aps.custom is unknown: custom keys stand beside aps"),
      (#"{"aps":{"alert":{"loc-args":[1]}}}"#, "aps.alert.loc-args holds a number, not only strings"),
      (#"{"aps":{"mutable-content":1}}"#, "mutable-content without an alert reaches no service extension"),
      (#"{"aps":{"alert":"x","interruption-level":"loud"}}"#, "aps.interruption-level has a value that Apple doesn't list"),
      (#"{"aps":{},"aps":{}}"#, "the payload is not JSON"),
    ])
  func violations(_ payload: String, _ violation: String) throws {
    let talk = try APNsTalk()
    talk.push(payload: payload)
    let violations = talk.service.journal.entries[0].violations
    #expect(violations.count == 1 && violations[0].hasPrefix(violation), "\(violations)")
  }

  @Test(
    "Provider tokens: form, age, team and signature",
    arguments: [
      ("bearer abc", "InvalidProviderToken"), ("basic abc", "InvalidProviderToken"), ("bearer a.b.c", "InvalidProviderToken"),
    ])
  func malformedTokens(_ header: String, _ reason: String) throws {
    let talk = try APNsTalk()
    talk.push(0, ["authorization": header])
    #expect(talk.reason() == #"403 {"reason":"\#(reason)"}"#)
  }

  @Test("A provider token lives an hour, and a new one may not come within 20 minutes")
  func tokenAges() throws {
    let talk = try APNsTalk()
    let now = talk.clock.milliseconds / 1000
    talk.push(0, ["authorization": talk.token(issuedAt: now - 3601)])
    talk.push(1, ["authorization": talk.token(issuedAt: now + 3601)])
    let good = talk.token(issuedAt: now - 1800)
    talk.push(2, ["authorization": good])
    talk.push(3, ["authorization": talk.token(issuedAt: now - 1000)])
    talk.push(4, ["authorization": talk.token(issuedAt: now - 600)])
    talk.push(5, ["authorization": talk.token(issuedAt: now, team: "OTHER23456")])
    talk.clock.milliseconds += 3_100_000
    talk.push(6, ["authorization": talk.token(issuedAt: now - 600)])
    #expect(
      (0..<7).map { talk.reason($0) } == [
        #"403 {"reason":"ExpiredProviderToken"}"#, #"403 {"reason":"InvalidProviderToken"}"#, "200 ",
        #"429 {"reason":"TooManyProviderTokenUpdates"}"#, "200 ", #"403 {"reason":"InvalidProviderToken"}"#,
        #"403 {"reason":"ExpiredProviderToken"}"#,
      ])
  }

  @Test("A provider token's time of issue may have a fraction; one that is beyond all times, or no number, is refused")
  func fractionalTimes() throws {
    let talk = try APNsTalk()
    let wanted = [(".25", true), (".75", true), ("e300", false), ("x", false)]
    for (index, (fraction, isTaken)) in wanted.enumerated() {
      let other = try APNsTalk(beside: talk)
      other.push(index, ["authorization": other.token(fraction: fraction)])
      #expect(other.reason(index) == (isTaken ? "200 " : #"403 {"reason":"InvalidProviderToken"}"#), "\(fraction)")
    }
    #expect(talk.service.journal.entries.prefix(2).map { $0.authorization?.issuedAt } == [1_764_000_000, 1_764_000_000])
  }

  @Test("The scheme has no letter case, and a token is the same in whichever case its scheme is written")
  func schemes() throws {
    let talk = try APNsTalk()
    let token = talk.token().dropFirst(7)
    for (index, scheme) in ["bearer", "Bearer", "BEARER", "bEaReR"].enumerated() {
      talk.push(index, ["authorization": "\(scheme) \(token)"])
    }
    talk.push(4, ["authorization": "bearer\(token)"])
    #expect((0..<5).map { talk.reason($0) } == Array(repeating: "200 ", count: 4) + [#"403 {"reason":"InvalidProviderToken"}"#])
    #expect(talk.service.journal.entries.flatMap(\.violations).isEmpty)
  }

  @Test("Two provider tokens of a key within 20 minutes, on two connections, are journaled as a violation; one token is none")
  func tokensOfAKey() throws {
    let talk = try APNsTalk()
    let (other, third) = (try APNsTalk(beside: talk), try APNsTalk(beside: talk))
    let now = talk.clock.milliseconds / 1000
    let wanted: [(APNsTalk, Int64, Int)] = [(talk, now, 0), (other, now, 0), (other, now - 1800, 0), (third, now - 700, 1)]
    for (index, (talk, issuedAt, _)) in wanted.enumerated() {
      talk.push(index, ["authorization": talk.token(issuedAt: issuedAt)])
    }
    #expect(talk.service.journal.entries.map(\.violations.count) == wanted.map(\.2))
  }

  @Test("With the public key, only tokens signed by its private key pass")
  func signatures() throws {
    let certificates = try TestCertificates.make()
    var configuration = APNsConfiguration()
    configuration.providerKey = try Array(Data(contentsOf: URL(fileURLWithPath: certificates.p8)))
    let talk = try APNsTalk(configuration)
    talk.push(0, ["authorization": talk.token(sign: try SigningKey(path: certificates.otherP8))])
    talk.push(1, ["authorization": talk.token(sign: try SigningKey(path: certificates.p8))])
    #expect(talk.reason(0) == #"403 {"reason":"InvalidProviderToken"}"#)
    #expect(talk.reason(1) == "200 ")
  }

  @Test("More streams than were allowed end the connection with the code and the words of the real service")
  func tooManyStreams() throws {
    var configuration = APNsConfiguration()
    configuration.script = try Script(parsing: Array(#"{"*": {"stall": true}}"#.utf8))
    configuration.maxConcurrentStreams = 2
    let talk = try APNsTalk(configuration)
    talk.push(0)
    talk.push(1)
    // The client keeps to the limit; a third request is forged with the id that follows.
    talk.pair.inject(toServer: [0, 0, 1, 1, 5, 0, 0, 0, 5, 0x83])
    #expect(talk.goAways.map(\.code) == [.refusedStream])
    #expect(
      talk.goAways.map { String(decoding: $0.debugData, as: UTF8.self) } == [
        "Maximum active streams violated for this endpoint."
      ])
    #expect(talk.service.journal.violations == ["more than 2 streams at once"])
    #expect(talk.failures.count == 2)
    #expect(talk.service.openConnections == 0)
  }
}

private let refusals: [(String, [String: String?], String)] = [
  ("an id in upper case", ["apns-id": "123E4567-E89B-12D3-A456-426614174000"], #"400 {"reason":"BadMessageId"}"#),
  ("an id without hyphens", ["apns-id": "123e4567e89b12d3a456426614174000"], #"400 {"reason":"BadMessageId"}"#),
  ("an expiration with a sign", ["apns-expiration": "-1"], #"400 {"reason":"BadExpirationDate"}"#),
  ("an expiration that is no number", ["apns-expiration": "soon"], #"400 {"reason":"BadExpirationDate"}"#),
  ("priority 7", ["apns-priority": "7"], #"400 {"reason":"BadPriority"}"#),
  ("background with priority 10", ["apns-push-type": "background", "apns-priority": "10"], #"400 {"reason":"BadPriority"}"#),
  ("background with the default priority", ["apns-push-type": "background"], #"400 {"reason":"BadPriority"}"#),
  ("a collapse id of 65 bytes", ["apns-collapse-id": String(repeating: "a", count: 65)], #"400 {"reason":"BadCollapseId"}"#),
  (
    "a collapse id of 33 two-byte characters", ["apns-collapse-id": String(repeating: "é", count: 33)],
    #"400 {"reason":"BadCollapseId"}"#
  ),
  ("an unknown push type", ["apns-push-type": "Alert"], #"400 {"reason":"InvalidPushType"}"#),
  ("no topic", ["apns-topic": nil], #"400 {"reason":"MissingTopic"}"#),
  ("an empty topic", ["apns-topic": ""], #"400 {"reason":"BadTopic"}"#),
  ("another app's topic", ["apns-topic": "com.example.other"], #"400 {"reason":"TopicDisallowed"}"#),
]
