import Foundation
import TestSupport
import Testing

@Suite("A provider that can't be trusted or reached")
struct ProviderFaultTests {
  static let identities: [(name: String, reason: String)] = [
    ("expired", "expired"), ("self-signed", "self-signed"), ("wrong-host", "is not for 127.0.0.1"),
    ("other-ca", "issued by no trusted authority"),
  ]

  @Test(
    "a certificate that does not verify: nothing is sent, the log says why, and all goes out once it is mended",
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
    #expect(worker.waitForOutput("provider out of reach", seconds: 30))
    #expect(worker.outputSoFar.localizedCaseInsensitiveContains(reason), "\(worker.outputSoFar)")
    #expect(try site.pushes().isEmpty)
    if name == "other-ca" {
      worker.signal(15)
      #expect(worker.wait() == 0)
      #expect(try site.depths(["send.normal", "dead"]) == [20, 0])
      try site.configure(port: site.port, settings: settings)
    } else {
      site.stopSimulator()
      try site.startSimulator(settings: settings)
      let journal = try site.followJournal()
      #expect(journal.waitForLines(tokens.count, seconds: 30))
      worker.signal(15)
      #expect(worker.wait() == 0)
    }
    try site.drain()
    #expect(try site.deliveries() == Dictionary(uniqueKeysWithValues: tokens.map { ($0, 1) }))
    #expect(try site.depths(["dead", "feedback"]) == [0, 0])
  }

  @Test("a provider that is away is waited for on the ladder, at the cost of no attempt; what lives for now alone ends")
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
    #expect(worker.waitForOutput("provider out of reach", seconds: 30))
    // Parked after five seconds; what lives for now alone is dead by then.
    #expect(try site.take("dead", count: 1).map { "\($0.id) \($0.header("x-push-error") ?? "")" } == ["now Unavailable"])
    try site.startSimulator(settings: settings)
    #expect(try site.take("results", count: 3).compactMap { $0.json["success"] as? Int }.sorted() == [0, 1, 2])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(try site.deliveries() == [token(1): 1, token(3): 1, token(4): 1])
  }

  @Test("a credential that the provider refuses stops sending; the requests end as InvalidApnsCredential")
  func refusedCredential() throws {
    let site = try Site()
    try site.startSimulator(options: ["--provider-key", site.certificates.otherP8], settings: #"retry: { steps: ["1s"] },"#)
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    try site.drain()
    let letters = try site.take("dead")
    #expect(letters.map { $0.header("x-push-error") } == ["InvalidApnsCredential"])
    #expect(letters.map { $0.header("x-push-reason") } == ["InvalidProviderToken"])
    #expect(try site.depths(["feedback"]) == [0])
  }
}
