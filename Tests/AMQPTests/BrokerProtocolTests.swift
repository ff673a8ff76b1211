import BrokerModel
import MachineDriver
import TestSupport
import Testing
import Wire

/// What the fleet's own machines never provoke, or can't see.
@Suite("A broker in memory, frame by frame")
struct BrokerProtocolTests {
  @Test("The handshake offers PLAIN, RabbitMQ's frame size and heartbeat, and opens the virtual host")
  func handshake() throws {
    let broker = VirtualBroker()
    let client = try RawClient(broker)
    let said = ClientFrame.parse(client.driver.transcript)
    #expect(said.map(\.name) == ["10.10", "10.30", "10.41", "20.11"])
    #expect(said[1].payload.dropFirst(4) == Say.tune().dropFirst(11).dropLast())
    #expect(broker.clients.map(\.number) == [1])
  }

  @Test("What no queue wants comes back before its confirm, and confirms of one output are put together")
  func returnFirst() throws {
    let client = try RawClient(VirtualBroker())
    _ = client.say(RawClient.select + RawClient.declare("q"))
    let answers = client.say(
      RawClient.publish("q", "1") + RawClient.publish("none", "2") + RawClient.publish("q", "3")
        + RawClient.publish("none", "", mandatory: false))
    #expect(answers.map(\.name) == ["60.50", "header", "body", "60.80"])
    #expect(answers[3].tag == 4 && answers[3].flag)
  }

  @Test("An unknown delivery tag closes the channel, and what it had in hand comes back once the client has answered")
  func unknownTag() throws {
    let broker = VirtualBroker()
    let client = try RawClient(broker)
    _ = client.say(RawClient.declare("q", arguments: RawClient.quorum) + RawClient.qos(1) + RawClient.consume("q", tag: "a"))
    _ = client.say(RawClient.publish("q", "1") + RawClient.publish("q", "2"))
    #expect(broker.depth(of: "q") == .init(ready: 1, unacknowledged: 1, consumers: 1))
    let refused = client.say(Say.ack(7))
    #expect(refused.map(\.name) == ["20.40"] && refused[0].refusal == "406 PRECONDITION_FAILED - unknown delivery tag 7")
    // Nothing that the client still says counts.
    #expect(client.say(Say.ack(1) + RawClient.publish("q", "3")).isEmpty)
    #expect(broker.depth(of: "q")?.unacknowledged == 1)
    _ = client.say(RawClient.closeOK)
    #expect(broker.depth(of: "q") == .init(ready: 2) && broker.messages(in: "q").map(\.body) == [bytes("1"), bytes("2")])
  }

  @Test("A channel that is closed delivers what its consumers have room for until the client has answered")
  func closingDelivers() throws {
    let broker = VirtualBroker()
    let client = try RawClient(broker)
    _ = client.say(RawClient.declare("q", arguments: RawClient.quorum) + RawClient.qos(2) + RawClient.consume("q", tag: "a"))
    _ = client.say(Say.ack(9))
    let other = try RawClient(broker)
    for body in ["1", "2", "3"] { _ = other.say(RawClient.publish("q", body)) }
    #expect(client.heard().map(\.name) == ["60.60", "header", "body", "60.60", "header", "body"])
    _ = client.say(RawClient.closeOK)
    #expect(broker.depth(of: "q") == .init(ready: 3))
  }

  @Test("What the client's connection alone may use is the client's alone, and goes with it")
  func exclusiveQueue() throws {
    let broker = VirtualBroker()
    let client = try RawClient(broker)
    _ = client.say(RawClient.declare("", flags: 4))
    let name = try #require(broker.queueNames.first)
    #expect(name.hasPrefix("amq.gen-"))
    let other = try RawClient(broker)
    let refused = other.say(RawClient.declare(name, flags: 1))
    #expect(
      refused.first?.refusal.hasPrefix("405 RESOURCE_LOCKED - cannot obtain exclusive access to locked queue '\(name)'") == true
    )
    client.driver.finish(.closedByPeer, at: client.now)
    #expect(broker.queueNames.isEmpty)
  }

  @Test("Refusals have RabbitMQ's codes: of the channel where the request was, of the connection where the protocol is broken")
  func refusals() throws {
    let cases: [(frames: [UInt8], refusal: String)] = [
      (RawClient.declare("none", flags: 1), "404 NOT_FOUND - no queue 'none' in vhost '/'"),
      (RawClient.publish("k", "x", exchange: "none"), "404 NOT_FOUND - no exchange 'none' in vhost '/'"),
      (RawClient.consume("q", tag: "b", flags: 4), "403 ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"),
      (RawClient.consume("q", tag: "a"), "530 NOT_ALLOWED - attempt to reuse consumer tag 'a'"),
      (
        RawClient.declare("q", arguments: RawClient.quorum),
        "406 PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/': received the value 'quorum' of type "
          + "'longstr' but current is none"
      ),
      (
        RawClient.declare("other", flags: 0, arguments: RawClient.quorum),
        "406 PRECONDITION_FAILED - invalid property 'non-durable' for queue 'other' in vhost '/'"
      ),
      (
        RawClient.declareExchange("ring", type: "x-consistent-hash"),
        "540 NOT_IMPLEMENTED - the model hashes messages by the property message_id only"
      ),
      (
        RawClient.declareExchange("e") + RawClient.bindExchange("amq.fanout", to: "e")
          + RawClient.deleteExchange("e", flags: 1),
        "406 PRECONDITION_FAILED - exchange 'e' in vhost '/' in use"
      ),
      (RawClient.deleteExchange(""), "403 ACCESS_REFUSED - operation not permitted on the default exchange"),
      (Say.frame(8, 0, [], end: 0), "501 FRAME_ERROR - a frame without its end octet"),
      (Say.body(bytes("x")), "505 UNEXPECTED_FRAME - expected method frame, got content frame instead"),
      (RawClient.method(7, 60, 10, [0, 0, 0, 0, 0, 1, 0]), "504 CHANNEL_ERROR - expected 'channel.open'"),
    ]
    for (frames, refusal) in cases {
      let client = try RawClient(VirtualBroker())
      _ = client.say(RawClient.declare("q") + RawClient.consume("q", tag: "a"))
      #expect(client.say(frames).last?.refusal == refusal)
    }
  }

  @Test(
    "A message that dies without anywhere to go is gone, a queue takes no more than the broker's bound, no-ack is settled at once"
  )
  func bounds() throws {
    var settings = BrokerSettings()
    settings.maximumQueueLength = 2
    let broker = VirtualBroker(settings: settings)
    let client = try RawClient(broker)
    _ = client.say(RawClient.select + RawClient.declare("q"))
    let answers = client.say((1...3).flatMap { RawClient.publish("q", "\($0)") })
    #expect(answers.map(\.name) == ["60.120", "60.80"] && answers[0].tag == 3 && answers[1].tag == 2)
    _ = client.say(RawClient.consume("q", tag: "a", flags: 2))
    #expect(broker.depth(of: "q") == .init(consumers: 1) && broker.isQuiet)
  }

  @Test("Bindings of exchanges are answered unless the client wants no answer")
  func exchangeBindings() throws {
    let client = try RawClient(VirtualBroker())
    let first = client.say(
      RawClient.declare("q") + RawClient.declareExchange("e") + RawClient.bindExchange("amq.fanout", to: "e")
        + RawClient.unbind("q", from: "e") + RawClient.deleteExchange("e"))
    #expect(first.map(\.name) == ["50.11", "40.11", "40.31", "50.51", "40.21"])
    let second = client.say(
      RawClient.declareExchange("e") + RawClient.bindExchange("amq.fanout", to: "e", flags: 1)
        + RawClient.deleteExchange("amq.fanout", flags: 2) + RawClient.deleteExchange("e", flags: 2))
    #expect(second.map(\.name) == ["40.11", "20.40"])
  }

  @Test("Nothing that a client may send traps or hangs it", arguments: 0..<10 as Range<UInt64>)
  func mutated(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let honest =
      RawClient.opening + RawClient.method(1, 20, 10, Say.short("")) + RawClient.declare("q", arguments: RawClient.quorum)
      + RawClient.select + RawClient.qos(3) + RawClient.consume("q", tag: "a") + RawClient.publish("q", "one")
      + RawClient.declareExchange("e") + RawClient.bindExchange("e", to: "e") + RawClient.publish("k", "none", exchange: "e")
      + RawClient.unbind("q", from: "e") + RawClient.deleteExchange("e") + RawClient.publish("none", "two")
      + Say.ack(1) + Say.nack(0, multiple: true) + RawClient.publish("q", "three")
    for _ in 0..<25 {
      let broker = VirtualBroker()
      let driver = MachineDriver(try #require(broker.accept()))
      let now = RawClient.start
      driver.open(at: now)
      var bytes = honest
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        bytes[Int.random(in: 8..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
      }
      while !bytes.isEmpty {
        let size = min(bytes.count, Int.random(in: 1...200, using: &generator))
        driver.receive(Array(bytes.prefix(size)), at: now)
        bytes.removeFirst(size)
        _ = driver.collect(at: now)
        driver.settle(at: now)
      }
      driver.finish(.closedByPeer, at: now)
      #expect(broker.clients.isEmpty && broker.depth(of: "q")?.unacknowledged ?? 0 == 0)
    }
  }
}
