import Foundation
import TestSupport
import Testing

/// A full pipe of one page, like one whose reader has stopped.
private final class StalledPipe {
  private static let setPipeSize: Int32 = 1031
  private let pipe = Pipe()
  private let padding = Data((String(repeating: ".", count: 4095) + "\n").utf8)

  var writing: FileHandle { pipe.fileHandleForWriting }

  init() throws {
    guard fcntl(writing.fileDescriptor, Self.setPipeSize, 4096) == 4096 else { throw Broken("the pipe's size stays as it is") }
    try writing.write(contentsOf: padding)
  }

  /// Closes this copy of the writing end, so that the child has the only one.
  func letGo() throws { try writing.close() }

  /// Reads until the text is enough, its writers are gone, or nothing comes for a while.
  func read(until isEnough: (String) -> Bool = { _ in false }) -> String {
    var text = ""
    var wait = pollfd(fd: pipe.fileHandleForReading.fileDescriptor, events: Int16(POLLIN), revents: 0)
    while !isEnough(text), poll(&wait, 1, 15_000) == 1 {
      let data = pipe.fileHandleForReading.availableData
      if data.isEmpty { break }
      text += String(decoding: data, as: UTF8.self)
    }
    return String(text.drop { $0 == "." || $0 == "\n" })
  }

  func close() throws { try pipe.fileHandleForReading.close() }
}

@Suite("A standard error that nobody reads", .blocking)
struct StandardErrorTests {
  private func startWorker(_ site: Site, _ pipe: StalledPipe) throws -> ChildProcess {
    let worker = try ChildProcess(
      [Program.path, "worker", "--config", site.file("pushfleet.json5")], environment: Site.environment,
      output: site.file("worker.out"), errors: pipe.writing)
    try pipe.letGo()
    return worker
  }

  @Test("stops nothing: pushes continue, the probes answer, SIGTERM ends the worker")
  func stalled() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(settings: "drainTimeout: 2, metrics: \"127.0.0.1:\(port)\",")
    try site.declareTopology()
    let journal = try site.followJournal()
    let pipe = try StalledPipe()
    let worker = try startWorker(site, pipe)
    defer { worker.end() }
    try site.send(tokens: (0..<50).map(token))
    #expect(journal.waitForLines(50, seconds: 90))
    let probe = HTTPProbe(port: port)
    for path in ["/livez", "/readyz"] { #expect(eventually { probe.ask(path)?.status == 200 }, "\(path)") }
    worker.signal(15)
    let begin = Date()
    #expect(eventually(seconds: 90) { !worker.isRunning })
    #expect(worker.wait() == 0 && Date().timeIntervalSince(begin) < 8)
    try site.drain()
    #expect(try site.deliveries().values.allSatisfy { $0 == 1 })
  }

  @Test("loses a start-up error's text, not its exit status")
  func stalledAtStart() throws {
    let site = try Site()
    try site.configure(port: 1, settings: "colour: 1,")
    let pipe = try StalledPipe()
    let worker = try startWorker(site, pipe)
    defer { worker.end() }
    #expect(eventually(seconds: 90) { !worker.isRunning })
    #expect(worker.wait() == 78)
  }

  @Test("gets whole lines again when it is read, with the number of missing ones")
  func readAgain() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(settings: "log: \"debug\", metrics: \"127.0.0.1:\(port)\",")
    try site.declareTopology()
    let journal = try site.followJournal()
    let pipe = try StalledPipe()
    let worker = try startWorker(site, pipe)
    defer { worker.end() }
    try site.send(tokens: (0..<4000).map(token))
    #expect(journal.waitForLines(4000, seconds: 60))
    let probe = HTTPProbe(port: port)
    let metric = /pushfleet_log_lines_dropped_total (\d+)/
    var dropped = 0
    #expect(
      eventually {
        dropped = probe.ask("/metrics")?.body.firstMatch(of: metric).flatMap { Int($0.1) } ?? 0
        return dropped > 0
      })
    let missing = #""message":"log lines are missing"#
    let text = pipe.read { $0.contains(missing) && $0.hasSuffix("\n") }
    for line in text.split(separator: "\n") {
      #expect((try? JSONSerialization.jsonObject(with: Data(line.utf8))) != nil, "\(line)")
    }
    let told = Site.objects(text).filter { ($0["message"] as? String ?? "").hasPrefix("log lines are missing") }
    #expect(told.reduce(0) { $0 + ($1["lines"] as? Int ?? 0) } >= dropped)
    worker.signal(15)
    #expect(pipe.read().contains(#""received":4000"#))
    #expect(worker.wait() == 0)
  }

  @Test("harms nothing when its reader is gone")
  func gone() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let journal = try site.followJournal()
    let pipe = try StalledPipe()
    let worker = try startWorker(site, pipe)
    defer { worker.end() }
    try pipe.close()
    try site.send(tokens: (0..<10).map(token))
    #expect(journal.waitForLines(10, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
  }
}
