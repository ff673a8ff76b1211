import HTTP2
import MachineDriver
import TestSupport
import Testing
import Wire

@Suite struct ConnectionEndTests {
  /// A conversation with `count` requests open at the server.
  func open(_ count: Int, configuration: ClientConfiguration = .init()) -> Conversation {
    let talk = Conversation(client: configuration, server: .with { $0.maxConcurrentStreams = count })
    talk.scripted.onRequest = { _, _ in }
    talk.pair.open()
    talk.submit(0..<count)
    talk.pair.exchange()
    return talk
  }

  @Test("GOAWAY in the middle of 500 streams: those above are safe to send again, those at or below are answered")
  func goAwayMidStream() {
    let talk = open(500)
    talk.server.goAway(lastStreamID: 499, code: .noError, debugData: Array(#"{"reason":"Shutdown"}"#.utf8))
    talk.pair.exchange()
    #expect(talk.recorder.tags(.notProcessed(.goAway)) == Array(250..<500))
    #expect(talk.recorder.goAways.map(\.debugData) == [Array(#"{"reason":"Shutdown"}"#.utf8)])
    #expect(talk.client.availableStreams == 0)
    #expect(talk.recorder.end == nil)
    for request in talk.scripted.requests where request.stream <= 499 { talk.server.respond(request.stream, status: 200) }
    talk.pair.exchange()
    #expect(talk.recorder.answers.keys.sorted() == Array(0..<250))
    #expect(talk.recorder.ends.count == 500)
    #expect(talk.recorder.end != nil)
  }

  @Test("A graceful GOAWAY followed by the real one fails only what the real one leaves out")
  func goAwayTwice() {
    let talk = open(10)
    talk.server.goAway(lastStreamID: .max)
    talk.pair.exchange()
    #expect(talk.recorder.ends.isEmpty)
    #expect(talk.recorder.drainCount == 1)
    talk.server.goAway(lastStreamID: 9)
    talk.pair.exchange()
    #expect(talk.recorder.goAways.count == 2)
    #expect(talk.recorder.drainCount == 1)
    #expect(talk.recorder.tags(.notProcessed(.goAway)) == Array(5..<10))
    for request in talk.scripted.requests.prefix(5) { talk.server.respond(request.stream, status: 200) }
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 5)
    #expect(talk.recorder.end != nil)
  }

  @Test("GOAWAY and an immediate end: what it covered is unknown, what it left out is safe")
  func goAwayThenFin() {
    let talk = open(10)
    talk.server.goAway(lastStreamID: 5, code: .protocolError)
    talk.pair.exchange()
    talk.pair.cut(.closedByPeer)
    #expect(talk.recorder.tags(.notProcessed(.goAway)) == Array(3..<10))
    #expect(talk.recorder.tags(.unknown(.connectionLost)) == [0, 1, 2])
    #expect(talk.recorder.end == .closedByPeer)
  }

  @Test("GOAWAY naming no stream at all fails nothing for good")
  func goAwayZero() {
    let talk = open(4)
    talk.server.goAway(lastStreamID: 0, code: .refusedStream, debugData: Array("Maximum active streams violated".utf8))
    talk.pair.exchange()
    #expect(talk.recorder.tags(.notProcessed(.goAway)) == [0, 1, 2, 3])
    #expect(talk.recorder.end != nil)
  }

  @Test("A request not yet framed when GOAWAY comes is safe at once")
  func goAwayBeforeFraming() {
    let talk = open(1)
    talk.server.setMaxConcurrentStreams(2)
    talk.pair.exchange()
    talk.server.goAway(lastStreamID: .max)
    let bytes = talk.pair.server.collect(at: talk.pair.now)
    talk.submit(7)
    talk.pair.client.receive(bytes, at: talk.pair.now)
    #expect(talk.recorder.failures == [7: .notProcessed(.goAway)])
    talk.pair.exchange()
    #expect(talk.scripted.requests.count == 1)
  }

  @Test("A lost connection: what was handed to the transport is unknown, what was not is safe")
  func connectionLost() {
    let talk = open(2)
    talk.server.setMaxConcurrentStreams(4)
    talk.pair.exchange()
    talk.submit(2..<4)
    talk.pair.cut()
    #expect(talk.recorder.tags(.unknown(.connectionLost)) == [0, 1])
    #expect(talk.recorder.tags(.notProcessed(.neverSent)) == [2, 3])
    #expect(talk.recorder.end == .failed("connection reset"))
    #expect(talk.client.availableStreams == 0)
  }

  @Test("A stalled server: each request ends at its deadline and others go on")
  func stall() {
    let talk = Conversation(client: .with { $0.requestTimeout = 10 })
    talk.scripted.onRequest = { if $0.stream != 1 { $1.respond($0.stream, status: 200) } }
    talk.pair.open()
    talk.submit(0)
    talk.pair.exchange()
    talk.pair.advance(by: 9)
    talk.submit(1)
    talk.pair.exchange()
    #expect(talk.recorder.ends == [1])
    talk.pair.advance(by: 0.9)
    #expect(talk.recorder.failures.isEmpty)
    talk.pair.advance(by: 0.2)
    #expect(talk.recorder.failures == [0: .unknown(.timedOut)])
    #expect(talk.scripted.closed[1] == .cancel)
    #expect(talk.recorder.end == nil)
    talk.submit(2)
    talk.pair.exchange()
    #expect(talk.recorder.answers[2]?.status == 200)
  }

  @Test("A server that never widens its windows: bodies that don't fit end at their deadline, and the connection with them")
  func windowExhaustion() {
    let talk = Conversation(server: .with { $0.updatesWindows = false })
    talk.pair.open()
    for tag in 0..<30 { talk.submit(tag, body: [UInt8](repeating: 1, count: 4096)) }
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 15)
    talk.pair.advance(by: 31)
    #expect(talk.recorder.answers.count == 15)
    #expect(talk.recorder.tags(.unknown(.timedOut)).count == 15)
    // Nothing more would leave on this connection.
    #expect(talk.client.availableStreams == 0 && talk.pair.client.end != nil)
  }

  @Test("An answer that comes before the request is whole is taken, and the rest of the request is not sent")
  func earlyAnswer() {
    let talk = Conversation(server: .with { $0.updatesWindows = false })
    talk.pair.open()
    talk.submit(1, body: [UInt8](repeating: 1, count: 70_000))
    talk.pair.exchange()
    #expect(talk.recorder.ends.isEmpty)
    talk.server.respond(1, status: 413)
    talk.pair.exchange()
    #expect(talk.recorder.answers[1]?.status == 413)
    #expect(talk.client.activeStreams == 0)
  }

  @Test("An idle connection is pinged after each interval of silence, and lives while it answers")
  func idlePing() {
    let talk = Conversation(client: .with { $0.pingInterval = 20 })
    talk.pair.open()
    let before = talk.pair.client.transcript.count
    talk.pair.advance(by: 19)
    #expect(talk.pair.client.transcript.count == before)
    talk.pair.advance(by: 600)
    #expect((talk.pair.client.transcript.count - before) / 17 == 30)
    #expect(talk.recorder.end == nil)
  }

  @Test("A half-open connection is found out by PING, idle or busy, and what was sent is unknown", arguments: [0, 5])
  func halfOpen(_ count: Int) {
    let talk = open(max(count, 1), configuration: .with { $0.requestTimeout = 120 })
    if count == 0 {
      talk.server.respond(1, status: 200)
      talk.pair.exchange()
    }
    talk.pair.server.isReadingPaused = true
    talk.pair.advance(by: 29)
    #expect(talk.recorder.end == nil)
    talk.pair.advance(by: 1.5)
    #expect(talk.recorder.end == .failed("the server did not answer a PING within 10.0 s"))
    #expect(talk.recorder.tags(.unknown(.connectionLost)).count == count)
  }

  @Test("A request that ran out of time puts the connection on trial at once")
  func suspicion() {
    let talk = open(2, configuration: .with { $0.requestTimeout = 5 })
    talk.pair.server.isReadingPaused = true
    talk.pair.advance(by: 5)
    #expect(talk.recorder.tags(.unknown(.timedOut)).count == 2)
    talk.pair.advance(by: 10.1)
    #expect(talk.recorder.end != nil)
  }

  @Test("A server that accepts and never says anything is given up")
  func noSettings() {
    let recorder = Recorder()
    let session = ClientSession(handler: recorder)
    let driver = MachineDriver(session)
    let start = MonotonicTime(nanoseconds: 0)
    driver.open(at: start)
    #expect(driver.collect(at: start).starts(with: Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)))
    #expect(session.availableStreams == 0)
    #expect(session.deadline == start.advanced(bySeconds: 10))
    driver.checkDeadline(at: start.advanced(bySeconds: 10))
    driver.settle(at: start.advanced(bySeconds: 10))
    #expect(recorder.end == .failed("the server sent no SETTINGS within 10.0 s"))
  }

  @Test("A session that is drained from within its handler ends")
  func drainedFromWithin() {
    let talk = Conversation()
    talk.recorder.onAvailable = { [unowned talk] in talk.client.drain() }
    talk.pair.open()
    #expect(talk.recorder.end == .closedLocally)
  }

  @Test("A session that is drained before it is connected ends at once")
  func drainedWhileConnecting() {
    let recorder = Recorder()
    let session = ClientSession(configuration: .with { $0.allowsHTTP1 = true }, handler: recorder)
    let driver = MachineDriver(session)
    session.drain()
    driver.settle(at: MonotonicTime(nanoseconds: 0))
    #expect(recorder.end == .closedLocally && recorder.drainCount == 1)
  }

  @Test("A connection whose stream ids run out drains before the last one and ends well")
  func streamIDsUsedUp() {
    let talk = Conversation(client: .with { $0.firstStreamID = .max - 8 })
    talk.pair.open()
    #expect(talk.client.availableStreams == 5)
    talk.submit(0..<5)
    #expect(talk.client.availableStreams == 0)
    #expect(talk.recorder.drainCount == 1)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 5)
    #expect(talk.scripted.requests.last?.stream == .max)
    #expect(talk.recorder.end != nil)
  }

  @Test("A request submitted after a long silence has its full time")
  func deadlineAfterSilence() {
    let talk = Conversation(
      client: .with {
        $0.requestTimeout = 10; $0.pingInterval = 10_000
      })
    talk.scripted.onRequest = { _, _ in }
    talk.pair.open()
    talk.pair.advance(by: 3600)
    talk.submit(1)
    talk.pair.exchange()
    talk.pair.advance(by: 9.9)
    #expect(talk.recorder.ends.isEmpty)
    talk.pair.advance(by: 0.2)
    #expect(talk.recorder.failures == [1: .unknown(.timedOut)])
  }

  @Test("A process that was stopped for a while reads what came meanwhile before it gives anything up")
  func sleptThrough() {
    let talk = open(2, configuration: .with { $0.requestTimeout = 10 })
    talk.server.respond(1, status: 200)
    let answer = talk.pair.server.collect(at: talk.pair.now)
    let awake = talk.pair.now.advanced(bySeconds: 90)
    talk.pair.client.checkDeadline(at: awake)
    #expect(talk.recorder.ends.isEmpty)
    talk.pair.client.receive(answer, at: awake)
    #expect(talk.recorder.answers[0]?.status == 200)
    #expect(talk.client.deadline == awake.advanced(bySeconds: 0.2))
    talk.pair.client.checkDeadline(at: talk.client.deadline)
    #expect(talk.recorder.failures == [1: .unknown(.timedOut)])
    #expect(talk.client.deadline == awake.advanced(bySeconds: 10.2), "the connection is on trial, not condemned")
  }
}
