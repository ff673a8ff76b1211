import Foundation
import TestSupport
import Testing

@Suite("An untrusted or unreachable provider", .blocking)
struct ProviderFaultTests {
  static let identities: [(name: String, reason: String)] = [
    ("expired", "expired"), ("self-signed", "self-signed"), ("wrong-host", "is not for 127.0.0.1"),
    ("other-ca", "issued by no trusted authority"),
  ]

  @Test(
    "a certificate that does not verify: nothing is sent, the log has the reason, and all is sent once it is corrected",
    arguments: identities)
  func wrongCertificate(_ name: String, _ reason: String) throws {
    let site = try Site()
    let settings = #"retry: { steps: ["100ms"] },"#
    let authority = site.certificates.authority
    if name == "other-ca" {
      try site.startSimulator(settings: settings)
      let file = site.file("pushfleet.json5")
      try String(contentsOfFile: file, encoding: .utf8).replacing(authority, with: site.certificates.otherAuthority).write(
        toFile: file, atomically: true, encoding: .utf8)
    } else {
      try site.startSimulator(
        settings: settings, identity: (site.certificates.path("\(name).pem"), site.certificates.path("\(name).key")))
    }
    try site.declareTopology()
    let tokens = (0..<20).map(token)
    try site.send(tokens: tokens)
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("provider unreachable", seconds: 90))
    #expect(worker.outputSoFar.localizedCaseInsensitiveContains(reason), "\(worker.outputSoFar)")
    #expect(try site.pushes().isEmpty)
    if name == "other-ca" {
      worker.signal(15)
      #expect(worker.wait() == 0)
      // On a busy machine they may be in the hold queue already.
      #expect(try eventually { try site.depths(["send.normal"])[0] + site.held(Site.app) == 20 })
      #expect(try site.depths(["dead"]) == [0])
      try site.configure(port: site.port, settings: settings)
    } else {
      site.stopSimulator()
      try site.startSimulator(settings: settings)
      let journal = try site.followJournal()
      #expect(journal.waitForLines(tokens.count, seconds: 90))
      worker.signal(15)
      #expect(worker.wait() == 0)
    }
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("a push whose stream is refused again and again is retried until its attempts are used up")
  func refusedStreams() throws {
    let site = try Site()
    try site.startSimulator(
      script: [token(1): ["refuse": true, "times": 6], token(2): ["refuse": true], token(3): ["refuse": true]],
      settings: #"results: "all", retry: { steps: ["200ms"], attempts: 3 },"#)
    try site.declareTopology()
    try site.publish([
      (#"{"to":"\#(token(1))"}"#, ["message_id": "patient"]),
      (#"{"to":"\#(token(2))","time_to_live":0}"#, ["message_id": "now"]),
      (#"{"to":"\#(token(3))"}"#, ["message_id": "refused"]),
    ])
    try site.drain()
    #expect(try site.deliveries() == [token(1): 1])
    let letters = try site.take("dead").sorted { $0.id < $1.id }
    #expect(
      letters.map { "\($0.id) \($0.header("x-push-error") ?? "") \($0.header("x-push-attempts") ?? "")" } == [
        "now Unavailable 1", "refused Unavailable 3",
      ])
    #expect(letters.allSatisfy { $0.header("x-push-reason")?.contains("refuses its stream") == true })
    #expect(try site.take("results").count == 3)
  }

  @Test(
    "an unreachable provider is waited for on the ladder, without counting attempts; only requests with a lifetime of 0 end")
  func away() throws {
    let site = try Site()
    let settings = #"results: "all", retry: { steps: ["500ms"], attempts: 1 },"#
    try site.configure(port: Int(try FreePorts.take(1)[0]), settings: settings)
    try site.declareTopology()
    try site.publish([
      (#"{"to":"\#(token(1))"}"#, ["message_id": "patient"]),
      (#"{"to":"\#(token(2))","time_to_live":0}"#, ["message_id": "now"]),
      (["registration_ids": [token(3), token(4)]], ["message_id": "list"]),
    ])
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("provider unreachable", seconds: 90))
    // Parked after five seconds; requests with a lifetime of 0 are dead letters by then.
    #expect(try site.take("dead", count: 1).map { "\($0.id) \($0.header("x-push-error") ?? "")" } == ["now Unavailable"])
    try site.startSimulator(settings: settings)
    #expect(try site.take("results", count: 3).compactMap { $0.json["success"] as? Int }.sorted() == [0, 1, 2])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1, token(3): 1, token(4): 1])
  }

  @Test("a first push whose topic the key doesn't cover is a dead letter, and holds up no other push of a fresh worker")
  func firstTopicDisallowed() throws {
    let site = try Site()
    try site.startSimulator(script: [token(0): ["status": 400, "reason": "TopicDisallowed"]])
    try site.declareTopology()
    let call = ##"{"to":"\##(token(0))","apns":{"headers":{"apns-push-type":"voip"},"payload":{"aps":{}}}}"##
    try site.send(lines: [call] + (1...5).map { ##"{"to":"\##(token($0))","notification":{"title":"a"}}"## })
    let began = Date()
    try site.drain()
    #expect(Date().timeIntervalSince(began) < 30)
    #expect(try site.take("dead").map { $0.header("x-push-reason") } == ["TopicDisallowed"])
    let delivered = try site.deliveries()
    #expect((1...5).allSatisfy { delivered[token($0)] == 1 } && delivered[token(0)] == nil)
  }

  @Test(
    "a refused credential holds the requests, and only those with a lifetime of 0 end; all are sent once it is corrected"
  )
  func refusedCredential() throws {
    let site = try Site()
    let settings = #"retry: { steps: ["1s"] },"#
    try site.startSimulator(options: ["--provider-key", site.certificates.otherP8], settings: settings)
    try site.declareTopology()
    try site.send(lines: (1...20).map { #"{"to":"\#(token($0))"}"# } + [#"{"to":"\#(token(21))","time_to_live":0}"#])
    let worker = try site.startWorker()
    let letters = try site.take("dead", count: 1)
    #expect(letters.map { $0.header("x-push-error") } == ["InvalidApnsCredential"])
    #expect(letters.map { $0.header("x-push-reason") } == ["InvalidProviderToken"])
    let line = try #require(refusals(worker).first)
    #expect(refusals(worker).count == 1 && line["credential"] as? String == "APNs key ABC123DEFG of team DEF123GHIJ")
    #expect(line["remedy"] as? String == "check `key`, `keyID` and `teamID`; the key may be revoked" && line["advice"] == nil)
    worker.signal(15)
    #expect(worker.wait() == 0)
    site.stopSimulator()
    try site.startSimulator(options: ["--provider-key", site.certificates.p8], settings: settings)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: (1...20).map { (token($0), 1) }))
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("a topic that the credential may not send to holds the backlog, is reported once, and all is sent once it may")
  func topicDisallowed() throws {
    let site = try Site()
    let settings = #"retry: { steps: ["1s"] },"#
    try site.startSimulator(options: ["--topic", "com.example.other"], settings: settings)
    try site.declareTopology()
    let tokens = (0..<300).map(token)
    try site.send(tokens: tokens)
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("credential refused by the provider", seconds: 90))
    // Parked after five seconds: put on the ladder and fetched again.
    #expect(try eventually { try site.depths(["retry.1s"])[0] > 0 })
    worker.signal(15)
    #expect(worker.wait() == 0)
    let lines = refusals(worker)
    #expect(lines.map { $0["reason"] as? String } == ["TopicDisallowed"])
    #expect((lines.first?["remedy"] as? String)?.hasSuffix("(the topic is \(Site.app))") == true)
    #expect(try site.pushes().count < 10)
    site.stopSimulator()
    try site.startSimulator(options: ["--topic", Site.app], settings: settings)
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("a missing Firebase project holds the backlog, is reported once, and all is sent once it exists")
  func wrongProject() throws {
    let site = try Site()
    try site.startFleet(apps: try site.startFCM(["--project", "another-project"]))
    try site.send(lines: (0..<300).map { #"{"to":"fcm:device-\#($0)","data":{"k":"v"}}"# })
    let worker = try site.startWorker()
    #expect(worker.waitForOutput("credential refused by the provider", seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    let lines = refusals(worker)
    #expect(lines.map { $0["reason"] as? String } == ["NOT_FOUND"])
    #expect((lines.first?["credential"] as? String)?.contains("example-project") == true)
    try site.configureFleet("sqlite:registry.db", apps: try site.startFCM(["--project", "example-project"]))
    let figures = try site.drain()
    #expect(figures["delivered"] as? Int == 300)
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  private func refusals(_ worker: ChildProcess) -> [[String: Any]] {
    Site.objects(worker.outputSoFar).filter { $0["message"] as? String == "credential refused by the provider" }
  }
}
