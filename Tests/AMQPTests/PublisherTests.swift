import AMQP
import TestSupport
import Testing
import Wire

@Suite("Publisher")
struct PublisherTests {
  @Test("A publish is a method, a header and as many body frames as the limit asks for")
  func encoding() throws {
    let script = PublisherScript(tune: Say.tune(frameMax: 4096))
    let headers: FieldTable = ["x-push-error": .text("Unavailable"), "n": .integer(-1)]
    var values = properties(id: "id", headers: headers)
    values.timestamp = 258
    let body = (0..<9000).map { UInt8(truncatingIfNeeded: $0) }
    script.publisher.publish(exchange: bytes("e"), routingKey: bytes("rk"), properties: values, body: body, tag: 1)
    let frames = script.heard()
    #expect(frames.map(\.name) == ["60.40", "header", "body", "body", "body"])
    #expect(frames.allSatisfy { $0.channel == 1 && $0.payload.count <= 4088 })
    #expect(frames[0].payload[4...] == [0, 0, 1, 0x65, 2, 0x72, 0x6b, 1])
    let table =
      Say.short("x-push-error") + [0x53] + Say.long(bytes("Unavailable")) + Say.short("n") + [0x49, 255, 255, 255, 255]
    let expected: [UInt8] =
      [0, 60, 0, 0] + Say.be(UInt64(9000)) + [0x30, 0xc0] + Say.long(table) + [2] + Say.short("id") + Say.be(UInt64(258))
    #expect(frames[1].payload == expected)
    #expect(Array(frames[2...].map(\.payload).joined()) == body)
  }

  @Test("An empty body has no body frame")
  func emptyBody() {
    let script = PublisherScript()
    script.publisher.publish(
      exchange: [], routingKey: [], properties: BasicProperties(), body: [], tag: 1)
    let frames = script.heard()
    #expect(frames.map(\.name) == ["60.40", "header"])
  }

  @Test("Confirms may cover several, come out of order, and overlap")
  func confirms() {
    let script = PublisherScript()
    script.publish(10..<20)
    #expect(script.publisher.unconfirmed == 10)
    script.say(Say.ack(3), Say.ack(2), Say.ack(3))
    #expect(script.recorder.confirmed == [12, 11])
    script.say(Say.ack(5, multiple: true), Say.nack(7), Say.ack(4, multiple: true))
    #expect(script.recorder.confirmed == [12, 11, 10, 13, 14] && script.recorder.events.last == .failed(16, .nacked))
    script.say(Say.nack(8, multiple: true))
    #expect(script.recorder.failed == [16, 15, 17])
    script.say(Say.ack(0, multiple: true))
    #expect(script.recorder.confirmed.suffix(2) == [18, 19] && script.publisher.unconfirmed == 0)
    script.publish(20..<21)
    script.say(Say.ack(11))
    #expect(script.recorder.confirmed.last == 20)
  }

  @Test("A confirm of what was never published is a fault", arguments: [(3, false), (0, false), (3, true)] as [(UInt64, Bool)])
  func unknownConfirm(_ number: UInt64, _ multiple: Bool) {
    let script = PublisherScript()
    script.publish(0..<2)
    script.say(Say.ack(number, multiple: multiple))
    #expect(script.recorder.failed == [0, 1])
    guard case .protocolError? = script.recorder.end else {
      Issue.record("\(script.recorder.events)")
      return
    }
  }

  @Test("A returned message fails with its own tag, though its confirm covers others too")
  func returned() {
    let script = PublisherScript()
    script.publish(0..<3)
    script.publish(3..<4, key: "nowhere")
    script.publish(4..<6)
    script.say(Say.returned(key: "nowhere", id: "3", body: bytes("b")), Say.ack(6, multiple: true))
    #expect(script.recorder.confirmed == [0, 1, 2, 4, 5])
    #expect(script.recorder.failed == [3] && script.recorder.events.contains(.failed(3, .returned(code: 312))))
  }

  @Test("When a queue vanishes between two messages to it, the later one fails")
  func returnedLater() {
    let script = PublisherScript()
    script.publish(0..<4)
    script.say(Say.returned(key: "k", id: "2", body: bytes("b")), Say.ack(4, multiple: true))
    #expect(script.recorder.confirmed == [0, 1, 3] && script.recorder.failed == [2])
  }

  @Test("Of outstanding messages that look alike none is taken for routed when one is returned")
  func returnedAlike() {
    let script = PublisherScript()
    script.publish(7..<8)
    script.publish(7..<8)
    script.publish(8..<9)
    script.say(Say.returned(key: "k", id: "7", body: bytes("b")), Say.ack(3, multiple: true))
    #expect(script.recorder.confirmed == [8] && script.recorder.failed == [7, 7])
  }

  @Test("A return of something unknown makes all outstanding unknown, never confirmed")
  func returnedUnknown() {
    let script = PublisherScript()
    script.publish(0..<2)
    script.say(Say.returned(key: "k", id: "other", body: bytes("b")), Say.ack(2, multiple: true))
    #expect(script.recorder.confirmed.isEmpty && script.recorder.failed == [0, 1])
  }

  @Test("30 s without any confirm, while one is waited for, end the connection, all outcomes unknown")
  func confirmTimeout() {
    let script = PublisherScript()
    script.publish(0..<3)
    _ = script.heard()
    script.beat(10)
    script.say(Say.ack(2))
    script.beat(29)
    #expect(script.recorder.confirmed == [1])
    script.wait(1.1)
    #expect(script.recorder.failed == [0, 2])
    #expect(script.recorder.events.contains(.failed(0, .timedOut)) && script.recorder.end == .confirmTimedOut)
  }

  @Test("A confirm that is late while the goodbye is under way is nothing to act upon")
  func confirmTimeoutWhileClosing() {
    let script = PublisherScript()
    script.publish(0..<1)
    _ = script.heard()
    script.beat(29)
    script.wait(0.9)
    script.publisher.close()
    script.wait(0.2)
    #expect(script.publisher.deadline > script.now && script.recorder.end == nil)
  }

  @Test("While blocked nothing times out and the window is closed; unblocked, it goes on")
  func blocked() {
    let script = PublisherScript(window: 2)
    #expect(script.publisher.canPublish)
    script.publish(0..<1)
    _ = script.heard()
    script.say(Say.blocked("low on memory"))
    #expect(script.recorder.events == [.blocked("low on memory")] && !script.publisher.canPublish)
    script.beat(600)
    script.say(Say.unblocked)
    #expect(script.publisher.canPublish && script.publisher.unconfirmed == 1)
    script.publish(1..<2)
    #expect(!script.publisher.canPublish)
    script.say(Say.ack(2, multiple: true))
    #expect(script.recorder.events == [.blocked("low on memory"), .unblocked, .confirmed(0), .confirmed(1)])
  }

  @Test("A new connection is not blocked because the old one was")
  func blockedForgotten() {
    let script = PublisherScript()
    script.say(Say.blocked("disk"))
    script.driver.finish(.closedByPeer, at: script.now)
    let second = Script(script.publisher)
    second.say(Script.handshake, Say.channelOpenOK(), Say.selectOK)
    #expect(script.publisher.canPublish)
    script.publish(5..<6)
    second.say(Say.ack(1))
    #expect(script.recorder.confirmed == [5])
  }

  @Test("When the channel is closed everything outstanding fails, and publishing begins again at sequence 1")
  func channelClosed() {
    let script = PublisherScript()
    script.publish(0..<3)
    _ = script.heard()
    script.say(Say.ack(1), Say.channelClose(404, "NOT_FOUND - no exchange 'x'"))
    let failure = PublishFailure.channelClosed(.notFound("NOT_FOUND - no exchange 'x'"))
    #expect(script.recorder.events == [.confirmed(0), .failed(1, failure), .failed(2, failure)])
    #expect(!script.publisher.canPublish)
    #expect(script.heard().map(\.name) == ["20.41", "20.10", "85.10"])
    script.say(Say.channelOpenOK(), Say.selectOK)
    #expect(script.recorder.events.last == .ready)
    script.publish(3..<4)
    script.say(Say.ack(1))
    #expect(script.recorder.events.last == .confirmed(3))
  }

  @Test("What AMQP can't carry fails without being sent, and not within the call")
  func unencodable() {
    let script = PublisherScript(tune: Say.tune(frameMax: 4096))
    let long = [UInt8](repeating: 0x61, count: 256)
    var bad = BasicProperties()
    bad.correlationID = long
    script.publisher.publish(exchange: long, routingKey: [], properties: BasicProperties(), body: [], tag: 1)
    script.publisher.publish(exchange: [], routingKey: long, properties: BasicProperties(), body: [], tag: 2)
    script.publisher.publish(exchange: [], routingKey: [], properties: bad, body: [], tag: 3)
    let wide = properties(headers: ["h": .string([UInt8](repeating: 0, count: 4096))])
    script.publisher.publish(exchange: [], routingKey: [], properties: wide, body: [], tag: 4)
    #expect(script.recorder.events.isEmpty && script.publisher.unconfirmed == 0)
    #expect(script.heard().isEmpty)
    #expect(script.recorder.events == (1...4).map { .failed($0, .unencodable) })
  }

  @Test("A content header leaves 4 KiB of its frame to what the broker adds", arguments: [(131_072, 4_096), (4_096, 1_024)])
  func headerReserve(_ frameMax: Int, _ reserve: Int) {
    let script = PublisherScript(tune: Say.tune(frameMax: UInt32(frameMax)))
    // Of the frame: 8 around the payload, 14 before the values, 4 of the table's length, 7 of the entry.
    let most = frameMax - reserve - 8 - 14 - 4 - 7
    for (tag, count) in [most, most + 1].enumerated() {
      var properties = BasicProperties()
      properties.headers.append("k", .string([UInt8](repeating: 0x68, count: count)))
      script.publisher.publish(exchange: [], routingKey: [], properties: properties, body: [], tag: tag)
    }
    #expect(script.heard().filter { $0.name == "header" }.map(\.payload.count) == [frameMax - reserve - 8])
    #expect(script.recorder.events == [.failed(1, .unencodable)])
  }

  @Test("A return of a message whose header exceeds the frame agreed on is settled as any other")
  func largeReturn() {
    let script = PublisherScript()
    script.publish(5..<6)
    let filler = Say.long(Say.short("k") + [UInt8(ascii: "S")] + Say.long([UInt8](repeating: 0x68, count: 131_072)))
    let header = Say.header(size: 1, flags: 1 << 7 | 1 << 13, filler + Say.short("5"))
    script.say(Say.method(1, 60, 50, Say.be(UInt16(312)) + Say.short("NO_ROUTE") + Say.short("") + Say.short("k")))
    script.say(header, Say.body(bytes("b")), Say.ack(1))
    #expect(script.recorder.events == [.failed(5, .returned(code: 312))])
  }

  @Test("Commands are asked one by one on their own channel, and a failed one only reopens that")
  func commands() {
    let script = PublisherScript()
    var answers: [Result<CommandAnswer, ConnectionEnd>] = []
    script.publisher.perform(.queueInspect(name: "missing")) { answers.append($0) }
    script.publisher.perform(.queueInspect(name: "there")) { answers.append($0) }
    #expect(script.heard().map(\.description) == ["20.10@2"])
    script.say(Say.channelOpenOK(2))
    #expect(script.heard().map(\.description) == ["50.10@2"])
    script.say(Say.channelClose(404, "no queue", 2))
    #expect(answers == [.failure(.notFound("no queue"))])
    #expect(script.heard().map(\.description) == ["20.41@2", "20.10@2"])
    script.say(Say.channelOpenOK(2), Say.method(2, 50, 11, Say.short("there") + Say.be(UInt32(7)) + Say.be(UInt32(1))))
    #expect(answers.last == .success(.queue(messages: 7, consumers: 1)))
    #expect(script.recorder.events.isEmpty)
  }

  @Test("Under an alarm the broker reads nothing, and a command waits for its end")
  func commandUnderAlarm() {
    let script = PublisherScript()
    script.publish(0..<1)
    var isAnswered = false
    script.publisher.perform(.queueInspect(name: "q")) { if case .success = $0 { isAnswered = true } }
    script.say(Say.blocked("low on memory"))
    script.publisher.perform(.queueInspect(name: "q")) { _ in }
    script.beat(120)
    #expect(script.recorder.events == [.blocked("low on memory")] && script.driver.isOpen)
    script.say(Say.unblocked, Say.channelOpenOK(2), Say.ack(1))
    let inspected = Say.method(2, 50, 11, Say.short("q") + Say.be(UInt32(3)) + Say.be(UInt32(0)))
    script.say(inspected)
    #expect(isAnswered && script.driver.isOpen)
    script.beat(31)
    #expect(script.recorder.end == .commandTimedOut)
  }

  @Test("A command without an answer ends the connection after 30 s, and every command is told")
  func commandTimeout() {
    let script = PublisherScript()
    var answers: [Result<CommandAnswer, ConnectionEnd>] = []
    for _ in 0..<2 { script.publisher.perform(.queueInspect(name: "q")) { answers.append($0) } }
    script.beat(31)
    #expect(answers == [.failure(.commandTimedOut), .failure(.commandTimedOut)])
    #expect(script.recorder.end == .commandTimedOut)
  }
}
