import AMQP
import Logging
import PushCore
import Reactor
import Testing
import Wire

@testable import Broker
@testable import Delivery

/// The application has no credential: a request ends with a dead letter.
@Suite("The number of acknowledged messages")
struct AcknowledgedTests {
  private let outbox: Outbox
  private let pipeline: Pipeline

  init() {
    let time = Turn(now: MonotonicTime(nanoseconds: 1_000_000_000), wallClock: 1_800_000_000_000)
    outbox = Outbox(time: time, log: Log(level: .error))
    pipeline = Pipeline(apps: Applications(Array("com.example.app".utf8)), outbox: outbox, time: time)
  }

  private var acknowledged: Int { pipeline.observers.figures.counters.acknowledged }

  private func deliver(tag: UInt64) {
    var delivery = Delivery()
    delivery.token = DeliveryToken(generation: 1, tag: tag)
    delivery.redelivered = tag > 1
    delivery.properties.messageID = Array("m".utf8)
    delivery.body = Array(#"{"to":"\#(String(repeating: "0a", count: 32))"}"#.utf8)
    delivery.bodySize = UInt64(delivery.body.count)
    pipeline.accept(delivery, from: .sendNormal)
  }

  private func confirm() { for slot in outbox.slots.indices { outbox.confirmed(slot) } }

  @Test("includes further deliveries of a request in hand")
  func repeated() {
    deliver(tag: 1)
    deliver(tag: 2)
    #expect(acknowledged == 0)
    confirm()
    #expect(acknowledged == 2 && pipeline.table.count == 0)
  }

  @Test("has a request once whose channel was lost before its end")
  func orphan() {
    deliver(tag: 1)
    pipeline.channelLost()
    confirm()
    #expect(acknowledged == 0 && pipeline.table.count == 0)
    deliver(tag: 2)
    #expect(acknowledged == 1 && pipeline.table.count == 0)
  }
}
