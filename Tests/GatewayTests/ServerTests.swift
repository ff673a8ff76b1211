import Foundation
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import StatusHTTP

@Suite("The HTTP server", .serialized)
struct ServerTests {
  /// Answers later, from another thread, with the request's content.
  private final class Echo: Sendable {
    let waiting = Mutex<[(HTTPRequest, HTTPReply)]>([])

    func answerAll() {
      let taken = waiting.withLock { waiting in
        defer { waiting = [] }
        return waiting
      }
      for (request, reply) in taken {
        let text = "\(request.method) \(String(decoding: request.target, as: UTF8.self)) \(request.body.count)"
        reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: text))
        reply.send(HTTPAnswer(status: 500, contentType: "text/plain", body: "only the first counts"))
      }
    }
  }

  /// The answers that the server gave itself.
  private final class Refusals: Sendable {
    let statuses = Mutex<[Int]>([])
  }

  private func serve(_ echo: Echo, _ refusals: Refusals = Refusals(), body: Int = 1_000) throws -> (HTTPServer, UInt16) {
    let port = try FreePorts.take(1)[0]
    let limits = HTTPServerLimits(connections: 64, idle: 5, body: body)
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: limits, headers: ["authorization"],
      refused: { status in refusals.statuses.withLock { $0.append(status) } }
    ) { request, reply in
      echo.waiting.withLock { $0.append((request, reply)) }
      Thread.detachNewThread { echo.answerAll() }
    }
    return (server, port)
  }

  @Test("listens on a name's addresses, like the other doors")
  func name() throws {
    let port = try FreePorts.take(1)[0]
    let limits = HTTPServerLimits(connections: 4, idle: 5, body: 100)
    let server = try HTTPServer(host: "localhost", port: port, limits: limits) { _, reply in
      reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "here\n"))
    }
    defer { server.stop() }
    let program =
      "import urllib.request; print(urllib.request.urlopen('http://localhost:\(port)/', timeout=60).read().decode(), end='')"
    #expect(try ChildProcess.run(["/usr/bin/python3", "-c", program]) == (0, "here\n"))
  }

  @Test("knows which peers are on this machine")
  func peers() {
    let peers = ["127.0.0.1", "127.8.0.1", "::1", "::ffff:127.0.0.1", "10.0.0.1", "::ffff:10.0.0.1", "1270.0.0.1", "::11", ""]
    #expect(peers.map { HTTPServer.isLoopback(Array($0.utf8)) } == [true, true, true, true, false, false, false, false, false])
  }

  @Test("serves pages on loopback only under an address or localhost; elsewhere under any name")
  func misled() throws {
    let names = [
      "127.0.0.1:9464": 200, "localhost:9464": 200, "LocalHost": 200, "[::1]:9464": 200, "10.0.0.1": 200, "evil.example": 421,
      "evil.example:9464": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example": 421, "": 200,
    ]
    for listener in ["127.0.0.1", "localhost", "0.0.0.0"] {
      let port = try FreePorts.take(1)[0]
      let server = try HTTPServer(host: listener, port: port) { _, _, reply in
        reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "figures\n"))
      }
      defer { server.stop() }
      for (name, status) in names {
        let answer = HTTPProbe(port: port).say("GET /status.json HTTP/1.1\r\nHost: \(name)\r\nConnection: close\r\n\r\n")
        #expect(answer?.status == (listener == "0.0.0.0" ? 200 : status), "\(listener), \(name)")
      }
    }
  }

  @Test("passes a complete request with its target unchanged, and accepts the answer from any thread")
  func whole() throws {
    let (server, port) = try serve(Echo())
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    let body = String(repeating: "x", count: 1_000)
    #expect(probe.ask("/a%2Fb?c=%20d", method: "PUT", body: body)?.body == "PUT /a%2Fb?c=%20d 1000")
    #expect(probe.ask("/", method: "DELETE")?.body == "DELETE / 0")
    let chunks =
      "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"
    #expect(probe.say(chunks)?.body == "POST / 5")
    let two = "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
    #expect(probe.say(two)?.body.contains("GET /2 0") == true)
  }

  @Test("limits incomplete bodies together: the oldest large one is closed, never a small one")
  func unfinished() throws {
    let length = 4 << 20
    let (server, port) = try serve(Echo(), body: length)
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    let head = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: \(length)\r\n\r\n"
    let small = Array((head + String(repeating: "x", count: 1_000)).utf8)
    let almost = Array((head + String(repeating: "x", count: length - 1)).utf8)
    var open: [Int32] = []
    defer { for descriptor in open { close(descriptor) } }
    // Small ones, and twice as many large ones as fit.
    for number in 0..<34 {
      let descriptor = try #require(probe.connection(seconds: 30))
      open.append(descriptor)
      let bytes = number < 2 ? small : almost
      #expect(send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
    }
    var byte: UInt8 = 0x78
    // The first large one has been closed.
    #expect(recv(open[2], &byte, 1, 0) <= 0)
    // New connections find room, and so do small and recent ones.
    #expect(probe.ask("/", method: "POST", body: String(repeating: "x", count: length))?.status == 200)
    #expect(probe.ask("/", method: "POST", body: "x")?.status == 200)
    for index in [0, 33] {
      let rest = [UInt8](repeating: 0x78, count: index == 0 ? length - 1_000 : 1)
      #expect(send(open[index], rest, rest.count, Int32(MSG_NOSIGNAL)) == rest.count)
      var answer = [UInt8](repeating: 0, count: 12)
      #expect(recv(open[index], &answer, 12, Int32(MSG_WAITALL)) == 12)
      #expect(String(decoding: answer, as: UTF8.self) == "HTTP/1.1 200")
    }
  }

  @Test("drops a large body that the headers make useless, and passes the request when it is complete")
  func unkept() throws {
    let port = try FreePorts.take(1)[0]
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: HTTPServerLimits(connections: 64, idle: 5, body: 1 << 20),
      headers: ["authorization"], keeps: { $0["authorization"] != nil }
    ) { request, reply in
      reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "\(request.body.count)"))
    }
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    let large = String(repeating: "x", count: 100_000)
    #expect(probe.ask("/", method: "POST", body: large)?.body == "0")
    #expect(probe.ask("/", method: "POST", headers: ["Authorization": "a"], body: large)?.body == "100000")
    #expect(probe.ask("/", method: "POST", body: "small")?.body == "5")
    let chunks = "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    #expect(probe.say(chunks)?.body == "0")
  }

  @Test("refuses a body that is too long, announced or not, and malformed HTTP, and continues")
  func refused() throws {
    let refusals = Refusals()
    let (server, port) = try serve(Echo(), refusals)
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    #expect(probe.ask("/", method: "POST", body: String(repeating: "x", count: 1_001))?.status == 413)
    let chunk = String(repeating: "x", count: 0x600)
    let long = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n600\r\n\(chunk)\r\n0\r\n\r\n"
    #expect(probe.say(long)?.status == 413)
    #expect(refusals.statuses.withLock(\.self) == [413, 413])
    for text in [
      "\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\n",
      "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999\r\n\r\n",
    ] {
      #expect(isRefused(probe, text, [400, 413]), "\(text.debugDescription)")
    }
    for length in ["9223372036854775807", "9223372036854775808", "4611686018427387904"] {
      #expect(probe.say("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: \(length)\r\n\r\n")?.status == 413, "\(length)")
    }
    let headers = (0..<100).map { "X-\($0): \(String(repeating: "y", count: 400))\r\n" }.joined()
    #expect(isRefused(probe, "GET / HTTP/1.1\r\nHost: h\r\n\(headers)\r\n", [413, 431]))
    #expect(probe.ask("/")?.status == 200)
  }

  /// Answered with one of these statuses, or closed.
  private func isRefused(_ probe: HTTPProbe, _ text: String, _ statuses: Set<Int>) -> Bool {
    switch probe.outcome(of: text) {
    case .answer(let answer): statuses.contains(answer.status)
    case .closed: true
    case .silence: false
    }
  }

  @Test("closes the longest silent connection at the limit, and none whose answer is awaited")
  func room() throws {
    let port = try FreePorts.take(1)[0]
    let held = Mutex<[HTTPReply]>([])
    let limits = HTTPServerLimits(connections: 8, idle: 60, body: 1_000)
    let server = try HTTPServer(host: "127.0.0.1", port: port, limits: limits) { request, reply in
      if request.target == Array("/later".utf8) { return held.withLock { $0.append(reply) } }
      reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "now"))
    }
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    let waits = try #require(probe.connection())
    defer { close(waits) }
    let request = Array("GET /later HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    #expect(send(waits, request, request.count, 0) == request.count)
    while held.withLock(\.isEmpty) { sched_yield() }
    // Silent, or with half a request.
    var silent: [Int32] = []
    defer { for raw in silent { close(raw) } }
    for number in 0..<300 {
      let raw = try #require(probe.connection(seconds: 5), "connection \(number)")
      if number % 2 == 0 { send(raw, request, 9, Int32(MSG_NOSIGNAL)) }
      silent.append(raw)
    }
    #expect(probe.ask("/", seconds: 2)?.body == "now")
    var byte: UInt8 = 0
    #expect(recv(silent[0], &byte, 1, 0) == 0)
    #expect(recv(silent[299], &byte, 1, Int32(MSG_DONTWAIT)) == -1 && errno == EAGAIN)
    for reply in held.withLock(\.self) { reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "later")) }
    #expect(recv(waits, &byte, 1, 0) == 1 && byte == UInt8(ascii: "H"))
  }

  @Test("closes a connection whose request takes too long to arrive, however steadily", arguments: [false, true])
  func slow(isDriven: Bool) throws {
    let port = try FreePorts.take(1)[0]
    let limits = HTTPServerLimits(connections: 8, idle: 60, body: 1_000, requestSeconds: 1)
    let held = Mutex<[HTTPReply]>([])
    let server = try HTTPServer(host: "127.0.0.1", port: port, limits: limits, isDriven: isDriven) { _, reply in
      held.withLock { $0.append(reply) }
    }
    defer { server.stop() }
    let probe = HTTPProbe(port: port)
    func turn() { while isDriven, server.turn() {} }
    // A connection whose answer is awaited may be silent.
    let patient = try #require(probe.connection())
    defer { close(patient) }
    let whole = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    send(patient, whole, whole.count, 0)
    #expect(
      eventually {
        turn()
        return !held.withLock(\.isEmpty)
      })
    let beginnings = ["", "GET / HTTP/1.1\r\nX: ", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 900\r\n\r\n"]
    var open: [(beginning: String, client: Int32)] = []
    defer { for (_, client) in open { close(client) } }
    for beginning in beginnings {
      let client = try #require(probe.connection())
      open.append((beginning, client))
      let bytes = Array(beginning.utf8)
      send(client, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }
    let isClosed = eventually(seconds: 30) {
      turn()
      open.removeAll { _, client in
        var byte = UInt8(ascii: "y")
        send(client, &byte, 1, Int32(MSG_NOSIGNAL))
        guard recv(client, &byte, 1, Int32(MSG_DONTWAIT)) >= 0 || errno != EAGAIN else { return false }
        close(client)
        return true
      }
      server.endSlow()
      return open.isEmpty
    }
    #expect(isClosed, "\(open.map(\.beginning))")
    for reply in held.withLock(\.self) { reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "x")) }
    var byte: UInt8 = 0
    let isAnswered = eventually {
      turn()
      return recv(patient, &byte, 1, Int32(MSG_DONTWAIT)) == 1
    }
    #expect(isAnswered && byte == UInt8(ascii: "H"))
  }

  @Test("does nothing outside its owner's turns")
  func driven() throws {
    let port = try FreePorts.take(1)[0]
    let held = Mutex<[HTTPReply]>([])
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: HTTPServerLimits(connections: 8, idle: 5, body: 10), isDriven: true
    ) { _, reply in held.withLock { $0.append(reply) } }
    defer { server.stop() }
    let client = try #require(HTTPProbe(port: port).connection(seconds: 5))
    defer { close(client) }
    let request = Array("GET / HTTP/1.1\r\nHost: h\r\n\r\n".utf8)
    send(client, request, request.count, 0)
    var wait = pollfd(fd: server.descriptor, events: Int16(POLLIN), revents: 0)
    while held.withLock(\.isEmpty) {
      #expect(poll(&wait, 1, 5_000) == 1)
      while server.turn() {}
    }
    #expect(!server.hasAnswers && server.waiting == 1)
    held.withLock { $0[0].send(HTTPAnswer(status: 200, contentType: "text/plain", body: "x")) }
    #expect(server.hasAnswers)
    while server.turn() {}
    var byte: UInt8 = 0
    #expect(recv(client, &byte, 1, 0) == 1 && server.waiting == 0)
  }

  @Test("answers open requests with 503 when it stops")
  func stopped() throws {
    let port = try FreePorts.take(1)[0]
    let isAsked = Mutex(false)
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: HTTPServerLimits(connections: 8, idle: 5, body: 10)
    ) { _, reply in isAsked.withLock { $0 = true } }
    let status = Mutex<Int?>(nil)
    let group = DispatchGroup()
    DispatchQueue.global().async(group: group) {
      let answer = HTTPProbe(port: port).ask("/")?.status
      status.withLock { $0 = answer }
    }
    while !isAsked.withLock(\.self) { sched_yield() }
    server.stop()
    group.wait()
    #expect(status.withLock(\.self) == 503)
    #expect(HTTPProbe(port: port).ask("/", seconds: 1) == nil)
  }
}
