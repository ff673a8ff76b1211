import MachineDriver
import Reactor
import Simulator
import TestSupport
import Testing
import Wire

@Suite struct HTTP1ConnectionTests {
  private let now = MonotonicTime(nanoseconds: 1_000_000_000)

  private func connect(_ script: String = "{}") throws -> (service: WebPushService, driver: MachineDriver) {
    var configuration = WebPushConfiguration()
    configuration.isHTTP1 = true
    configuration.script = try Script(parsing: Array(script.utf8))
    let service = WebPushService(
      configuration: configuration, journal: try Journal(keepsEntries: true),
      time: Turn(now: now, wallClock: 1_764_000_000_000))
    let driver = MachineDriver(service.accept())
    driver.open(at: now)
    return (service, driver)
  }

  /// A push without a token, which a server for UnifiedPush takes.
  private func request(_ id: String = "a", _ text: String = "hi", headers: String = "") throws -> [UInt8] {
    let path = "/up/\(id)"
    let body = try WebPushTalk.encrypted(text, for: path)
    let head =
      "POST \(path) HTTP/1.1\r\nHost: push.test\r\nTTL:  60 \r\nContent-Encoding: aes128gcm\r\nContent-Length: \(body.count)\r\n\(headers)\r\n"
    return Array(head.utf8) + body
  }

  private func answers(_ driver: MachineDriver) -> String {
    let text = String(decoding: driver.collect(at: now), as: UTF8.self)
    driver.settle(at: now)
    return text
  }

  @Test("Requests follow one another on a connection, in pieces of any size", arguments: [1, 7, 10_000])
  func keepsAlive(_ size: Int) throws {
    let (service, driver) = try connect()
    let bytes = try request("a", "one") + request("b", "two")
    for start in stride(from: 0, to: bytes.count, by: size) {
      driver.receive(Array(bytes[start..<min(start + size, bytes.count)]), at: now)
    }
    let text = answers(driver)
    #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") && text.components(of: "HTTP/1.1 200 OK") == 2 && driver.end == nil)
    #expect(service.journal.entries.map(\.payload) == [Array("one".utf8), Array("two".utf8)])
    #expect(service.journal.entries.map(\.stream) == [1, 2] && service.journal.entries[0].header("ttl") == "60")
  }

  @Test("The client may end the connection with a request")
  func closes() throws {
    let (service, driver) = try connect()
    driver.receive(try request(headers: "Connection: close\r\n"), at: now)
    #expect(answers(driver).contains("connection: close\r\n") && driver.end == .closedLocally && service.openConnections == 0)
  }

  @Test(
    "Faults are those of a connection with one stream",
    arguments: [
      (#"{"a": {"goaway": true}}"#, "200 OK"), (#"{"a": {"refuse": true}}"#, ""), (#"{"a": {"close": true}}"#, ""),
      (#"{"a": {"goaway": {"last": "previous"}}}"#, ""),
    ])
  func faults(_ script: String, _ answer: String) throws {
    let (service, driver) = try connect(script)
    driver.receive(try request(), at: now)
    let text = answers(driver)
    #expect(answer.isEmpty ? text.isEmpty : text.contains(answer))
    #expect(driver.end == .closedLocally && service.openConnections == 0)
  }

  @Test("An answer may be late or never come, and no other comes before it")
  func stalls() throws {
    let (service, driver) = try connect(#"{"a": {"stall": true}}"#)
    driver.receive(try request("a") + request("b"), at: now)
    #expect(answers(driver).isEmpty && driver.end == nil && service.journal.count == 1)
  }

  @Test(
    "What is no request ends the connection",
    arguments: [
      ("hello\r\n\r\n", "400"), ("POST /up/a HTTP/1.0\r\n\r\n", "400"), ("POST /up/a HTTP/1.1\r\n: x\r\n\r\n", "400"),
      ("POST /up/a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411"),
      ("POST /up/a HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "413"),
      ("POST /up/a HTTP/1.1\r\nContent-Length: 99999\r\n\r\n", "413"),
      (String(repeating: "a", count: 20_000), "431"),
    ])
  func malformed(_ text: String, _ status: String) throws {
    let (service, driver) = try connect()
    driver.receive(Array(text.utf8), at: now)
    #expect(answers(driver).hasPrefix("HTTP/1.1 \(status) ") && driver.end == .closedLocally)
    #expect(service.journal.violations.count == 1 && service.journal.count == 0)
  }
}

extension String {
  fileprivate func components(of part: String) -> Int { ranges(of: part).count }
}
