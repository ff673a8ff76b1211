import Glibc
import StatusHTTP
import Synchronization
import TestSupport
import Testing

@Suite("A request's length by its headers", .serialized)
struct FramingTests {
  private final class Seen: Sendable {
    let requests = Mutex<[HTTPRequest]>([])
    let refusals = Mutex<[Int]>([])
  }

  private func serve(_ seen: Seen) throws -> (HTTPServer, HTTPProbe) {
    let port = try FreePorts.take(1)[0]
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: HTTPServerLimits(connections: 64, idle: 5, body: 1_000),
      headers: ["authorization", "x-last"], refused: { status in seen.refusals.withLock { $0.append(status) } }
    ) { request, reply in
      seen.requests.withLock { $0.append(request) }
      reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "taken"))
    }
    return (server, HTTPProbe(port: port))
  }

  static let ambiguous: [(what: String, head: String)] = [
    ("two lengths", "Host: h\r\nContent-Length: 3\r\nContent-Length: 5\r\n"),
    ("one length twice", "Host: h\r\nContent-Length: 3\r\nContent-Length: 3\r\n"),
    ("a list of lengths", "Host: h\r\nContent-Length: 3, 3\r\n"),
    ("a length with a sign", "Host: h\r\nContent-Length: +3\r\n"),
    ("a length and chunks", "Host: h\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n"),
    ("chunks and a length", "Host: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n"),
    ("chunks twice", "Host: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n"),
    ("another encoding", "Host: h\r\nTransfer-Encoding: xchunked\r\n"),
    ("no encoding", "Host: h\r\nTransfer-Encoding: identity\r\n"),
    ("two encodings", "Host: h\r\nTransfer-Encoding: chunked, identity\r\n"),
    ("a space before the colon", "Host: h\r\nTransfer-Encoding : chunked\r\n"),
    ("a tab before the colon", "Host: h\r\nTransfer-Encoding\t: chunked\r\n"),
    ("a folded line", "Host: h\r\nTransfer-Encoding:\r\n chunked\r\n"),
    ("a folded line at the end", "Host: h\r\nX-Last: a\r\n b\r\n"),
    ("no host", "X-Last: a\r\n"),
    ("two hosts", "Host: h\r\nHost: i\r\n"),
    ("two credentials", "Host: h\r\nAuthorization: key=a\r\nAuthorization: key=b\r\n"),
    ("a NUL", "Host: h\r\nAuthorization: key=a\0b\r\nX-Last: a\r\n"),
    ("a NUL in the last header", "Host: h\r\nAuthorization: key=a\0b\r\n"),
    ("a lone CR", "Host: h\r\nX-Other: a\rTransfer-Encoding: chunked\r\n"),
    ("a lone CR in the last header", "Host: h\r\nX-Last: a\rb: c\r\n"),
    ("a lone LF", "Host: h\r\nX-Other: a\nX-Last: b\r\n"),
    ("a lone LF at the end", "Host: h\r\nX-Last: b\n"),
    ("a control character", "Host: h\r\nX-Last: a\u{1}b\r\n"),
  ]

  @Test("is 400 and the end of the connection if it can be read in two ways", arguments: FramingTests.ambiguous.indices)
  func twoWays(_ index: Int) throws {
    let seen = Seen()
    let (server, probe) = try serve(seen)
    defer { server.stop() }
    let (what, head) = Self.ambiguous[index]
    // A reader that ends this request earlier would take the rest for another request.
    let answer = probe.say("POST / HTTP/1.1\r\n\(head)\r\n3\r\nabc\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer?.status == 400, "\(what)")
    #expect(answer?.headers["connection"]?.lowercased() == "close", "\(what)")
    #expect(seen.requests.withLock(\.count) == 0, "\(what)")
    #expect(probe.ask("/")?.status == 200)
  }

  @Test(
    "also needs a first line with one reading: else 400 or the end of the connection, another version 505",
    arguments: [
      ("GET / HTTP/1.1\n", 400), ("GET  / HTTP/1.1\r\n", 400), ("GET /?a=b HTTP/1.1\n", 400), ("GET / HTTP/1.1 \r\n", 400),
      ("GET /  HTTP/1.1\r\n", nil), ("GET /a b HTTP/1.1\r\n", nil), ("GET / HTTP/1.11\r\n", 400), ("GET / HTTP/1.2\r\n", 505),
    ] as [(String, Int?)])
  func firstLine(_ line: String, _ status: Int?) throws {
    let seen = Seen()
    let (server, probe) = try serve(seen)
    defer { server.stop() }
    let answer = probe.say(line + "Host: h\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer?.status == status && answer?.headers["connection"]?.lowercased() == (status == nil ? nil : "close"))
    #expect(seen.requests.withLock(\.count) == 0)
    for line in ["GET /?a=%20b& HTTP/1.1", "GET /%41 HTTP/1.1", "\r\nGET / HTTP/1.1"] {
      #expect(probe.say(line + "\r\nHost: h\r\nConnection: close\r\n\r\n")?.status == 200, "\(line)")
    }
  }

  @Test(
    "ends the body after its chunks, so that nothing behind them is a request",
    arguments: ["3\r\n", "3;a\r\n", "3;a\n", "3\n", "3;\r"], ["abc\r\n0\r\n\r\n", "abc\n0\n\n", "abc\r\n0\r\nX: y\n\n"])
  func chunks(_ size: String, _ rest: String) throws {
    let seen = Seen()
    let (server, probe) = try serve(seen)
    defer { server.stop() }
    let body = size + rest
    let answer = probe.say(
      "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\(body)GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n")
    #expect(answer?.headers["connection"]?.lowercased() == "close", "\(body.debugDescription)")
    #expect(!seen.requests.withLock { $0.contains { $0.target == Array("/smuggled".utf8) } }, "\(body.debugDescription)")
  }

  @Test("is accepted in its only reading, in pieces of any size, with headers in any order")
  func clear() throws {
    let seen = Seen()
    let (server, probe) = try serve(seen)
    defer { server.stop() }
    let many = (0..<60).map { "X-\($0): \(String(repeating: "y", count: $0))\r\n" }.joined()
    let heads = [
      "Host: h\r\nContent-Length: 3\r\nX-Last:\r\n\r\nabc", "Content-Length: 3\r\nX-Last:  a \t\r\nHost: h\r\n\r\nabc",
      "Transfer-Encoding: Chunked\r\nHost: h\r\n\r\n3\r\nabc\r\n0\r\n\r\n", many + "Host: h\r\nContent-Length: 3\r\n\r\nabc",
      "Host: h\r\nCookie: a=b; c=d\r\nContent-Length: 3\r\n\r\nabc",
    ]
    for head in heads {
      let text = Array("POST /?a=b HTTP/1.1\r\nConnection: close\r\n\(head)".utf8)
      for size in [1, 7, text.count] {
        let descriptor = try #require(probe.connection(seconds: 10))
        defer { close(descriptor) }
        var one: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, socklen_t(MemoryLayout<Int32>.size))
        for start in stride(from: 0, to: text.count, by: size) {
          let piece = Array(text[start..<min(start + size, text.count)])
          #expect(send(descriptor, piece, piece.count, Int32(MSG_NOSIGNAL)) == piece.count)
        }
        var answer = [UInt8](repeating: 0, count: 12)
        #expect(recv(descriptor, &answer, 12, Int32(MSG_WAITALL)) == 12)
        #expect(String(decoding: answer, as: UTF8.self) == "HTTP/1.1 200", "\(head.debugDescription)")
      }
    }
    #expect(Set(seen.requests.withLock { $0.map(\.body) }) == [Array("abc".utf8)])
    #expect(probe.say("GET / HTTP/1.0\r\n\r\n")?.status == 200)
  }

  @Test("doesn't include spaces after a header's value")
  func trimmed() throws {
    let seen = Seen()
    let (server, probe) = try serve(seen)
    defer { server.stop() }
    #expect(probe.ask("/", headers: ["Authorization": "key=a b \t "])?.status == 200)
    #expect(seen.requests.withLock { $0.map { $0.headers["authorization"] } } == [Array("key=a b".utf8)])
  }

  @Test("that is too large lets the body be read to its end, so that the answer arrives, unless the sender asks first")
  func tooLong() throws {
    let refusals = Mutex<[Int]>([])
    let port = try FreePorts.take(1)[0]
    let server = try HTTPServer(
      host: "127.0.0.1", port: port, limits: HTTPServerLimits(connections: 64, idle: 5, body: 1_000), isDriven: true,
      refused: { status in refusals.withLock { $0.append(status) } }
    ) { _, reply in reply.send(HTTPAnswer(status: 200, contentType: "text/plain", body: "taken")) }
    defer { server.stop() }
    let descriptor = try #require(HTTPProbe(port: port).connection())
    defer { close(descriptor) }
    func say(_ text: String) {
      #expect(send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
      var wait = pollfd(fd: server.descriptor, events: Int16(POLLIN), revents: 0)
      #expect(poll(&wait, 1, 5_000) == 1)
      while server.turn() {}
    }
    var answer = [UInt8](repeating: 0, count: 1_000)
    // No unread bytes are left that would reset the connection before the answer is read.
    let head = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4000\r\n"
    say(head + "\r\n" + String(repeating: "x", count: 3_999))
    #expect(recv(descriptor, &answer, answer.count, Int32(MSG_DONTWAIT)) == -1 && errno == EAGAIN)
    #expect(refusals.withLock(\.count) == 0)
    say("x")
    #expect(recv(descriptor, &answer, answer.count, 0) > 12)
    #expect(String(decoding: answer.prefix(12), as: UTF8.self) == "HTTP/1.1 413")
    let others = [head + "Expect: 100-continue\r\n\r\n", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4001\r\n\r\n"]
    for (index, text) in others.enumerated() {
      let descriptor = try #require(HTTPProbe(port: port).connection())
      defer { close(descriptor) }
      send(descriptor, text, text.utf8.count, Int32(MSG_NOSIGNAL))
      var wait = pollfd(fd: server.descriptor, events: Int16(POLLIN), revents: 0)
      while refusals.withLock(\.count) < index + 2, poll(&wait, 1, 5_000) == 1 { while server.turn() {} }
      #expect(recv(descriptor, &answer, answer.count, 0) > 12)
      #expect(String(decoding: answer.prefix(12), as: UTF8.self) == "HTTP/1.1 413")
    }
    #expect(refusals.withLock(\.self) == [413, 413, 413])
  }
}
