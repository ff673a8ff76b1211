import AMQP
import TestSupport
import Testing
import Wire

@Suite("Malformed and hostile bytes")
struct HostileBrokerTests {
  static let faults: [(name: String, bytes: [UInt8])] = [
    ("wrong end octet", Say.frame(8, 0, [], end: 0)),
    ("frame above the limit", [3, 0, 1] + Say.be(UInt32(131_072 - 7))),
    ("frame of 4 GiB", [1, 0, 0, 255, 255, 255, 255]),
    ("unknown frame type", Say.frame(9, 0, [])),
    ("heartbeat on a channel", Say.frame(8, 1, [])),
    ("unknown class", Say.method(1, 99, 1)),
    ("unknown method", Say.method(1, 60, 99)),
    (
      "method only a client may send",
      Say.method(1, 40, 10, [0, 0] + Say.short("e") + Say.short("direct") + [0] + Say.long([]))
    ),
    ("empty method frame", Say.frame(1, 1, [])),
    ("truncated method", Say.method(1, 60, 60, [1])),
    ("string longer than its frame", Say.method(1, 60, 60, [255, 0x30])),
    ("start again", Say.start()),
    ("open again", Say.openOK),
    ("method of channel 0 on channel 1", Say.method(1, 10, 60, Say.short(""))),
    ("method on an unopened channel", Say.method(3, 60, 11)),
    ("delivery for an unknown consumer", Say.deliver(1, consumer: "1.1")),
    ("delivery for a strange consumer", Say.deliver(1, consumer: "99999999999999999999")),
    ("delivery tag out of order", Say.deliver(2)),
    ("delivery tag 0", Say.deliver(0)),
    ("header without a method", Say.header(size: 1)),
    ("body without a header", Say.body([1])),
    ("body in place of a header", Say.deliver(1) + Say.body([1])),
    ("header twice", Say.deliver(1) + Say.header(size: 1) + Say.header(size: 1)),
    ("method in place of a body", Say.deliver(1) + Say.header(size: 1) + Say.deliver(2)),
    ("body longer than announced", Say.deliver(1) + Say.header(size: 1) + Say.body([1, 2])),
    ("header on channel 0", Say.deliver(1) + Say.frame(2, 0, [UInt8](repeating: 0, count: 14))),
    ("header of another class", Say.deliver(1) + Say.frame(2, 1, [0, 61, 0, 0] + Say.be(UInt64(0)) + [0, 0])),
    ("truncated header", Say.deliver(1) + Say.frame(2, 1, [0, 60, 0])),
    ("property longer than the header", Say.deliver(1) + Say.header(size: 0, flags: 1 << 15, [9, 0x61])),
    ("bytes behind the properties", Say.deliver(1) + Say.header(size: 0, flags: 0, [1])),
    ("undefined property flags", Say.deliver(1) + Say.header(size: 0, flags: 1)),
    ("confirm on a consumer's channel", Say.ack(1)),
  ]

  @Test("A fault of the broker ends the connection, once, whatever the cutting", arguments: 0..<faults.count)
  func malformed(_ index: Int) {
    for size in [1, 3, 100_000] {
      let script = ConsumerScript()
      script.say(Self.faults[index].bytes + Say.heartbeat + Say.message(1), inPiecesOf: size)
      guard case .ended(.protocolError)? = script.recorder.events.first, script.recorder.events.count == 1 else {
        Issue.record("\(Self.faults[index].name), in pieces of \(size): \(script.recorder.events)")
        return
      }
      #expect(script.recorder.deliveries.isEmpty)
      #expect(script.driver.collect(at: script.now).isEmpty)
    }
  }

  @Test("A peer that is no AMQP 0-9-1 broker is named as such", arguments: ["AMQP\0\0\u{9}\u{1}", "AMQP\u{3}\u{1}\0\0"])
  func otherProtocol(_ greeting: String) {
    let script = ConsumerScript(isReady: false)
    script.say(bytes(greeting))
    guard case .ended(.protocolError(let what))? = script.recorder.events.first else {
      Issue.record("\(script.recorder.events)")
      return
    }
    #expect(what.contains("another"))
  }

  @Test("A table bomb in the broker's own properties is a fault, not a stack overflow")
  func startBomb() {
    var bomb: [UInt8] = []
    for _ in 0..<15_000 { bomb = Say.short("a") + [UInt8(ascii: "F")] + Say.long(bomb) }
    let script = ConsumerScript(isReady: false)
    script.say(Say.start(properties: bomb))
    guard case .ended(.protocolError)? = script.recorder.events.first else {
      Issue.record("\(script.recorder.events)")
      return
    }
  }

  // Fixed seeds, as for the deliveries below: what once held goes on holding. New conversations are searched by `dev/fuzz`.
  @Test("Mutated conversations never trap, and every publish ends in exactly one outcome", arguments: 0..<40)
  func fuzzPublisher(_ seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    for _ in 0..<50 {
      let script = PublisherScript(isReady: Bool.random(using: &generator))
      var said: [[UInt8]] = [
        Script.handshake, Say.channelOpenOK(), Say.selectOK, Say.ack(1), Say.ack(3, multiple: true), Say.nack(4),
        Say.returned(key: "k", id: "5", body: bytes("b")), Say.ack(0, multiple: true), Say.blocked("b"), Say.unblocked,
        Say.channelClose(404, "no"), Say.channelOpenOK(2), Say.channelClose(406, "no", 2), Say.heartbeat, Say.closeOK,
      ]
      if script.publisher.isReady { said.removeFirst() }
      var published = 0
      for piece in mutate(said, using: &generator) {
        while script.publisher.isReady, published < 20, Bool.random(using: &generator) {
          script.publish(published..<published + 1)
          published += 1
        }
        script.say(piece)
        _ = script.driver.collect(at: script.now)
        script.wait(Double.random(in: 0...3, using: &generator))
      }
      script.driver.finish(.closedByPeer, at: script.now)
      let settled = script.recorder.confirmed + script.recorder.failed
      #expect(settled.sorted() == Array(0..<published), "seed \(seed)")
    }
  }

  @Test("Mutated deliveries never trap and never exceed what was announced", arguments: 0..<40)
  func fuzzConsumer(_ seed: Int) {
    var generator = SeededGenerator(seed: UInt64(seed))
    let table = Say.long(
      Say.short("a") + [UInt8(ascii: "F")] + Say.long(Say.short("b") + [UInt8(ascii: "A")] + Say.long([UInt8(ascii: "t"), 1])))
    for _ in 0..<50 {
      let script = ConsumerScript(maximumBody: 16)
      let said: [[UInt8]] = [
        Say.message(1, "hello"), Say.deliver(2), Say.header(size: 40, flags: 1 << 13 | 1 << 7, table + Say.short("id")),
        Say.body([UInt8](repeating: 1, count: 30)), Say.body([UInt8](repeating: 2, count: 10)), Say.cancel("0.1"),
        Say.message(3),
        Say.channelClose(406, "timed out"), ConsumerScript.consuming(1), Say.message(1, redelivered: true), Say.heartbeat,
      ]
      for piece in mutate(said, using: &generator) {
        script.say(piece, inPiecesOf: Int.random(in: 1...64, using: &generator))
        for delivery in script.recorder.deliveries {
          #expect(delivery.body.count <= 16 && UInt64(delivery.body.count) <= delivery.bodySize)
          _ = delivery.properties.headers.entries
          script.consumer.acknowledge(delivery.token)
        }
        _ = script.driver.collect(at: script.now)
      }
    }
  }

  private func mutate(_ frames: [[UInt8]], using generator: inout SeededGenerator) -> [[UInt8]] {
    var frames = frames
    for _ in 0..<Int.random(in: 0...4, using: &generator) {
      let index = Int.random(in: 0..<frames.count, using: &generator)
      switch Int.random(in: 0..<6, using: &generator) {
      case 0 where !frames[index].isEmpty:
        let position = Int.random(in: 0..<frames[index].count, using: &generator)
        frames[index][position] = UInt8.random(in: 0...255, using: &generator)
      case 1 where !frames[index].isEmpty:
        let position = Int.random(in: 0..<frames[index].count, using: &generator)
        frames[index][position] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      case 2: frames[index].removeLast(Int.random(in: 0...frames[index].count, using: &generator))
      case 3: frames.insert(frames[index], at: Int.random(in: 0...frames.count, using: &generator))
      case 4: frames.swapAt(index, Int.random(in: 0..<frames.count, using: &generator))
      default:
        frames[index] += (0..<Int.random(in: 0..<20, using: &generator)).map { _ in UInt8.random(in: 0...255, using: &generator)
        }
      }
    }
    return frames
  }
}
