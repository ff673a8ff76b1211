import AMQP
import TestSupport
import Testing
import Wire

@Suite("Heartbeats")
struct HeartbeatTests {
  @Test("An idle connection sends one every half interval, for hours, and lives on those of the broker")
  func idle() {
    let script = ConsumerScript()
    for _ in 0..<720 {
      let sent = script.wait(5)
      #expect(sent.map(\.name) == ["heartbeat"])
      script.say(Say.heartbeat)
    }
    #expect(script.recorder.events.isEmpty)
  }

  @Test("A silent broker is dead after two intervals")
  func silence() {
    let script = PublisherScript()
    script.publish(0..<2)
    script.wait(19.9)
    #expect(script.recorder.events.isEmpty)
    script.wait(0.2)
    #expect(script.recorder.events == [.failed(0, .connectionLost), .failed(1, .connectionLost), .ended(.heartbeatMissed)])
  }

  @Test(
    "A broker that isn't read is not silent: for as long as that lasts it gets heartbeats, and two intervals after it is read again"
  )
  func unread() {
    let script = ConsumerScript()
    script.driver.isReadingPaused = true
    let sent = script.wait(3600)
    #expect(sent.count == 720 && sent.allSatisfy { $0.name == "heartbeat" } && script.recorder.events.isEmpty)
    script.driver.isReadingPaused = false
    script.wait(1)
    script.say(Say.heartbeat)
    script.wait(19.9)
    #expect(script.recorder.events.isEmpty)
    script.wait(0.2)
    #expect(script.recorder.events == [.ended(.heartbeatMissed)])
  }

  @Test("Whoever stood still for two intervals takes nothing of what came meanwhile: the broker has given it to others")
  func standstill() {
    let script = ConsumerScript()
    script.standStill(19)
    script.say(Say.heartbeat)
    #expect(script.recorder.events.isEmpty)
    script.wait(1)
    script.standStill(20)
    script.say(Say.message(1, "stale"))
    #expect(script.recorder.deliveries.isEmpty && script.recorder.events == [.ended(.stoodStill)])
  }

  @Test("Whoever has just written sends no heartbeat")
  func busy() {
    let script = PublisherScript()
    for step in 0..<10 {
      script.publish(step..<step + 1)
      #expect(!script.heard().contains { $0.name == "heartbeat" })
      #expect(script.wait(2).isEmpty)
      script.say(Say.ack(UInt64(step + 1)))
    }
  }

  @Test("Nothing happens when both sides agree on none")
  func off() {
    let recorder = PublisherRecorder()
    var settings = Script.settings
    settings.heartbeat = 0
    let publisher = Publisher(settings: settings, handler: recorder)
    let script = Script(publisher)
    script.say(Say.start() + Say.tune(heartbeat: 0) + Say.openOK, Say.channelOpenOK(), Say.selectOK)
    _ = script.heard()
    #expect(script.wait(3600).isEmpty && recorder.events == [.ready])
  }
}
