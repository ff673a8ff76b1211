import Foundation
import TestSupport
import Testing

@testable import DeviceRegistry

@Suite("The servers of a PostgreSQL location")
struct PostgresHostTests {
  private func hosts(_ location: String) -> [[String: String]] {
    PostgresHosts(location).attempts.map { Dictionary(uniqueKeysWithValues: $0.map { ($0.name, $0.value) }) }
  }

  @Test("Each server is tried by itself, with its own port, and the location's meaning stays")
  func several() {
    #expect(hosts("postgresql://u@a/d") == [[:]])
    #expect(hosts("postgresql:///d") == [[:]])
    #expect(hosts("postgresql://u@a,b:6000/d") == [["host": "a", "port": ""], ["host": "b", "port": "6000"]])
    #expect(hosts("postgresql://u@a:1,b:2/d").map { $0["port"] } == ["1", "2"])
    #expect(hosts("postgresql://u@/d?host=a,b&port=7") == [["host": "a"], ["host": "b"]])
    #expect(
      hosts("postgresql://u@a,b/d?hostaddr=10.0.0.1,10.0.0.2").map { [$0["host"], $0["hostaddr"]] }
        == [["a", "10.0.0.1"], ["b", "10.0.0.2"]])
    let standby = hosts("postgresql://u@a,b/d?target_session_attrs=prefer-standby")
    #expect(standby.map { $0["host"] } == ["a", "b", "a", "b"])
    #expect(standby.map { $0["target_session_attrs"] } == ["standby", "standby", "any", "any"])
    #expect(hosts("postgresql://u@a,b/d?target_session_attrs=read-write").allSatisfy { $0["target_session_attrs"] == nil })
  }

  @Test(
    "A connection's failure has the meaning of its code; a word before the text is no code",
    arguments: [
      ("FATAL:  28P01: password authentication failed", .unusable(.accessDenied, "")),
      ("FATAL:  sorry, too many clients already", .unavailable(.down, "")),
      ("ERROR:  pgbouncer cannot connect to server", .unavailable(.down, "")),
      ("ERROR:  53300: too many connections", .unavailable(.overloaded, "")),
      ("PANIC:  could not write to the log", .unavailable(.down, "")),
    ] as [(String, RegistryError)])
  func failures(_ message: String, _ expected: RegistryError) {
    let found = PostgresFault.connecting("connection to server at \"h\", port 1 failed: \(message)")
    switch (found, expected) {
    case (.unusable(let kind, _), .unusable(let other, _)): #expect(kind == other)
    case (.unavailable(let kind, _), .unavailable(let other, _)): #expect(kind == other)
    default: Issue.record("\(found)")
    }
  }

  @Test(
    "A remote server is verified unless the location says otherwise; a local one needs no certificate",
    arguments: [
      ("postgresql://u@db.example.com/d", "verify-full"), ("postgresql://u@10.0.0.1/d", "verify-full"),
      ("postgresql://u@[2001:db8::1]/d", "verify-full"), ("postgresql://u@db/d?hostaddr=10.0.0.1", "verify-full"),
      ("postgresql://u@127.0.0.1.example.com/d", "verify-full"), ("postgresql://u@db.example.com/d?sslmode=disable", nil),
      ("postgresql://u@db.example.com/d?sslmode=require", nil), ("postgresql://u@127.0.0.1/d", nil),
      ("postgresql://u@[::1]/d", nil), ("postgresql://u@localhost/d", nil), ("postgresql:///d", nil),
      ("postgresql://u@/d?host=%2Frun%2Fpostgresql", nil), ("postgresql://u@db/d?hostaddr=127.0.0.1", nil),
    ] as [(String, String?)])
  func verification(_ location: String, _ mode: String?) {
    let defaults = PostgresHosts(location).defaults
    #expect(defaults.map { $0.first { $0.name == "sslmode" }?.value } == [mode])
    let authorities = defaults[0].first { $0.name == "sslrootcert" }
    #expect(mode == nil ? authorities == nil : true)
  }

  @Test(
    "A server that never answers doesn't hide the next one, and isn't tried first again",
    .enabled(if: Postgres.shared != nil, "PostgreSQL isn't installed"))
  func silent() throws {
    let server = try #require(try Postgres.shared?.get())
    let silent = try Listening()
    let location = try server.makeDatabase().replacing("host=", with: "host=127.0.0.1,")
      .replacing("port=", with: "port=\(silent.port),")
    var options = StoreOptions(statementTimeout: 2_000)
    options.connectTimeout = 300
    let begun = ContinuousClock.now
    let connection = try PostgresConnection(location: location, options: options)
    #expect(ContinuousClock.now - begun >= .milliseconds(300))
    try connection.execute("SELECT 1")
    let name = location.split(separator: "/")[2].prefix { $0 != "?" }
    try server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'")
    let lost = ContinuousClock.now
    try connection.execute("SELECT 1")
    #expect(ContinuousClock.now - lost < .milliseconds(300))
  }

  @Test("A server without TLS gets no name and no password, unless it is local")
  func noTLS() throws {
    let server = try Listening()
    let words = Collected<Int>()
    let isDone = DispatchSemaphore(value: 0)
    Thread.detachNewThread { [descriptor = server.descriptor] in
      defer { isDone.signal() }
      let client = accept(descriptor, nil, nil)
      guard client >= 0 else { return }
      defer { close(client) }
      var buffer = [UInt8](repeating: 0, count: 256)
      // The client asks for TLS and is refused; then it must send nothing more.
      words.add(read(client, &buffer, buffer.count))
      _ = write(client, "N", 1)
      words.add(read(client, &buffer, buffer.count))
    }
    // A loopback address in an unusual form.
    let location = "postgresql://user:secret@2130706433:\(server.port)/d"
    #expect {
      _ = try PostgresConnection(location: location, options: StoreOptions())
    } throws: {
      "\($0)".contains("SSL")
    }
    isDone.wait()
    #expect(words.all == [8, 0])
  }
}

/// A socket on which nobody accepts.
private final class Listening {
  let descriptor: Int32
  let port: UInt16

  init() throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let descriptor = descriptor
    let isBound = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) == 0 && listen(descriptor, 4) == 0 && getsockname(descriptor, $0, &length) == 0
      }
    }
    guard isBound else { throw TestFailure("no socket: \(errno)") }
    port = UInt16(bigEndian: address.sin_port)
  }

  deinit { close(descriptor) }
}
