import HTTP2
import Reactor
import TLS
import TestSupport
import Testing
import Wire

@Suite("A server that has only HTTP/1.1")
struct HTTP1Tests {
  typealias Victim = HostileServerTests.Victim

  static let configuration = ClientConfiguration.with {
    $0.allowsHTTP1 = true
    $0.keptResponseHeaders = ["retry-after"]
    $0.requestTimeout = 10
  }

  /// A client that has `count` requests open: one at most.
  static func victim(_ count: Int = 1, _ change: (inout ClientConfiguration) -> Void = { _ in }) -> Victim {
    var configuration = configuration
    change(&configuration)
    return Victim(requests: count, settings: [], configuration: configuration, applicationProtocol: "http/1.1")
  }

  /// Submits a request of 300,000 bytes and writes once.
  /// - Returns: how many bytes were written.
  static func beginLargeRequest(_ victim: Victim) -> Int {
    var values = HeaderValues()
    let template = HeaderTemplate(constant: [(":method", "POST"), (":path", "/"), (":authority", "h")], variable: [])
    victim.session.submit(template, body: [UInt8](repeating: 0x41, count: 300_000), tag: 0, &values)
    var buffer = OutputBuffer()
    victim.session.writeOutput(to: &buffer, at: victim.now)
    return buffer.count
  }

  static let ok = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"

  @Test(
    "is spoken to in its protocol if that is allowed; every other server in HTTP/2",
    arguments: [("http/1.1", true), ("", true), ("h2", false), (nil, false)] as [(String?, Bool)])
  func negotiation(_ selected: String?, _ isPlain: Bool) {
    for isAllowed in [true, false] {
      let victim = Victim(
        requests: 1, settings: [], configuration: .with { $0.allowsHTTP1 = isAllowed }, applicationProtocol: selected)
      #expect(victim.driver.transcript.starts(with: (isPlain && isAllowed ? "POST /" : "PRI * HTTP/2.0").utf8))
      #expect(victim.recorder.readyCount == (isPlain && isAllowed ? 1 : 0))
    }
  }

  @Test("gets the request line, Host, the headers and the body")
  func request() {
    let victim = Self.victim()
    #expect(
      String(decoding: victim.driver.transcript, as: UTF8.self)
        == "POST /3/device/00 HTTP/1.1\r\nHost: push.test\r\napns-topic: com.example.app\r\nauthorization: bearer abc\r\n"
        + "apns-id: id\r\ncontent-length: 2\r\n\r\n{}")
  }

  @Test("gets no header that a value smuggles in, and one length")
  func smuggling() {
    let victim = Self.victim(0)
    var values = HeaderValues()
    for text in ["/a\r\nx: y", "b\nc", "99"] { values.append(text.utf8) }
    let template = HeaderTemplate(
      constant: [(":method", "POST"), (":authority", "h")], variable: [":path", "topic", "content-length"])
    victim.session.submit(template, body: [], tag: 0, &values)
    #expect(victim.flush() == Array("POST /a  x: y HTTP/1.1\r\nHost: h\r\ntopic: b c\r\ncontent-length: 0\r\n\r\n".utf8))
  }

  @Test("gets a body of any size")
  func largeBody() {
    let victim = Self.victim(0)
    var values = HeaderValues()
    let template = HeaderTemplate(constant: [(":method", "POST"), (":path", "/"), (":authority", "h")], variable: [])
    #expect(victim.session.sendableStreams == 1)
    victim.session.submit(template, body: [UInt8](repeating: 0x41, count: 300_000), tag: 0, &values)
    #expect(victim.flush().suffix(300_000).allSatisfy { $0 == 0x41 })
    victim.feed(Self.ok)
    #expect(victim.recorder.answers[0]?.status == 201 && victim.session.availableStreams == 1)
  }

  // MARK: Answers

  struct Answer: CustomTestStringConvertible {
    var text: String
    var status = 200
    var body = ""
    var retryAfter: String?
    var keepsConnection = true
    var testDescription: String { String(text.prefix(80)).debugDescription }
  }

  static let answers = [
    Answer(text: ok, status: 201),
    Answer(text: "HTTP/1.1 200\nRETRY-AFTER: \t 60 \t\nContent-Length:2\n\n{}", body: "{}", retryAfter: "60"),
    Answer(text: "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", status: 204),
    Answer(text: "HTTP/1.1 304 \r\n\r\n", status: 304),
    Answer(
      text: "HTTP/1.1 410 Gone\r\nX: y: z\r\nEmpty:\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n\r\n\r", status: 410,
      body: "\r\n\r"),
    Answer(
      text: "HTTP/1.1 429 Slow down, please\r\nTransfer-Encoding: Chunked\r\nRetry-After: 7\r\n\r\n"
        + "2;a=b\r\nab\r\n00A \r\n0123456789\r\n0\r\nRetry-After: 9\r\n\r\n", status: 429, body: "ab0123456789", retryAfter: "7"
    ),
    Answer(text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\ntransfer-encoding: br, chunked\r\n\r\n0\r\n\r\n"),
    Answer(
      text:
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nContent-Length: 9\r\nRetry-After: 1\r\nConnection: close\r\n\r\n"
        + ok,
      status: 201),
    Answer(
      text: "HTTP/1.1 200 OK\r\nConnection: Upgrade, CLOSE\r\nContent-Length: 1\r\n\r\nx", body: "x", keepsConnection: false),
    Answer(text: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\nx", body: "x", keepsConnection: false),
    Answer(
      text: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 100\r\n\r\n1\r\nx\r\n0\r\n\r\n", body: "x",
      keepsConnection: false),
    Answer(text: ok + "\r\n", status: 201, keepsConnection: false),
    Answer(text: ok + ok, status: 201, keepsConnection: false),
  ]

  @Test("answers each request once, in any division of its bytes", arguments: answers, [1, 2, 7, 10_000])
  func answered(_ answer: Answer, _ cut: Int) {
    let victim = Self.victim()
    victim.feed(answer.text, cut: cut)
    let response = victim.recorder.answers[0]
    #expect(response?.status == answer.status)
    #expect(response.map { String(decoding: $0.body, as: UTF8.self) } == answer.body)
    #expect(response?.header(0) == answer.retryAfter.map { Array($0.utf8) })
    #expect(victim.recorder.ends == [0])
    #expect((victim.driver.end == nil) == answer.keepsConnection)
    #expect(victim.recorder.drainCount == (answer.keepsConnection ? 0 : 1))
    #expect(victim.recorder.failures.isEmpty && victim.recorder.end == (answer.keepsConnection ? nil : .closedLocally))
  }

  @Test("ends a body without a length by closing", arguments: ["", "Transfer-Encoding: gzip\r\n"])
  func closeDelimited(_ header: String) {
    let victim = Self.victim()
    victim.feed("HTTP/1.1 200 OK\r\n\(header)\r\nto the ", cut: 1)
    victim.feed("end", cut: 1)
    #expect(victim.recorder.ends.isEmpty)
    victim.finish()
    #expect(victim.recorder.answers[0]?.body == Array("to the end".utf8))
    #expect(victim.recorder.end == .closedByPeer)
  }

  @Test("that ends its connection is told of after its answer, and gets no further request")
  func announcedClose() {
    let victim = Self.victim()
    var drained: Int?
    victim.recorder.onAnswer = { [unowned victim] _ in
      drained = victim.recorder.drainCount
      #expect(victim.session.availableStreams == 0)
    }
    victim.feed("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
    #expect(drained == 0 && victim.recorder.drainCount == 1)
  }

  @Test("keeps its connection for one request after another")
  func keepAlive() {
    let victim = Self.victim(0)
    var next = 0
    victim.recorder.onAvailable = { [unowned victim] in
      guard next < 100 else { return }
      #expect(victim.session.availableStreams == 1 && victim.session.sendableStreams == 1)
      victim.submit(next)
      next += 1
      #expect(victim.session.availableStreams == 0 && victim.session.activeStreams == 1)
    }
    victim.recorder.onAvailable?()
    for tag in 0..<100 {
      #expect(victim.flush().starts(with: "POST /".utf8) || tag > 0)
      victim.feed(Self.ok)
    }
    #expect(victim.recorder.ends == Array(0..<100) && victim.recorder.answers.values.allSatisfy { $0.status == 201 })
    #expect(victim.recorder.readyCount == 1 && victim.session.remoteStreamLimit == 1)
  }

  // MARK: Time

  @Test("is not asked for signs of life, and has no deadline while nothing is asked")
  func idle() {
    let victim = Self.victim()
    victim.feed(Self.ok)
    #expect(victim.session.deadline == .distantFuture)
    victim.wait(100_000)
    #expect(victim.feed("").isEmpty && victim.driver.end == nil)
  }

  @Test("that doesn't answer in time loses its connection; the request may have been processed")
  func timeout() {
    let victim = Self.victim()
    victim.feed("HTTP/1.1 20")
    victim.wait(9.9)
    #expect(victim.recorder.ends.isEmpty)
    victim.recorder.onFailure = { [unowned victim] _ in #expect(victim.session.availableStreams == 0) }
    victim.wait(0.2)
    #expect(victim.recorder.failures == [0: .unknown(.timedOut)])
    #expect(victim.driver.end == .closedLocally && victim.recorder.end == .closedLocally)
  }

  @Test(
    "that doesn't end its answer has answered all the same",
    arguments: ["Content-Length: 9\r\n\r\nab", "\r\nab", "Transfer-Encoding: chunked\r\n\r\n4\r\nab"])
  func endlessAnswer(_ rest: String) {
    for isClosed in [true, false] {
      let victim = Self.victim()
      victim.feed("HTTP/1.1 410 Gone\r\n" + rest)
      #expect(victim.recorder.ends.isEmpty)
      victim.recorder.onAnswer = { [unowned victim] _ in #expect(victim.session.availableStreams == 0) }
      if isClosed { victim.driver.finish(.failed("reset"), at: victim.now) } else { victim.wait(10) }
      #expect(victim.recorder.answers[0]?.status == 410 && victim.recorder.answers[0]?.body == Array("ab".utf8))
      #expect(victim.recorder.ends == [0] && victim.recorder.end != nil)
    }
  }

  // MARK: Ends

  @Test("that closes: what was passed on is unknown, what was not is safe", arguments: [true, false])
  func connectionLost(_ isSent: Bool) {
    let victim = Self.victim()
    victim.feed(Self.ok)
    victim.submit(1)
    if isSent { victim.flush() }
    victim.finish()
    #expect(victim.recorder.failures == [1: isSent ? .unknown(.connectionLost) : .notProcessed(.neverSent)])
    #expect(victim.recorder.end == .closedByPeer)
  }

  @Test("that speaks before it is asked is left, and what waits for it is safe", arguments: [true, false])
  func unaskedFor(_ isWaiting: Bool) {
    let victim = Self.victim()
    victim.feed(Self.ok)
    if isWaiting { victim.submit(1) }
    victim.recorder.onFailure = { [unowned victim] _ in #expect(victim.session.availableStreams == 0) }
    victim.driver.receive(Array("HTTP/1.1 408 Request Timeout\r\n\r\n".utf8), at: victim.now)
    let written = victim.flush()
    #expect(written.isEmpty && victim.recorder.end == .closedLocally)
    #expect(victim.recorder.failures == (isWaiting ? [1: .notProcessed(.neverSent)] : [:]))
  }

  @Test("is left at once when the session drains, or after its answer", arguments: [0, 1])
  func drain(_ open: Int) {
    let victim = Self.victim(open)
    victim.session.drain()
    victim.flush()
    #expect((victim.recorder.end != nil) == (open == 0))
    victim.feed(Self.ok)
    #expect(victim.recorder.answers.count == open && victim.recorder.end == .closedLocally)
    #expect(victim.recorder.drainCount == 1)
  }

  @Test("may answer before the request is whole; the rest is not sent, and no request follows")
  func earlyAnswer() {
    let victim = Self.victim(0)
    let sent = Self.beginLargeRequest(victim)
    #expect(sent < 70_000)
    #expect(victim.feed("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n").isEmpty)
    #expect(victim.recorder.answers[0]?.status == 413 && victim.recorder.end == .closedLocally)
  }

  // MARK: Hostile servers

  @Test("that sends no HTTP/1.1 gets no more of the request")
  func malformedWhileSending() {
    let victim = Self.victim(0)
    _ = Self.beginLargeRequest(victim)
    #expect(victim.feed("garbage\n").isEmpty)
    #expect(victim.recorder.failures == [0: .unknown(.connectionLost)])
  }

  @Test("that sends no HTTP/1.1 loses its connection, in any division of its bytes", arguments: malformedHeads, [1, 10_000])
  func malformedHead(_ answer: Answer, _ cut: Int) {
    let victim = Self.victim()
    victim.feed(answer.text, cut: cut)
    #expect(victim.recorder.failures == [0: .unknown(.connectionLost)])
    guard case .failed(let why)? = victim.recorder.end else {
      Issue.record("\(victim.recorder.end as Any)")
      return
    }
    #expect(why.hasPrefix("HTTP/1.1: the answer") || why.hasPrefix("HTTP/1.1: a header of the answer"))
  }

  static let malformedHeads = [
    "\r\n", "garbage\n", "HTTP/2 200\r\n", "HTTP/1.1 2000 OK\r\n", "HTTP/1.1  200 OK\r\n", "HTTP/1.1 20\r\n",
    "HTTP/1.1 099 OK\r\n", "HTTP/1.1 600 OK\r\n", "HTTP/1.1 101 Switching Protocols\r\n", "HTTP/1.x 200 OK\r\n",
    "http/1.1 200 OK\r\n",
    "HTTP/1.1 200 OK\r\nno colon\r\n", "HTTP/1.1 200 OK\r\n: x\r\n", "HTTP/1.1 200 OK\r\nContent-Length : 0\r\n",
    "HTTP/1.1 200 OK\r\nX: y\r\n folded\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: \r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999999\r\n",
    "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 20_000), String(repeating: "x", count: 20_000),
    "HTTP/1.1 200 OK\r\n" + String(repeating: "x: y\r\n", count: 5_000),
    String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 5_000),
  ].map { Answer(text: $0) }

  @Test(
    "that breaks its body off has answered; the connection ends",
    arguments: [
      "\r\n", "g\r\n", "1\r\nxy\r\n", "1x\r\n", "fffffffffffffffff\r\n", "1;" + String(repeating: "x", count: 20_000),
      "0\r\n" + String(repeating: "x: y\r\n", count: 5_000),
    ].map { Answer(text: $0) },
    [1, 10_000])
  func malformedChunks(_ chunks: Answer, _ cut: Int) {
    let victim = Self.victim()
    victim.feed("HTTP/1.1 410 Gone\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks.text, cut: cut)
    #expect(victim.recorder.answers[0]?.status == 410 && victim.recorder.ends == [0])
    if case .failed(let why)? = victim.recorder.end { #expect(why.contains("answer")) } else { Issue.record("no reason") }
  }

  @Test("may send more than is kept; much more costs it the connection", arguments: [(10_000, true), (100_000, false)])
  func oversizeBody(_ size: Int, _ keepsConnection: Bool) {
    for cut in [100, 1_000_000] {
      let body = String(repeating: "x", count: size)
      for text in [
        "Content-Length: \(size)\r\n\r\n\(body)",
        "Transfer-Encoding: chunked\r\n\r\n\(String(size, radix: 16))\r\n\(body)\r\n0\r\n\r\n",
      ] {
        let victim = Self.victim { $0.maxResponseBody = 1_000 }
        victim.feed("HTTP/1.1 400 Bad\r\n" + text, cut: cut)
        #expect(victim.recorder.answers[0]?.body.count == 1_000 && victim.recorder.ends == [0])
        #expect((victim.recorder.end == nil) == keepsConnection)
      }
    }
  }

  // MARK: Over TLS

  @Test("is known by the TLS handshake", arguments: [["http/1.1"], []])
  func overTLS(_ protocols: [String]) throws {
    let files = try TestCertificates.make()
    let loop = try EventLoop()
    let tls = try TLSServerContext(certificate: files.server, key: files.serverKey, alpn: protocols)
    let listener = try Listener(loop: loop, host: "127.0.0.1", port: 0, tls: tls) { _ in AnsweringServer() }
    let recorder = Recorder()
    let session = ClientSession(configuration: Self.configuration, handler: recorder)
    recorder.onAvailable = { [unowned session] in
      guard recorder.ends.count < 3 else { return session.drain() }
      var values = HeaderValues()
      let template = HeaderTemplate(constant: [(":method", "POST"), (":path", "/"), (":authority", "h")], variable: [])
      session.submit(template, body: [0x7B, 0x7D], tag: recorder.ends.count, &values)
    }
    let context = try TLSClientContext(ca: files.authority, alpn: protocols.isEmpty ? [] : ["h2", "http/1.1"])
    Link(loop: loop, machine: session, to: listener.endpoint, tls: context).start()
    #expect(loop.run { recorder.end != nil })
    #expect(recorder.answers.count == 3 && recorder.end == .closedLocally)
    listener.close()
    listener.closeConnections()
  }

  /// Answers each request that ends in `{}`.
  final class AnsweringServer: Machine {
    weak var transport: (any Transport)?
    private var answers = 0

    func transportOpened(at now: MonotonicTime) {}
    func receive(_ bytes: RawSpan, at now: MonotonicTime) {
      var received: [UInt8] = []
      bytes.append(0..<bytes.byteCount, to: &received)
      answers += received.count { $0 == UInt8(ascii: "}") }
    }
    func writeOutput(to buffer: inout OutputBuffer, at now: MonotonicTime) {
      for _ in 0..<answers { buffer.append(HTTP1Tests.ok.utf8) }
      answers = 0
    }
    func transportClosed(_ reason: TransportEnd, at now: MonotonicTime) {}
    var isFinished: Bool { false }
    var deadline: MonotonicTime { .distantFuture }
    func deadlineReached(at now: MonotonicTime) {}
  }
}

extension HostileServerTests.Victim {
  /// Gets the text in pieces of `cut` bytes.
  @discardableResult
  func feed(_ text: String, cut: Int = .max) -> [UInt8] {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      driver.receive(Array(rest.prefix(cut)), at: now)
      rest = rest.dropFirst(cut)
    }
    return flush()
  }
}
