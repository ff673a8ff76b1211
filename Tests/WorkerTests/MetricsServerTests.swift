import Foundation
import PushCore
import Reactor
import StatusHTTP
import Synchronization
import TestSupport
import Testing
import Wire

@testable import Delivery
@testable import Worker

/// A process of two shards without threads, whose figures are served. Time moves only when the test says so.
final class QuietFleet {
  let board = ShardBoard(shards: 2, at: QuietFleet.time(0))
  let probe: HTTPProbe
  let port: UInt16
  private let loop: EventLoop
  private let server: MetricsServer
  private let now = Clock()

  final class Clock: Sendable {
    let seconds = Mutex(0.0)
  }

  fileprivate static func time(_ seconds: Double) -> MonotonicTime {
    MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds)
  }

  init() throws {
    let loop = try EventLoop()
    self.loop = loop
    port = try FreePorts.take(1)[0]
    probe = HTTPProbe(port: port)
    server = try MetricsServer(Endpoint(host: "127.0.0.1", port: port), board, version: "1.2.3") { [now] in
      QuietFleet.time(now.seconds.withLock { $0 })
    }
  }

  deinit { stop() }

  func stop() { server.stop() }

  func begin(_ number: Int) { board.controls[number].begin {} }

  func move(to seconds: Double) { now.seconds.withLock { $0 = seconds } }

  func report(_ number: Int, at seconds: Double, _ change: (inout ShardReport) -> Void = { $0.isReady = true }) {
    var report = ShardReport(at: Self.time(seconds))
    change(&report)
    board.controls[number].report(report)
  }

  /// The status and text of both probes.
  func probes() -> [String] {
    ["/livez", "/readyz"].map { path in probe.ask(path).map { "\($0.status) \($0.body)" } ?? "nothing" }
  }
}

@Suite("A worker's HTTP status")
struct MetricsServerTests {
  @Test("shows other machines only the metrics and the probes")
  func others() {
    #expect(["/metrics", "/livez", "/readyz"].allSatisfy(MetricsServer.isForAll))
    #expect(!["/", "/status.json", "/history.json", "/worker.js", "", "/metrics/"].contains(where: MetricsServer.isForAll))
  }

  @Test("says whether the latest reload was refused")
  func reload() throws {
    let fleet = try QuietFleet()
    func refused() -> String? {
      fleet.probe.ask("/metrics")?.body.split(separator: "\n").last { $0.hasPrefix("pushfleet_reload_refused") }.map(
        String.init)
    }
    #expect(refused() == "pushfleet_reload_refused 0")
    fleet.board.reloadAll(nil)
    #expect(refused() == "pushfleet_reload_refused 1")
  }

  @Test("is live and ready while every shard's loop turns, publishes and consumes")
  func probes() throws {
    let fleet = try QuietFleet()
    #expect(fleet.probes() == ["200 ok\n", "503 not publishing and consuming: shard 0, shard 1\n"])
    for number in 0..<2 { fleet.begin(number) }
    #expect(fleet.probes() == ["200 ok\n", "503 not publishing and consuming: shard 0, shard 1\n"])
    for number in 0..<2 { fleet.report(number, at: 1) }
    fleet.move(to: 2)
    #expect(fleet.probes() == ["200 ok\n", "200 ok\n"])
    // The broker is away: a restart would not help.
    fleet.report(1, at: 3) { $0.isReady = false }
    #expect(fleet.probes() == ["200 ok\n", "503 not publishing and consuming: shard 1\n"])
    fleet.report(1, at: 4)
    #expect(fleet.probes() == ["200 ok\n", "200 ok\n"])
    fleet.report(0, at: 4) {
      $0.isReady = true
      $0.isDraining = true
    }
    #expect(fleet.probes() == ["200 ok\n", "503 draining\n"])
  }

  @Test(
    "is neither if one shard's loop has not turned for ten seconds, whatever it reported last"
  )
  func hanging() throws {
    let fleet = try QuietFleet()
    for number in 0..<2 {
      fleet.begin(number)
      fleet.report(number, at: 5)
    }
    fleet.move(to: 15)
    #expect(fleet.probes() == ["200 ok\n", "200 ok\n"])
    fleet.report(0, at: 15)
    fleet.move(to: 15.1)
    let words = "503 hanging for more than 10 s: shard 1\n"
    #expect(fleet.probes() == [words, words])
    fleet.report(1, at: 15.1)
    #expect(fleet.probes() == ["200 ok\n", "200 ok\n"])
  }

  @Test("shows a shard that hangs before its first turn")
  func neverBegun() throws {
    let fleet = try QuietFleet()
    fleet.begin(1)
    fleet.move(to: 11)
    fleet.report(1, at: 11)
    #expect(fleet.probes()[0] == "503 hanging for more than 10 s: shard 0\n")
    #expect(!fleet.board.hasBegun)
  }

  @Test("is live and not ready when the worker is told to stop; ended shards don't count as hanging")
  func stopping() throws {
    let fleet = try QuietFleet()
    for number in 0..<2 {
      fleet.begin(number)
      fleet.report(number, at: 1)
    }
    fleet.board.stopAll()
    #expect(fleet.probes() == ["200 ok\n", "503 draining\n"])
    fleet.board.noteEnd(of: 0, (.done, Counters()))
    fleet.move(to: 20)
    fleet.report(1, at: 20)
    #expect(fleet.probes() == ["200 ok\n", "503 draining\n"])
    #expect(!fleet.board.hasEnded)
  }

  @Test("answers HEAD like GET without the body; other methods and paths are refused")
  func methods() throws {
    let fleet = try QuietFleet()
    for path in ["/livez", "/metrics"] {
      let whole = try #require(fleet.probe.ask(path))
      let head = try #require(fleet.probe.ask(path, method: "HEAD"))
      #expect(head.status == whole.status && head.body.isEmpty)
      #expect(head.headers["content-type"] == whole.headers["content-type"])
      #expect(Int(head.headers["content-length"] ?? "") ?? 0 > 0)
    }
    let ready = try #require(fleet.probe.ask("/readyz", method: "HEAD"))
    #expect(ready.status == 503)
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "BREW"] {
      let answer = try #require(fleet.probe.ask("/livez", method: method))
      #expect(answer.status == 405 && answer.headers["allow"] == "GET, HEAD")
    }
    for path in ["/index.html", "/status", "/health", "/livez/", "/metrics/../livez", "/%2e%2e", "//"] {
      #expect(try #require(fleet.probe.ask(path)).status == 404, "\(path)")
    }
  }

  @Test("isn't held up for long by silent connections")
  func idleConnections() throws {
    let fleet = try QuietFleet()
    let idle = (0..<200).compactMap { _ in fleet.probe.connection() }
    defer { idle.forEach { close($0) } }
    #expect(idle.count == 200)
    let begin = ContinuousClock.now
    #expect(fleet.probe.ask("/livez", seconds: 20)?.status == 200)
    #expect(ContinuousClock.now - begin < .seconds(8))
  }

  @Test("explains an address that can't be listened on, and whether a retry may help")
  func refusedAddresses() throws {
    let fleet = try QuietFleet()
    for (host, port, reason) in [
      ("127.0.0.1", fleet.port, "in use"), ("192.0.2.1", UInt16(9464), "assign requested address"),
    ] {
      let error = #expect(throws: HTTPServerError.self) {
        try MetricsServer(Endpoint(host: host, port: port), fleet.board, version: "1.2.3")
      }
      #expect(error?.isPassing == true && "\(error.map { "\($0)" } ?? "")".contains(reason))
    }
  }
}
