import TestSupport
import Testing
import Wire

@testable import AMQP

@Suite("Consumer")
struct ConsumerTests {
  @Test("However the bytes are cut, the same deliveries come out", arguments: [1, 2, 3, 7, 64, 1000])
  func splitting(_ size: Int) {
    let script = ConsumerScript(queues: 2, isReady: false)
    let headers: [UInt8] = Say.long(Say.short("k") + [UInt8(ascii: "S")] + Say.long(bytes("v")))
    let said =
      Script.handshake + ConsumerScript.consuming(2) + Say.message(1, "first") + Say.heartbeat
      + Say.deliver(2, consumer: "1.1", redelivered: true)
      + Say.header(size: 10, flags: 1 << 15 | 1 << 13 | 1 << 7, Say.short("application/json") + headers + Say.short("id-2"))
      + Say.body(bytes("01234")) + Say.body(bytes("56789")) + Say.deliver(3) + Say.header(size: 0)
    script.say(said, inPiecesOf: size)
    let deliveries = script.recorder.deliveries
    #expect(deliveries.map(\.body) == [bytes("first"), bytes("0123456789"), []])
    #expect(deliveries.map(\.consumer) == [0, 1, 0] && deliveries.map(\.token.tag) == [1, 2, 3])
    #expect(deliveries.map(\.redelivered) == [false, true, false])
    #expect(deliveries[1].properties.contentType == bytes("application/json"))
    #expect(deliveries[1].properties.headers.string("k") == bytes("v"))
    #expect(deliveries[1].properties.messageID == bytes("id-2") && deliveries[2].properties == BasicProperties())
    #expect(deliveries[0].exchange == bytes("push.send") && deliveries[0].routingKey == bytes("high"))
    #expect(script.recorder.events == [.ready])
  }

  @Test("Of a body beyond the limit the beginning is kept and the size told")
  func bodyLimit() {
    let script = ConsumerScript(maximumBody: 6)
    script.say(Say.deliver(1), Say.header(size: 12), Say.body(bytes("0123")), Say.body(bytes("4567")), Say.body(bytes("89ab")))
    script.say(Say.message(2, "abcdef"), Say.message(3, "abcdefg"))
    let deliveries = script.recorder.deliveries
    #expect(deliveries.map(\.body) == [bytes("012345"), bytes("abcdef"), bytes("abcdef")])
    #expect(deliveries.map(\.bodySize) == [12, 6, 7] && deliveries.map(\.isTruncated) == [true, false, true])
  }

  @Test("A content header may exceed the frame agreed on by 64 KiB, which the broker has added; nothing else may")
  func largeHeader() {
    func table(_ count: Int) -> [UInt8] {
      Say.long(Say.short("k") + [UInt8(ascii: "S")] + Say.long([UInt8](repeating: 0x68, count: count)))
    }
    let limit = 131_072 - 8 + 65_536
    let header = Say.header(size: 2, flags: 1 << 13, table(limit - 14 - 11))
    #expect(header.count == limit + 8)
    for size in [1, 7, 65_536, header.count] {
      let script = ConsumerScript()
      script.say(Say.deliver(1) + header + Say.body(bytes("ab")) + Say.message(2), inPiecesOf: size)
      #expect(script.recorder.deliveries.map(\.body) == [bytes("ab"), bytes("x")] && script.recorder.events.isEmpty)
      #expect(script.recorder.deliveries.first?.properties.headers.string("k")?.count == limit - 25)
    }
    // Cut anywhere near its ends.
    for cut in Array(0...32) + Array(header.count - 32...header.count) {
      let script = ConsumerScript()
      script.say(Say.deliver(1), Array(header[..<cut]))
      script.say(Array(header[cut...]), Say.body(bytes("ab")))
      #expect(script.recorder.deliveries.count == 1, "\(cut)")
    }
    // A broker that lets other connections have larger frames.
    for (offered, most) in [(262_144, 262_144), (0, 1 << 20), (4 << 20, 1 << 20)] as [(UInt32, Int)] {
      for beyond in [0, 1] {
        let script = ConsumerScript(isReady: false)
        script.say(Say.start() + Say.tune(frameMax: offered) + Say.openOK + ConsumerScript.consuming(1) + Say.deliver(1))
        script.say([2, 0, 1] + Say.be(UInt32(most - 8 + 65_536 + beyond)))
        #expect(script.driver.isOpen == (beyond == 0), "\(offered)")
      }
    }
    for (type, size) in [(2, limit + 1), (1, 131_072 - 7), (3, 131_072 - 7), (8, 131_072 - 7)] as [(UInt8, Int)] {
      let script = ConsumerScript()
      script.say(Say.deliver(1), [type, 0, 1] + Say.be(UInt32(size)))
      guard case .ended(.protocolError)? = script.recorder.events.first else {
        Issue.record("a frame of type \(type) with \(size) bytes: \(script.recorder.events)")
        return
      }
    }
  }

  @Test("Every property arrives")
  func properties() {
    let script = ConsumerScript()
    let values =
      Say.short("ct") + Say.short("ce") + Say.long([]) + [2, 255] + Say.short("c") + Say.short("r") + Say.short("60000")
      + Say.short("m") + Say.be(UInt64(7)) + Say.short("t") + Say.short("u") + Say.short("a") + Say.short("cluster")
    script.say(Say.deliver(1), Say.header(size: 0, flags: 0xfffc, values))
    let properties = script.recorder.deliveries[0].properties
    #expect(properties.contentType == bytes("ct") && properties.contentEncoding == bytes("ce"))
    #expect(properties.headers.isEmpty && !properties.hasUnreadableHeaders)
    #expect(properties.deliveryMode == 2 && properties.priority == 255 && properties.timestamp == 7)
    #expect(properties.correlationID == bytes("c") && properties.replyTo == bytes("r"))
    #expect(properties.expiration == bytes("60000") && properties.messageID == bytes("m"))
    #expect(properties.type == bytes("t") && properties.userID == bytes("u") && properties.appID == bytes("a"))
  }

  @Test("Headers that nest too deep or lie about their length make the message unreadable, not the connection")
  func tableBomb() {
    let script = ConsumerScript()
    var bomb: [UInt8] = []
    for _ in 0..<10_000 { bomb = Say.short("a") + [UInt8(ascii: "F")] + Say.long(bomb) }
    var arrays: [UInt8] = []
    for _ in 0..<10_000 { arrays = [UInt8(ascii: "A")] + Say.long(arrays) }
    let lying = Say.short("a") + [UInt8(ascii: "S")] + Say.be(UInt32.max) + [1, 2, 3]
    let unknown = Say.short("a") + [UInt8(ascii: "?")]
    for (index, table) in [bomb, Say.short("a") + arrays, lying, unknown].enumerated() {
      script.say(Say.deliver(UInt64(index + 1)), Say.header(size: 1, flags: 1 << 13, Say.long(table)), Say.body([0x7b]))
    }
    #expect(script.recorder.deliveries.count == 4)
    #expect(script.recorder.deliveries.allSatisfy { $0.properties.hasUnreadableHeaders && $0.properties.headers.isEmpty })
    #expect(script.recorder.events.isEmpty)
  }

  @Test("Of headers that nest too deep, or are malformed further on, the others are read")
  func readableHeaders() {
    let script = ConsumerScript()
    var bomb: [UInt8] = []
    for _ in 0..<40 { bomb = Say.short("deep") + [UInt8(ascii: "F")] + Say.long(bomb) }
    let sender = Say.short("x-push-sender") + [UInt8(ascii: "S")] + Say.long(bytes("1001"))
    let trace = Say.short("traceparent") + [UInt8(ascii: "S")] + Say.long(bytes("00-1"))
    let unknown = Say.short("a") + [UInt8(ascii: "?")]
    for (index, table) in [sender + bomb + trace, bomb + bomb + trace + sender, sender + trace + unknown].enumerated() {
      script.say(Say.deliver(UInt64(index + 1)), Say.header(size: 1, flags: 1 << 13, Say.long(table)), Say.body([0x7b]))
    }
    let read: FieldTable = ["x-push-sender": .text("1001"), "traceparent": .text("00-1")]
    #expect(script.recorder.deliveries.count == 3)
    #expect(script.recorder.deliveries.allSatisfy { $0.properties.hasUnreadableHeaders })
    for delivery in script.recorder.deliveries {
      #expect(delivery.properties.headers.entries.count == 2)
      for (key, value) in read.entries { #expect(delivery.properties.headers[String(decoding: key, as: UTF8.self)] == value) }
    }
  }

  @Test("What is done in order is acknowledged by one frame")
  func contiguous() {
    let script = ConsumerScript()
    for number in 1...5 { script.say(Say.message(UInt64(number))) }
    script.acknowledge(0, 2, 1)
    let frames = script.heard()
    #expect(frames.map(\.name) == ["60.80"] && frames[0].tag == 3 && frames[0].flag)
    script.acknowledge(3)
    let single = script.heard()
    #expect(single.map(\.tag) == [4] && !single[0].flag)
    #expect(script.heard().isEmpty && script.consumer.unacknowledged == 1)
  }

  @Test("What is done behind a slow delivery waits 20 ms for it, or until there are more than 64 of them")
  func scattered() {
    let script = ConsumerScript()
    for number in 1...200 { script.say(Say.message(UInt64(number))) }
    script.acknowledge(2, 5)
    #expect(script.heard().isEmpty)
    #expect(script.wait(0.019).isEmpty)
    script.acknowledge(3)
    let late = script.wait(0.002)
    // They are one transaction, as is all from then on.
    #expect(late.map(\.name) == ["90.10", "60.80", "60.80", "60.80", "90.20"])
    #expect(late.acknowledged.sorted() == [3, 4, 6] && late[1...3].allSatisfy { !$0.flag })
    script.say(Say.transactionOK, Say.commitOK)
    for index in 10..<74 { script.acknowledge(index) }
    #expect(script.heard().isEmpty)
    script.acknowledge(74)
    #expect(script.heard().acknowledged == (11...75).map { UInt64($0) })
    script.acknowledge(0, 1, 4)
    let prefix = script.heard()
    #expect(prefix.map(\.name) == ["60.80", "90.20"] && prefix[0].tag == 5 && prefix[0].flag)
    #expect(script.consumer.unacknowledged == 200 - 71)
    script.consumer.reject(script.recorder.deliveries[6].token, requeue: true)
    #expect(script.heard().map(\.name) == ["60.90", "90.20"])
    script.say(Say.commitOK, Say.commitOK, Say.commitOK)
    #expect(script.driver.isOpen)
    script.say(Say.commitOK)
    #expect(!script.driver.isOpen)
  }

  @Test("It closes when the broker has answered a commit that follows the cancels, and hands nothing over meanwhile")
  func closing() {
    let script = ConsumerScript(queues: 2)
    script.say(Say.message(1), Say.message(2), Say.message(3))
    script.acknowledge(1)
    script.consumer.close()
    #expect(script.heard().map(\.name) == ["60.30", "60.30", "90.10", "60.80", "90.20", "90.20"])
    script.say(Say.cancelOK("0.1"), Say.message(4, consumer: "1.1"), Say.cancelOK("1.1"), Say.transactionOK, Say.commitOK)
    #expect(script.recorder.deliveries.count == 3 && script.heard().isEmpty)
    // A late acknowledgement waits for its commit as well.
    script.acknowledge(2)
    script.say(Say.commitOK)
    #expect(script.heard().isEmpty)
    #expect(script.wait(ConsumerChannel.longestDelay).map(\.name) == ["60.80", "90.20"])
    script.say(Say.commitOK)
    #expect(script.heard().map(\.name) == ["10.50"])
    script.say(Say.closeOK)
    #expect(script.recorder.events == [.ended(.closedHere)])
  }

  @Test("A broker that answers no commit is left after the time of a close, and the consumer says so")
  func closingUnanswered() {
    let script = ConsumerScript()
    script.consumer.close()
    _ = script.wait(ConnectionSettings.closeTimeout)
    #expect(script.recorder.events == [.ended(.closedHere)] && script.consumer.isUnanswered)
  }

  @Test("A broker that answers a commit late leaves nothing unanswered")
  func closingSlowly() {
    let script = ConsumerScript()
    script.say(Say.message(1))
    script.acknowledge(0)
    script.consumer.close()
    _ = script.wait(4)
    #expect(script.consumer.isUnanswered)
    script.say(Say.cancelOK("0.1"), Say.transactionOK, Say.commitOK)
    #expect(script.heard().map(\.name).last == "10.50")
    script.say(Say.closeOK)
    #expect(script.recorder.events == [.ended(.closedHere)] && !script.consumer.isUnanswered)
  }

  @Test("A token that is unknown, settled or of another channel is never acknowledged")
  func staleTokens() {
    let script = ConsumerScript()
    script.say(Say.message(1), Say.message(2))
    let first = script.recorder.deliveries[0].token
    script.acknowledge(0, 0)
    script.consumer.acknowledge(DeliveryToken(generation: first.generation, tag: 3))
    script.consumer.acknowledge(DeliveryToken(generation: first.generation, tag: 0))
    script.consumer.acknowledge(DeliveryToken(generation: first.generation &+ 1, tag: 2))
    script.consumer.reject(first, requeue: true)
    #expect(script.heard().map(\.tag) == [1])
    script.consumer.acknowledge(first)
    #expect(script.heard().isEmpty && script.consumer.unacknowledged == 1)
  }

  @Test("A rejection names its delivery, and acknowledgements go around it")
  func rejection() {
    let script = ConsumerScript()
    for number in 1...3 { script.say(Say.message(UInt64(number))) }
    script.consumer.reject(script.recorder.deliveries[1].token, requeue: false)
    script.acknowledge(0, 2)
    let frames = script.heard()
    #expect(frames.map(\.name) == ["60.90", "60.80"])
    #expect(frames[0].tag == 2 && !frames[0].flag && frames[1].tag == 3 && frames[1].flag)
  }

  @Test("What is asked about a queue is answered in turn, and never where the channel is lost before")
  func inspected() {
    let script = ConsumerScript(queues: 2)
    var answers: [String] = []
    script.consumer.inspect(queue: 1) { answers.append("1: \($0)") }
    script.consumer.inspect(queue: 0) { answers.append("0: \($0)") }
    let frames = script.heard()
    #expect(frames.map(\.name) == ["50.10", "50.10"] && frames.map(\.channel) == [1, 1])
    // Reserved, the queue's name, and of the flags `passive` and `durable`, which counts for nothing beside it.
    #expect(frames[0].payload.dropFirst(4) == [0, 0] + Say.short("q1")[...] + [3, 0, 0, 0, 0])
    script.say(Say.queueDeclareOK("q1", consumers: 3), Say.message(1), Say.queueDeclareOK("q0", consumers: 0))
    #expect(answers == ["1: 3", "0: 0"] && script.recorder.deliveries.count == 1)
    script.consumer.inspect(queue: 0) { answers.append("\($0)") }
    script.say(Say.channelClose(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out."))
    script.say(ConsumerScript.consuming(2, opening: 2))
    #expect(script.consumer.isReady && answers.count == 2)
    script.say(Say.queueDeclareOK("q0", consumers: 1))
    #expect(!script.driver.isOpen && answers.count == 2)
    script.consumer.inspect(queue: 0) { answers.append("\($0)") }
    #expect(answers.count == 2)
  }

  @Test("A channel closed for holding a delivery too long is opened again, and its tokens are void")
  func consumerTimeout() {
    let script = ConsumerScript(queues: 2)
    script.say(Say.message(1), Say.message(2))
    script.acknowledge(1)
    let text = "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used: 60000 ms"
    script.say(Say.channelClose(406, text))
    #expect(script.recorder.events == [.channelLost(.consumerTimeout(text))])
    #expect(script.heard().map(\.name) == ["20.41", "20.10", "60.10", "60.20", "60.10", "60.20"])
    script.acknowledge(0, 1)
    #expect(script.heard().isEmpty)
    script.say(ConsumerScript.consuming(2, opening: 2), Say.message(1, consumer: "0.2", redelivered: true))
    #expect(script.recorder.events.last == .ready)
    script.acknowledge(2)
    #expect(script.heard().map(\.tag) == [1])
  }

  @Test("What the broker still says on a channel that it has closed is not taken for the next one's")
  func formerChannel() {
    let script = ConsumerScript(queues: 2)
    script.say(Say.message(1), Say.channelClose(406, "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out."))
    // Before the next one is open, after it, and between its own deliveries; also one in parts, and one without a body.
    script.say(Say.message(2), Say.message(1), ConsumerScript.consuming(2, opening: 2))
    script.say(Say.message(1, "former"), Say.message(1, "first", consumer: "1.2", redelivered: true))
    script.say(
      Say.deliver(3), Say.header(size: 4), Say.body(bytes("ab")), Say.body(bytes("cd")), Say.deliver(4), Say.header(size: 0))
    script.say(Say.cancel("1.1"), Say.cancelOK("0.1"), Say.consumeOK("0.1"), Say.message(2, "second", consumer: "0.2"))
    #expect(script.recorder.deliveries.map(\.body) == [bytes("x"), bytes("first"), bytes("second")])
    #expect(script.recorder.events.count == 2 && script.recorder.events.last == .ready && script.consumer.isReady)
    _ = script.heard()
    script.acknowledge(0, 1, 2)
    let frames = script.heard()
    #expect(frames.map(\.tag) == [2] && frames[0].flag)
    // Nobody can be told anything by a channel that is yet to come.
    script.say(Say.message(3, consumer: "0.3"))
    #expect(!script.driver.isOpen)
  }

  @Test("A delivery that stays in hand costs nothing while a million others come and go")
  func straggler() {
    var window = AcknowledgementWindow()
    var told = 0
    var last: UInt64 = 0
    var isTaken = true
    for tag in 1...1_000_000 as ClosedRange<UInt64> {
      isTaken = window.delivered(tag) && isTaken
      guard tag > 3 else { continue }
      isTaken = window.acknowledge(tag) && isTaken
      if window.waiting > ConsumerChannel.scatteredLimit {
        if window.takePrefix() != nil { Issue.record("covered what is in hand") }
        window.takeScattered {
          told += 1
          last = max(last, $0)
        }
      }
    }
    window.takeScattered {
      told += 1
      last = max(last, $0)
    }
    #expect(isTaken && told == 999_997 && last == 1_000_000 && window.inHand == 3 && window.span == 256)
    let isAgain = window.acknowledge(500_000)
    #expect(!isAgain)
    // Those that stayed are acknowledged as any other, and then batches are possible again.
    let isStraggler = [window.acknowledge(2), window.settle(1), window.acknowledge(1), window.acknowledge(3)]
    #expect(isStraggler == [true, true, false, true])
    let late = window.takePrefix()
    #expect(late?.tag == 3 && late?.multiple == true)
    for tag in 1_000_001...1_000_010 as ClosedRange<UInt64> { if window.delivered(tag) { _ = window.acknowledge(tag) } }
    let batch = window.takePrefix()
    #expect(batch?.tag == 1_000_010 && batch?.multiple == true && window.waiting == 0)
  }

  @Test("Whatever is acknowledged in whatever order, each is told once and none that is in hand is covered")
  func acknowledgementsAtRandom() {
    for seed in 0..<40 as Range<UInt64> {
      var generator = SeededGenerator(seed: seed)
      var window = AcknowledgementWindow()
      var next: UInt64 = 1
      var held: [UInt64] = []
      var waiting: Set<UInt64> = []
      var isTaken = true
      for _ in 0..<20_000 {
        switch Int.random(in: 0..<8, using: &generator) {
        case 0..<3 where held.count < 700:
          isTaken = window.delivered(next) && isTaken
          held.append(next)
          next += 1
        case 3..<6 where !held.isEmpty:
          // Mostly the newest, so that some stay for long.
          let place = Bool.random(using: &generator) ? held.count - 1 : Int.random(in: 0..<held.count, using: &generator)
          let tag = held.remove(at: place)
          if Int.random(in: 0..<20, using: &generator) == 0 {
            isTaken = window.settle(tag) && isTaken
          } else {
            isTaken = window.acknowledge(tag) && isTaken
            waiting.insert(tag)
          }
        case 6:
          guard let (tag, multiple) = window.takePrefix() else { continue }
          let covered = waiting.filter { $0 <= tag }
          #expect(waiting.contains(tag) && held.allSatisfy { $0 > tag } && multiple == (covered.count > 1), "seed \(seed)")
          waiting.subtract(covered)
        case 7:
          var told: Set<UInt64> = []
          window.takeScattered { isTaken = told.insert($0).inserted && isTaken }
          #expect(told == waiting, "seed \(seed)")
          waiting = []
        default: continue
        }
        guard isTaken, window.inHand == held.count, window.waiting == waiting.count else {
          Issue.record("seed \(seed)")
          return
        }
      }
    }
  }

  @Test(
    "A queue that can't be consumed at the start ends the connection with the reason",
    arguments: [404, 403, 405, 406] as [UInt16])
  func refusedQueue(_ code: UInt16) {
    let script = ConsumerScript(isReady: false)
    script.say(Script.handshake, Say.channelOpenOK(), Say.channelClose(code, "no"))
    #expect(script.heard().last?.name == "10.50")
    script.say(Say.closeOK)
    let expected: [UInt16: ConnectionEnd] = [
      404: .notFound("no"), 403: .accessRefused("no"), 405: .resourceLocked("no"), 406: .preconditionFailed("no"),
    ]
    #expect(script.recorder.events == [.ended(expected[code]!)])
  }

  @Test("A queue that is answered for late keeps the others from nothing")
  func lateAnswer() {
    let script = ConsumerScript(queues: 2, isReady: false)
    script.say(Script.handshake, Say.channelOpenOK(), Say.qosOK, Say.consumeOK("0.1"), Say.message(1))
    script.beat(60)
    #expect(script.driver.isOpen && !script.consumer.isReady && script.recorder.events.isEmpty)
    script.acknowledge(0)
    #expect(script.heard().contains { $0.name == "60.80" && $0.tag == 1 })
    script.say(Say.qosOK, Say.consumeOK("1.1"), Say.message(2, consumer: "1.1"))
    #expect(script.recorder.events == [.ready] && script.recorder.deliveries.count == 2)
  }

  @Test("A cancel by the broker is reported for its queue only, and the queue can be consumed again")
  func cancelByBroker() {
    let script = ConsumerScript(queues: 2)
    script.say(Say.cancel("1.1"), Say.message(1, consumer: "0.1"))
    #expect(script.recorder.events == [.cancelled(1)] && script.recorder.deliveries.count == 1 && !script.consumer.isReady)
    script.consumer.consume(queue: 0)
    script.consumer.consume(queue: 1)
    #expect(script.heard().map(\.name) == ["60.10", "60.20"])
    script.say(Say.qosOK, Say.consumeOK("100001.1"))
    #expect(script.recorder.events == [.cancelled(1), .ready])
    // Of the consumer that is gone already.
    script.say(Say.cancel("1.1"))
    #expect(script.consumer.isReady)
    script.say(Say.cancel("0.1", nowait: false))
    #expect(script.heard().map(\.name) == ["60.31"])
  }

  @Test("While draining, deliveries on their way are still handed over, and then the consumers are cancelled")
  func draining() {
    let script = ConsumerScript(queues: 2)
    script.say(Say.message(1))
    script.consumer.cancelConsumers()
    #expect(script.heard().map(\.name) == ["60.30", "60.30"])
    script.say(Say.message(2), Say.cancelOK("0.1"), Say.message(3, consumer: "1.1"))
    #expect(!script.consumer.isCancelled && script.recorder.deliveries.count == 3)
    script.say(Say.cancelOK("1.1"))
    #expect(script.recorder.events.isEmpty && script.consumer.isCancelled)
    // Nothing more is to come: acknowledgements wait for each other.
    script.acknowledge(0, 1)
    #expect(script.heard().isEmpty)
    script.acknowledge(2)
    #expect(script.wait(ConsumerChannel.longestDelay).map(\.tag) == [3])
  }

  @Test("While draining, a consumer that is still starting is cancelled only when it has started")
  func drainingAtStart() {
    let script = ConsumerScript(queues: 2, isReady: false)
    script.say(Script.handshake, Say.channelOpenOK(), Say.qosOK, Say.consumeOK("0.1"))
    _ = script.heard()
    script.consumer.cancelConsumers()
    #expect(script.heard().map(\.name) == ["60.30"])
    script.say(Say.qosOK, Say.consumeOK("1.1"))
    #expect(script.heard().map(\.name) == ["60.30"])
    script.say(Say.cancelOK("0.1"), Say.cancelOK("1.1"))
    #expect(script.consumer.isCancelled && script.recorder.events.isEmpty)
  }

  @Test("A connection that is drained while all consumers are starting stays open")
  func drainingBeforeAll() {
    let script = ConsumerScript(isReady: false)
    script.say(Script.handshake, Say.channelOpenOK())
    _ = script.heard()
    script.consumer.cancelConsumers()
    #expect(script.heard().isEmpty)
    script.say(Say.qosOK, Say.consumeOK("0.1"), Say.cancelOK("0.1"))
    script.beat(60)
    #expect(script.driver.isOpen && script.consumer.isCancelled && script.recorder.events.isEmpty)
  }

  @Test("A consumer is ready again if the queue that the broker cancelled is no longer wanted", arguments: [false, true])
  func cancelledAndUnwanted(_ isAtStart: Bool) {
    let script = ConsumerScript(queues: 2, isReady: !isAtStart)
    if isAtStart { script.say(Script.handshake, Say.channelOpenOK(), Say.qosOK, Say.consumeOK("0.1")) }
    script.say(Say.cancel("0.1"))
    if isAtStart { script.say(Say.qosOK, Say.consumeOK("1.1")) }
    #expect(script.recorder.events == [.cancelled(0)] && !script.consumer.isReady)
    script.consumer.want(false, queue: 0)
    script.consumer.want(false, queue: 0)
    #expect(script.recorder.events == [.cancelled(0), .ready] && script.consumer.isReady)
  }

  @Test(
    "An optional consumer comes and goes under another tag each time, whichever way cancels and answers cross, and nobody is told"
  )
  func optional() {
    let script = ConsumerScript(queues: 2, optional: 1)
    let more = 2
    script.consumer.want(true, queue: more)
    #expect(script.heard().map(\.name) == ["60.10", "60.20"] && script.consumer.isReady)
    script.consumer.want(false, queue: more)
    #expect(script.heard().isEmpty)
    script.say(Say.qosOK, Say.consumeOK("2.1"), Say.message(1, consumer: "2.1"))
    #expect(script.heard().map(\.name) == ["60.30"])
    script.consumer.want(true, queue: more)
    script.say(Say.message(2, consumer: "2.1"))
    #expect(script.heard().isEmpty)
    script.say(Say.cancelOK("2.1"))
    #expect(script.heard().map(\.name) == ["60.10", "60.20"])
    script.say(Say.qosOK, Say.consumeOK("100002.1"), Say.message(3, consumer: "100002.1"))
    #expect(script.recorder.deliveries.map(\.consumer) == [2, 2, 2] && script.recorder.events.isEmpty)
    // What the channel had, the next one has.
    script.say(Say.channelClose(406, "PRECONDITION_FAILED - delivery acknowledgement timed out"))
    #expect(script.heard().map(\.name) == ["20.41", "20.10", "60.10", "60.20", "60.10", "60.20", "60.10", "60.20"])
    script.consumer.want(false, queue: more)
    script.say(ConsumerScript.consuming(3, opening: 2))
    #expect(script.heard().map(\.name) == ["60.30"] && script.recorder.events.last == .ready)
    script.consumer.cancelConsumers()
    script.say(Say.cancelOK("0.2"), Say.cancelOK("1.2"), Say.cancelOK("2.2"))
    #expect(script.heard().map(\.name) == ["60.30", "60.30"] && script.consumer.isCancelled)
  }

  @Test("Draining before the connection is there is done at once, and nothing is consumed then")
  func drainingEarly() {
    let script = ConsumerScript(isReady: false)
    script.consumer.cancelConsumers()
    #expect(script.consumer.isCancelled)
    script.say(Script.handshake)
    #expect(!script.heard().contains { $0.name == "60.20" })
  }

  @Test("A handler may close or drain from within a delivery")
  func reentrancy() {
    final class Closing: ConsumerHandler {
      var deliveries = 0
      var end: ConnectionEnd?
      weak var consumer: Consumer?
      func ready(_ consumer: Consumer) { self.consumer = consumer }
      func delivered(_ delivery: Delivery) {
        deliveries += 1
        consumer?.acknowledge(delivery.token)
        consumer?.close()
      }
      func cancelled(queue: Int) {}
      func channelLost(_ reason: ConnectionEnd) {}
      func ended(_ consumer: Consumer, _ reason: ConnectionEnd) { end = reason }
    }
    let handler = Closing()
    let script = Script(Consumer(settings: Script.settings, queues: [.init(queue: "q", prefetch: 9)], handler: handler))
    script.say(Script.handshake, ConsumerScript.consuming(1), Say.message(1), Say.message(2))
    #expect(handler.deliveries == 1)
    #expect(script.heard().suffix(4).map(\.name) == ["60.30", "60.80", "90.10", "90.20"])
    script.say(Say.cancelOK("0.1"), Say.transactionOK, Say.commitOK)
    #expect(script.heard().map(\.name) == ["10.50"])
    script.say(Say.closeOK)
    #expect(handler.end == .closedHere)
  }
}
