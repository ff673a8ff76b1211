import Foundation
import TestSupport
import Testing

@Suite("Applications beside each other", .serialized)
struct IsolationTests {
  private static let troubled = "com.example.troubled"

  /// Two applications, each with a simulator of its own in the configuration.
  private func configure(_ site: Site, troubledPort: Int, settings: String = "") throws {
    try site.write(
      """
      {
        broker: "\(site.brokerURI)", prefix: "\(site.prefix)", prefetch: 300, \(settings)
        apps: {
          "\(Site.app)": { apns: \(site.apns()) },
          "\(Self.troubled)": { apns: \(site.apns(topic: Self.troubled, port: troubledPort)) },
        },
      }
      """, to: "pushfleet.json5")
  }

  /// Starts the troubled application's simulator; its journal is `troubled.ndjson`.
  private func startTroubled(_ site: Site, port: Int = 0, script: String = "{}") throws -> (ChildProcess, port: Int) {
    try site.write(script, to: "troubled.json")
    let child = try site.start([
      "simulate", "apns", "--listen", "127.0.0.1:\(port)", "--certificate", site.certificates.server, "--key",
      site.certificates.serverKey, "--script", site.file("troubled.json"), "--journal", site.file("troubled.ndjson"),
    ])
    guard child.waitForOutput("listens on 127.0.0.1:", seconds: 30),
      let line = child.outputSoFar.split(separator: "\n").first(where: { $0.contains("listens on") }),
      let port = Int(line.split(separator: ":").last ?? "")
    else { throw Broken("no simulator: \(child.outputSoFar)") }
    return (child, port)
  }

  private struct Broken: Error {
    var reason: String
    init(_ reason: String) { self.reason = reason }
  }

  private func publish(_ site: Site, _ app: String, _ tokens: Range<Int>) throws {
    let lines = tokens.map { #"{"to":"\#(token($0))","notification":{"body":"Hello"}}"# }
    let file = try site.write(lines.joined(separator: "\n"), to: "send-\(UUID().uuidString).ndjson")
    let ended = try site.run(["send", "--config", site.file("pushfleet.json5"), "--app", app, file])
    guard ended.status == 0 else { throw Broken(ended.output) }
  }

  @Test("requests of one whose provider can't be reached don't hold up another's, and all go out when it can")
  func unreachable() throws {
    let site = try Site()
    try site.startSimulator()
    let (former, port) = try startTroubled(site)
    former.end()
    try configure(site, troubledPort: port)
    try site.declareTopology()
    let troubled = 3_000
    try publish(site, Self.troubled, 0..<troubled)
    try publish(site, Site.app, 100_000..<100_500)
    let worker = try site.startWorker()
    let begun = ContinuousClock.now
    #expect(try site.followJournal().waitForLines(500, seconds: 60))
    print("the others' last push after \(ContinuousClock.now - begun)")
    _ = try startTroubled(site, port: port)
    let back = ContinuousClock.now
    let journal = try site.followJournal("troubled.ndjson")
    #expect(journal.waitForLines(1, seconds: 120))
    print("the troubled one's first push after \(ContinuousClock.now - back)")
    #expect(journal.waitForLines(troubled, seconds: 120))
    print("the troubled one's last push after \(ContinuousClock.now - back)")
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try Set(site.pushes().map(\.token)).count == 500)
    #expect(try site.depths(["send.normal", "hold.\(Self.troubled)", "dead"]) == [0, 0, 0])
  }

  @Test("requests of one whose provider is silent don't hold up another's")
  func silent() throws {
    let site = try Site()
    try site.startSimulator()
    let troubled = 3_000
    let script = Dictionary(uniqueKeysWithValues: (0..<troubled).map { (token($0), ["stall": true]) })
    let (_, port) = try startTroubled(
      site, script: String(decoding: try JSONSerialization.data(withJSONObject: script), as: UTF8.self))
    try configure(site, troubledPort: port)
    try site.declareTopology()
    try publish(site, Self.troubled, 0..<troubled)
    try publish(site, Site.app, 100_000..<100_500)
    let worker = try site.startWorker()
    let begun = ContinuousClock.now
    #expect(try site.followJournal().waitForLines(500, seconds: 20))
    print("the others' last push after \(ContinuousClock.now - begun)")
    worker.signal(SIGTERM)
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
    #expect(try Set(site.pushes().map(\.token)).count == 500)
    #expect(try site.depths(["send.normal", "hold.\(Self.troubled)", "dead"]).reduce(0, +) <= troubled)
  }

  @Test("what a worker that is killed has held goes out by the next one")
  func killed() throws {
    let site = try Site()
    try site.startSimulator()
    let (former, port) = try startTroubled(site)
    former.end()
    try configure(site, troubledPort: port)
    try site.declareTopology()
    try publish(site, Self.troubled, 0..<500)
    let worker = try site.startWorker()
    #expect(
      eventually(seconds: 30) {
        (try? site.depths(["send.normal"])) == [0] && (try? site.depths(["hold.\(Self.troubled)"]).first ?? 0) ?? 0 > 400
      })
    worker.signal(SIGKILL)
    _ = worker.wait()
    _ = try startTroubled(site, port: port)
    try site.drain()
    let journal = try String(contentsOfFile: site.file("troubled.ndjson"), encoding: .utf8)
    let tokens = Site.objects(journal).compactMap { $0["token"] as? String }
    #expect(Set(tokens).count == 500 && tokens.count == 500)
  }

  @Test("what is for now or never goes out when the provider is back, though nothing is held that it could be tried with")
  func nowOrNever() throws {
    let site = try Site()
    try site.startSimulator()
    site.stopSimulator()
    try site.configure(port: site.port)
    try site.declareTopology()
    let worker = try site.startWorker()
    func send(_ number: Int) throws { try site.send(lines: [#"{"to":"\#(token(number))","time_to_live":0,"data":{"k":"v"}}"#]) }
    var number = 0
    #expect(
      try eventually(seconds: 40) {
        try send(number)
        number += 1
        return (try site.depths(["dead"]).first ?? 0) > 2
      })
    try site.startSimulator()
    #expect(
      try eventually(seconds: 20) {
        try send(number)
        number += 1
        return try site.pushes().count > 3
      })
    worker.signal(SIGTERM)
    #expect(worker.wait() == 0)
  }
}
