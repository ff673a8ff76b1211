import AMQP
import MachineDriver
import TestSupport
import Testing
import Wire

@Suite("Handshake and closes")
struct HandshakeTests {
  @Test("A consumer announces itself, agrees on limits and asks for each queue with its own prefetch")
  func consumerHandshake() throws {
    let script = ConsumerScript(queues: 2, isReady: false)
    #expect(script.driver.collect(at: script.now) == [0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1])
    script.say(Say.start())
    let startOK = try #require(script.heard().first)
    #expect(startOK.name == "10.11")
    for text in [
      "consumer_cancel_notify", "connection.blocked", "authentication_failure_close", "basic.nack", "PLAIN", "\0me\0secret",
    ] {
      #expect(startOK.payload.firstRange(of: bytes(text)) != nil, "\(text)")
    }
    script.say(Say.tune(channelMax: 2047, frameMax: 8192, heartbeat: 60))
    let answers = script.heard()
    #expect(answers.map(\.name) == ["10.31", "10.40"])
    #expect(answers[0].payload[4...] == [0, 1, 0, 0, 0x20, 0, 0, 10])
    #expect(answers[1].payload[4...] == [1, 0x2f, 0, 0])
    script.say(Say.openOK)
    let opening = script.heard()
    #expect(opening.map(\.name) == ["20.10", "60.10", "60.20", "60.10", "60.20"])
    #expect(opening[1].payload[4...] == [0, 0, 0, 0, 0, 10, 0] && opening[3].payload[4...] == [0, 0, 0, 0, 0, 20, 0])
    script.say(Say.channelOpenOK() + Say.qosOK + Say.consumeOK("0.1") + Say.qosOK)
    #expect(script.recorder.events.isEmpty)
    script.say(Say.consumeOK("1.1"))
    #expect(script.recorder.events == [.ready] && script.consumer.isReady)
  }

  @Test("A user that the certificate proves is not named, and the response is empty")
  func external() throws {
    let script = PublisherScript(broker: BrokerURI(host: "broker", user: "", password: "", isTLS: true, isExternal: true))
    _ = script.heard()
    script.say(Say.start(mechanisms: "PLAIN EXTERNAL"))
    let startOK = try #require(script.heard().last)
    #expect(startOK.name == "10.11")
    #expect(startOK.payload.suffix(19) == (Say.short("EXTERNAL") + Say.long([]) + Say.short("en_US"))[...])
    script.say(Say.tune() + Say.openOK, Say.channelOpenOK(), Say.selectOK)
    #expect(script.publisher.isReady)
  }

  @Test("A broker that doesn't offer EXTERNAL gets no other login")
  func noExternal() {
    let script = PublisherScript(broker: BrokerURI(host: "broker", user: "me", password: "", isTLS: true, isExternal: true))
    script.say(Say.start())
    #expect(script.recorder.events == [.ended(.authenticationRefused("the broker doesn't offer EXTERNAL"))])
  }

  @Test(
    "Without heartbeats on the broker's side ours is asked for", arguments: [(0, 10), (5, 5), (60, 10)] as [(UInt16, UInt8)])
  func heartbeatAgreed(_ offered: UInt16, _ agreed: UInt8) {
    let script = PublisherScript(isReady: false)
    _ = script.heard()
    script.say(Say.start())
    _ = script.heard()
    script.say(Say.tune(heartbeat: offered))
    #expect(script.heard().first?.payload.last == agreed)
  }

  @Test(
    "The broker's product and version are known, and a release has two numbers",
    arguments: [("3.10.8", 3, 10), ("4.1.0-rc.1", 4, 1), ("4", nil, nil), ("", nil, nil), ("next", nil, nil)])
  func server(version: String, major: Int?, minor: Int?) throws {
    let script = ConsumerScript(isReady: false)
    #expect(script.consumer.server == nil)
    let properties: FieldTable = ["product": .text("RabbitMQ"), "version": .text(version), "platform": .integer(1)]
    script.say(Say.start(properties: properties.encoded))
    let server = try #require(script.consumer.server)
    #expect(server.product == "RabbitMQ" && server.version == version)
    #expect(server.release?.major == major && server.release?.minor == minor)
  }

  @Test("A handshake that stops on its way ends at its deadline", arguments: [0, 1, 2, 3, 4])
  func handshakeDeadline(_ steps: Int) {
    let script = ConsumerScript(isReady: false)
    let frames = [Say.start(), Say.tune(heartbeat: 0), Say.openOK, Say.channelOpenOK()]
    for frame in frames.prefix(steps) { script.say(frame) }
    _ = script.heard()
    script.wait(9.9)
    #expect(script.recorder.events.isEmpty)
    script.wait(0.2)
    #expect(script.recorder.events == [.ended(.handshakeTimedOut)])
  }

  @Test(
    "A close in the handshake says what is refused",
    arguments: [
      (Say.start() + Say.close(403, "ACCESS_REFUSED"), ConnectionEnd.authenticationRefused("ACCESS_REFUSED")),
      (Say.start() + Say.tune() + Say.close(530, "NOT_ALLOWED - vhost nope"), .virtualHostRefused("NOT_ALLOWED - vhost nope")),
      (Say.start(mechanisms: "EXTERNAL"), .authenticationRefused("the broker doesn't offer PLAIN")),
      (Script.handshake + Say.close(320, "CONNECTION_FORCED"), .closedByOperator("CONNECTION_FORCED")),
      (Script.handshake + Say.close(541, "INTERNAL_ERROR"), .closedByBroker(code: 541, "INTERNAL_ERROR")),
    ])
  func closeByBroker(_ said: [UInt8], _ end: ConnectionEnd) {
    let script = ConsumerScript(isReady: false)
    script.say(said)
    #expect(script.recorder.events == [.ended(end)])
    #expect(!end.isFatalConfiguration)
  }

  @Test("A close by the broker is answered before the transport ends")
  func closeAnswered() {
    let script = PublisherScript()
    script.driver.receive(Say.close(320, "bye"), at: script.now)
    #expect(script.publisher.isFinished)
    #expect(script.heard().map(\.name) == ["10.51"])
  }

  @Test("An orderly close flushes acknowledgements, waits for the answer, and gives up after a while")
  func orderlyClose() {
    for isAnswered in [true, false] {
      let script = ConsumerScript()
      script.say(Say.message(1), Say.message(2), Say.message(3))
      script.acknowledge(0, 2)
      script.consumer.close()
      let frames = script.heard()
      #expect(frames.acknowledged == [1, 3] && frames.last?.name == "90.20")
      script.say(Say.message(4), Say.cancelOK("0.1"), Say.transactionOK, Say.commitOK, Say.commitOK)
      #expect(script.heard().map(\.name) == ["10.50"])
      #expect(script.recorder.deliveries.count == 3)
      if isAnswered { script.say(Say.closeOK) } else { script.wait(5.1) }
      #expect(script.recorder.events == [.ended(.closedHere)])
    }
  }

  @Test("The transport's end is reported once, with its reason, and the machine works on a new transport")
  func reconnect() {
    let script = ConsumerScript()
    script.say(Say.message(1))
    let old = script.recorder.deliveries[0].token
    script.driver.finish(.failed("reset"), at: script.now)
    #expect(script.recorder.events == [.ended(.transport(.failed("reset")))])
    #expect(script.consumer.unacknowledged == 0 && script.consumer.deadline == .distantFuture)
    let second = Script(script.consumer)
    second.say(Script.handshake, ConsumerScript.consuming(1, opening: 3), Say.message(1, consumer: "0.3", redelivered: true))
    _ = second.heard()
    #expect(script.recorder.events.last == .ready)
    script.consumer.acknowledge(old)
    #expect(second.heard().isEmpty)
    script.acknowledge(1)
    #expect(second.heard().map(\.tag) == [1])
  }

  @Test(
    "A machine that is closed while its transport is connecting drops it, and says so; a later transport reports its own end")
  func closedWhileConnecting() {
    let recorder = ConsumerRecorder()
    let consumer = Consumer(settings: Script.settings, queues: [.init(queue: "q", prefetch: 1)], handler: recorder)
    let now = MonotonicTime(nanoseconds: 1_000_000_000_000)
    for close in [consumer.close, consumer.closeInTurn] {
      let driver = MachineDriver(consumer)
      close()
      // The transport may open in the same turn.
      driver.open(at: now)
      #expect(driver.settle(at: now) && recorder.events == [.ended(.closedHere)])
      MachineDriver(consumer).finish(.connectFailed("refused"), at: now)
      #expect(recorder.events.last == .ended(.transport(.connectFailed("refused"))))
      recorder.events = []
    }
  }

  @Test("A close has all of its time, however long the connection has been quiet")
  func closedAfterSilence() {
    let script = ConsumerScript()
    script.wait(4.5)
    script.consumer.close()
    script.wait(4.9)
    #expect(script.recorder.events.isEmpty)
    script.wait(0.2)
    #expect(script.recorder.events == [.ended(.closedHere)])
  }
}
