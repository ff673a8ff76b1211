import Foundation
import TestSupport
import Testing

/// A service manager's socket, as sd_notify(3) describes it.
private final class NotifySocket {
  private let raw: Int32

  init(at path: String) throws {
    raw = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
    let code = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
    guard code == 0 else { throw Broken("no socket at \(path)") }
    var limit = timeval(tv_sec: 20, tv_usec: 0)
    setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
  }

  deinit { close(raw) }

  /// The next message; nil if none comes for a while.
  func receive() -> String? {
    var buffer = [UInt8](repeating: 0, count: 512)
    let count = recv(raw, &buffer, buffer.count, 0)
    return count < 0 ? nil : String(decoding: buffer[..<count], as: UTF8.self)
  }

  /// Messages up to and including this one.
  func receive(until word: String) -> [String] {
    var words: [String] = []
    while let next = receive() {
      words.append(next)
      if next == word { break }
    }
    return words
  }
}

@Suite("The view of supervisors", .blocking)
struct SupervisionTests {
  private func answers(_ probe: HTTPProbe) -> [String] {
    ["/livez", "/readyz"].map { path in probe.ask(path).map { "\($0.status) \($0.body)" } ?? "nothing" }
  }

  @Test("a worker that consumes is live and ready; one that drains is live")
  func draining() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(
      script: ["*": ["stall": true]], settings: "drainTimeout: 600, shards: 2, metrics: \"127.0.0.1:\(port)\",")
    try site.declareTopology()
    try site.send(tokens: [token(1)])
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    let probe = HTTPProbe(port: port)
    #expect(eventually { answers(probe) == ["200 ok\n", "200 ok\n"] }, "\(answers(probe))")
    #expect(journal.waitForLines(1, seconds: 90))
    worker.signal(15)
    #expect(worker.waitForOutput(#""draining""#, seconds: 90))
    #expect(answers(probe) == ["200 ok\n", "503 draining\n"])
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(answers(probe) == ["nothing", "nothing"])
  }

  @Test("a worker without a broker is live, so that it isn't restarted, and not ready; its manager sees it as started")
  func withoutBroker() throws {
    let site = try Site()
    let ports = try FreePorts.take(2)
    site.brokerURI = "amqp://guest:guest@127.0.0.1:\(ports[0])"
    try site.configure(port: 1, settings: "metrics: \"127.0.0.1:\(ports[1])\",")
    let manager = try NotifySocket(at: site.file("notify"))
    let worker = try site.start(
      ["worker", "--config", site.file("pushfleet.json5")], environment: ["NOTIFY_SOCKET": site.file("notify")])
    #expect(manager.receive(until: "READY=1").last == "READY=1")
    #expect(manager.receive(until: "WATCHDOG=1") == ["WATCHDOG=1"])
    #expect(worker.waitForOutput("again_in_seconds", seconds: 90))
    let probe = HTTPProbe(port: ports[1])
    #expect(answers(probe) == ["200 ok\n", "503 not publishing and consuming: shard 0\n"])
    // The watchdog's messages continue.
    #expect(manager.receive(until: "WATCHDOG=1").last == "WATCHDOG=1")
    worker.signal(15)
    #expect(manager.receive(until: "STOPPING=1").last == "STOPPING=1")
    #expect(worker.wait() == 0)
  }

  @Test("a port that another worker has is waited for, and the worker delivers meanwhile")
  func samePort() throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.startSimulator(settings: "metrics: \"127.0.0.1:\(port)\",")
    try site.declareTopology()
    let first = try site.startWorker()
    let second = try site.startWorker()
    #expect(second.waitForOutput("is in use: end what listens there", seconds: 90))
    first.signal(15)
    #expect(first.wait() == 0)
    #expect(second.waitForOutput("the figures are served", seconds: 90))
    let probe = HTTPProbe(port: port)
    #expect(eventually { answers(probe) == ["200 ok\n", "200 ok\n"] })
    second.signal(15)
    #expect(second.wait() == 0)
  }

  @Test("a worker with too few file descriptors ends with 69: its configuration is not to blame", arguments: 4...7)
  func withoutDescriptors(limit: Int) throws {
    let site = try Site()
    try site.configure(port: 1)
    let words = ["/bin/sh", "-c", "ulimit -n \(limit); exec \"$@\"", "sh", Program.path, "worker", "--config"]
    let worker = try ChildProcess(
      words + [site.file("pushfleet.json5")], environment: Site.environment, output: site.file("worker.log"))
    #expect(worker.wait() == 69)
    #expect(try String(contentsOfFile: site.file("worker.log"), encoding: .utf8).contains("open files"))
  }

  @Test("SIGUSR1 and SIGUSR2 do nothing, SIGHUP reads the credentials again, and pushes continue")
  func signals() throws {
    let site = try Site()
    try site.startSimulator()
    try site.declareTopology()
    let journal = try site.followJournal()
    let worker = try site.startWorker()
    for signal in [10, 12, 10] as [Int32] { worker.signal(signal) }
    for round in 1...2 {
      worker.signal(1)
      #expect(worker.waitForOutput(#""because":"SIGHUP""#, times: round, seconds: 90))
    }
    try site.send(tokens: [token(1)])
    #expect(journal.waitForLines(1, seconds: 90))
    worker.signal(15)
    #expect(worker.wait() == 0)
    #expect(!worker.outputSoFar.contains("stays in force"))
  }

  /// Opens a named pipe for writing once a process reads it; nil if none does.
  private func writer(to pipe: String) -> FileHandle? {
    var raw: Int32 = -1
    _ = eventually {
      raw = open(pipe, O_WRONLY | O_NONBLOCK)
      return raw >= 0
    }
    return raw < 0 ? nil : FileHandle(fileDescriptor: raw, closeOnDealloc: true)
  }

  @Test(
    "SIGHUP while the configuration is first read is kept for later, and one without a readable file changes nothing",
    arguments: ["worker", "gateway"])
  func hangUps(command: String) throws {
    let site = try Site()
    let port = try FreePorts.take(1)[0]
    try site.configure(
      port: 1, settings: #"registry: "sqlite:registry.db", gateway: { http: { listen: "127.0.0.1:\#(port)" } },"#)
    let file = site.file("pushfleet.json5")
    let text = try String(contentsOfFile: file, encoding: .utf8)
    #expect(unlink(file) == 0 && mkfifo(file, 0o600) == 0)
    let process = try site.start([command, "--config", file])
    let pipe = try #require(writer(to: file))
    process.signal(SIGHUP)
    // What the reload reads is a usual file.
    let whole = try site.write(text, to: "whole.json5")
    #expect(rename(whole, file) == 0)
    try pipe.write(contentsOf: Data(text.utf8))
    try pipe.close()
    #expect(process.waitForOutput(#""because":"SIGHUP""#, seconds: 90), "\(process.outputSoFar)")
    #expect(unlink(file) == 0)
    process.signal(SIGHUP)
    #expect(process.waitForOutput("the old configuration stays in force", seconds: 90), "\(process.outputSoFar)")
    process.signal(SIGTERM)
    #expect(process.wait() == 0)
  }
}
