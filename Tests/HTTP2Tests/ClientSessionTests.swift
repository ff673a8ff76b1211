import HTTP2
import TestSupport
import Testing
import Wire

@Suite struct ClientSessionTests {
  @Test("A request reaches the server with its headers and body, and its answer comes back with the kept headers")
  func roundTrip() {
    let talk = Conversation(client: .with { $0.keptResponseHeaders = ["retry-after", "apns-id"] })
    talk.scripted.onRequest = { request, session in
      session.respond(
        request.stream, status: 429, headers: [HeaderField("apns-id", "id-1"), HeaderField("retry-after", "60")],
        body: Array(#"{"reason":"TooManyRequests"}"#.utf8))
    }
    #expect(talk.client.availableStreams == 0)
    talk.pair.open()
    #expect(talk.recorder.readyCount == 1)
    #expect(talk.recorder.availableCount == 1)
    #expect(talk.client.availableStreams == 100)
    talk.submit(1)
    talk.pair.exchange()
    let request = talk.scripted.requests[0]
    #expect(request.header(":path") == Array("/3/device/1".utf8))
    #expect(request.header("apns-topic") == Array("com.example.app".utf8))
    #expect(
      request.headers.map { String(decoding: $0.name, as: UTF8.self) } == [
        ":method", ":scheme", ":authority", ":path", "apns-topic", "authorization", "apns-id",
      ])
    #expect(request.body == Array(#"{"aps":{}}"#.utf8))
    let answer = talk.recorder.answers[1]
    #expect(answer?.status == 429)
    #expect(answer?.body == Array(#"{"reason":"TooManyRequests"}"#.utf8))
    #expect(answer?.header(0) == Array("60".utf8))
    #expect(answer?.header(1) == Array("id-1".utf8))
    #expect(talk.client.activeStreams == 0)
  }

  @Test("A success's headers are left out where nobody wants them, a failure's are not", arguments: [200, 429])
  func headersOfSuccess(_ status: Int) {
    let talk = Conversation(
      client: .with {
        $0.keptResponseHeaders = ["retry-after"]
        $0.keepsHeadersOfSuccess = false
      })
    talk.scripted.onRequest = { request, session in
      session.respond(request.stream, status: status, headers: [HeaderField("retry-after", "60")], body: [])
    }
    talk.pair.open()
    talk.submit(1)
    talk.pair.exchange()
    #expect(talk.recorder.answers[1]?.status == status)
    #expect(talk.recorder.answers[1]?.header(0) == (status == 200 ? nil : Array("60".utf8)))
  }

  @Test("Bytes cut in any way give the same answers", arguments: [Splitting.bytes(1), .bytes(7), .random(seed: 4)])
  func splitting(_ splitting: Splitting) {
    let talk = Conversation(splitting: splitting)
    talk.pair.open()
    talk.submit(0..<60)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 60)
    #expect(talk.recorder.failures.isEmpty)
  }

  @Test("A handler that submits from within its answer keeps the connection full until all is sent, and never overfull")
  func resubmission() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 10 })
    var next = 0
    let fill = { [unowned talk] in
      while next < 1000, talk.client.availableStreams > 0 {
        talk.submit(next)
        next += 1
      }
    }
    talk.recorder.onAvailable = fill
    talk.recorder.onAnswer = { _ in fill() }
    talk.pair.open()
    #expect(talk.recorder.answers.count == 1000)
    #expect(talk.scripted.mostStreams == 10)
    #expect(talk.scripted.violations.isEmpty)
  }

  @Test("Streams that became used up outside a batch are announced again once they are free")
  func availabilityIsAnnouncedAgain() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 2 })
    talk.pair.open()
    for round in 1...5 {
      talk.submit(round * 10)
      talk.submit(round * 10 + 1)
      #expect(talk.client.availableStreams == 0)
      talk.pair.exchange()
      #expect(talk.recorder.availableCount == round + 1)
    }
  }

  @Test("The stream limit follows SETTINGS 1000, 1, 1000, 0, 5 and is never exceeded")
  func liveSettings() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 1000 })
    talk.scripted.onRequest = { _, _ in }
    talk.pair.open()
    func answerAll() {
      for request in talk.scripted.requests { talk.server.respond(request.stream, status: 200) }
      talk.scripted.requests.removeAll()
      talk.pair.exchange()
    }
    talk.submit(0..<600)
    talk.pair.exchange()
    #expect(talk.client.availableStreams == 400)
    for limit in [1, 1000, 0, 5] {
      talk.server.setMaxConcurrentStreams(limit)
      talk.pair.exchange()
      #expect(talk.client.availableStreams == max(0, limit - 600))
    }
    answerAll()
    #expect(talk.recorder.answers.count == 600)
    #expect(talk.client.availableStreams == 5)
    talk.server.setMaxConcurrentStreams(0)
    talk.pair.exchange()
    #expect(talk.client.availableStreams == 0)
    let announced = talk.recorder.availableCount
    talk.server.setMaxConcurrentStreams(3)
    talk.pair.exchange()
    #expect(talk.recorder.availableCount == announced + 1)
    talk.submit(1000..<1003)
    talk.pair.exchange()
    answerAll()
    #expect(talk.recorder.answers.count == 603)
    #expect(talk.scripted.violations.isEmpty)
  }

  @Test("Requests that a lowered limit overtakes are refused by the server and safe to send again")
  func loweredWhileRequestsFly() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 50 })
    talk.pair.open()
    talk.server.setMaxConcurrentStreams(1)
    _ = talk.pair.server.isOutputReady
    talk.submit(0..<50)
    talk.pair.exchange()
    #expect(talk.recorder.ends.count == 50)
    #expect(Set(talk.recorder.failures.values).isSubset(of: [.notProcessed(.refusedStream)]))
    #expect(talk.scripted.violations.isEmpty)
    #expect(talk.client.availableStreams == 1)
  }

  @Test("Requests that a lowered limit meets before they are written wait for a free stream")
  func loweredBeforeWriting() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 50 })
    talk.pair.open()
    talk.server.setMaxConcurrentStreams(1)
    let settings = talk.pair.server.collect(at: talk.pair.now)
    talk.submit(0..<50)
    talk.pair.client.receive(settings, at: talk.pair.now)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 50)
    #expect(talk.scripted.mostStreams == 1 && talk.scripted.violations.isEmpty)
  }

  @Test("The provider's own limit holds the session to one stream until it is lifted")
  func probeLimit() {
    let talk = Conversation()
    talk.client.limitStreams(to: 1)
    talk.pair.open()
    #expect(talk.client.availableStreams == 1)
    talk.submit(1)
    #expect(talk.client.availableStreams == 0)
    talk.client.limitStreams(to: nil)
    #expect(talk.client.availableStreams == 99)
    #expect(talk.recorder.availableCount == 2)
  }

  @Test("Every third stream refused: those and only those are safe to send again")
  func refusedStreams() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 300 })
    talk.scripted.onRequest = { request, session in
      if (request.stream / 2) % 3 == 2 {
        session.reset(request.stream, .refusedStream)
      } else {
        session.respond(request.stream, status: 200)
      }
    }
    talk.pair.open()
    talk.submit(0..<300)
    talk.pair.exchange()
    #expect(talk.recorder.tags(.notProcessed(.refusedStream)) == Array(stride(from: 2, to: 300, by: 3)))
    #expect(talk.recorder.answers.count == 200)
  }

  @Test("A stream reset with another code may have been processed")
  func otherResets() {
    let talk = Conversation()
    talk.scripted.onRequest = { request, session in session.reset(request.stream, .internalError) }
    talk.pair.open()
    talk.submit(1)
    talk.pair.exchange()
    #expect(talk.recorder.failures == [1: .unknown(.reset(.internalError))])
  }

  @Test("A drained session answers what is open, then ends with a GOAWAY")
  func drain() {
    let talk = Conversation()
    talk.scripted.onRequest = { _, _ in }
    talk.pair.open()
    talk.submit(0..<3)
    talk.pair.exchange()
    talk.client.drain()
    #expect(talk.client.availableStreams == 0)
    #expect(talk.recorder.drainCount == 1)
    talk.pair.exchange()
    #expect(talk.recorder.end == nil)
    for request in talk.scripted.requests { talk.server.respond(request.stream, status: 200) }
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 3)
    #expect(talk.recorder.end == .closedLocally)
    #expect(talk.scripted.end != nil)
  }

  @Test("A body far larger than the limit is cut there and costs nothing more")
  func oversizeBody() {
    let talk = Conversation()
    talk.scripted.onRequest = { $1.respond($0.stream, status: 400, body: [UInt8](repeating: 0x41, count: 10_000_000)) }
    talk.pair.open()
    talk.submit(1)
    talk.pair.exchange()
    #expect(talk.recorder.answers[1]?.body.count == 16 * 1024)
  }

  @Test("Answers of three times the connection's window all arrive")
  func manyAnswers() {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 300 })
    talk.scripted.onRequest = { $1.respond($0.stream, status: 400, body: [UInt8](repeating: 0x41, count: 10_000)) }
    talk.pair.open()
    talk.submit(0..<300)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 300)
    #expect(talk.recorder.answers.values.allSatisfy { $0.body.count == 10_000 })
  }

  @Test("Large bodies go through a small window once the server widens it")
  func flowControl() {
    let talk = Conversation(server: .with { $0.initialWindowSize = 100 })
    talk.pair.open()
    for tag in 0..<50 { talk.submit(tag, body: [UInt8](repeating: UInt8(tag), count: 4096)) }
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 50)
    #expect(talk.scripted.requests.allSatisfy { $0.body.count == 4096 && Set($0.body).count == 1 })
  }

  @Test("No more requests are sendable than the server's window has room for, but one is where none is active")
  func sendable() {
    let talk = Conversation(
      client: .with { $0.requestTimeout = 30 }, server: .with { $0.updatesWindows = false })
    talk.pair.open()
    let body = [UInt8](repeating: 1, count: 4096)
    var submitted = 0
    while talk.client.sendableStreams > 0 {
      talk.submit(submitted, body: body)
      submitted += 1
    }
    // 65,535 bytes: fifteen bodies.
    #expect(submitted == 15)
    #expect(talk.client.availableStreams == 85)
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 15)
    #expect(talk.client.sendableStreams == 1)
    talk.submit(15, body: body)
    #expect(talk.client.sendableStreams == 0)
    talk.pair.exchange()
    talk.pair.advance(by: 31)
    #expect(talk.recorder.tags(.unknown(.timedOut)) == [15])
    #expect(talk.client.sendableStreams == 0 && talk.pair.client.end != nil)
  }

  @Test(
    "Whoever sends what is sendable, and waits to hear of more, gets all of it through, and none is left behind",
    arguments: [[1], [300], [4096], [70_000], [200, 4096, 1000]])
  func sendableIsAnnounced(_ sizes: [Int]) {
    let talk = Conversation(server: .with { $0.maxConcurrentStreams = 1000 })
    let limit = 65_535 / sizes[0] + 1
    var next = 0
    var oldest = 0
    talk.recorder.onAvailable = { [unowned talk] in
      while talk.recorder.answers[oldest] != nil { oldest += 1 }
      while next < 2000, talk.client.sendableStreams > 0 {
        talk.submit(next, body: [UInt8](repeating: 1, count: sizes[next % sizes.count]))
        next += 1
        #expect(next - oldest <= limit)
      }
    }
    talk.pair.open()
    talk.pair.exchange()
    #expect(talk.recorder.answers.count == 2000)
  }

  @Test("A very large body narrows the use of the server's window for a while only")
  func largeBodyForgotten() {
    let conversation = Conversation()
    conversation.pair.open()
    conversation.submit(0, body: [UInt8](repeating: 0x20, count: 60_000))
    conversation.pair.exchange()
    let body = [UInt8](repeating: 0x20, count: 1000)
    conversation.submit(1, body: body)
    conversation.pair.exchange()
    #expect(conversation.client.sendableStreams < 10)
    for tag in 2..<800 {
      conversation.submit(tag, body: body)
      conversation.pair.exchange()
    }
    #expect(conversation.recorder.answers.count == 800)
    #expect(conversation.client.sendableStreams > 60)
  }
}
