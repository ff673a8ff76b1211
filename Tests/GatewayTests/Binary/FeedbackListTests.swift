import AMQP
import Broker
import MachineDriver
import PushCore
import Testing
import Wire

@testable import Gateway

private final class TestReader: FeedbackReader {
  private(set) var entries = 0
  private(set) var isEnded = false
  func feedbackCame(_ tuples: [UInt8]) { entries += 1 }
  func feedbackEnded() { isEnded = true }
  func feedbackFailed() {}
}

@Suite("A reader of an application's feedback list")
struct FeedbackListTests {
  private let time = Turn(now: MonotonicTime(nanoseconds: 0), wallClock: 0)
  private let reader = TestReader()
  private let list: FeedbackList
  private let broker: MachineDriver

  /// A list of three entries.
  init() throws {
    let address = BrokerAddress(uri: BrokerURI(host: "broker", user: "me", password: "secret"), tls: nil)
    var driver: MachineDriver?
    let connection = BrokerConnection(time: time, brokers: [address], name: "test") { machine, _ in
      let made = MachineDriver(machine)
      driver = made
      return made
    }
    list = FeedbackList(queue: "q", listsBadTokens: true, time: time, reader: reader)
    list.begin(count: 3, connection: connection) { _ in }
    broker = try #require(driver)
    list.ready(try #require(broker.machine as? Consumer))
  }

  private func deliver(_ event: FeedbackEvent.Event = .notRegistered) {
    var delivery = Delivery()
    delivery.body = FeedbackEvent(
      event: event, app: Array("a".utf8), platform: .apns, token: Array("0af1".utf8), reason: "Unregistered",
      status: 410, invalidSince: 0, messageID: Array("m".utf8), observedAt: 0, details: FeedbackEvent.Details(kind: nil)
    ).json()
    list.delivered(delivery)
  }

  private func pass(_ seconds: Double) {
    time.begin(now: time.now.advanced(bySeconds: seconds), wallClock: 0)
    time.runTimers()
  }

  @Test("completes with the last entry and acknowledges what was read")
  func whole() {
    for event in [.notRegistered, .invalidRegistration, .notRegistered] as [FeedbackEvent.Event] { deliver(event) }
    #expect(reader.isEnded)
    list.settle(isTaken: true)
    #expect(reader.entries == 3 && list.taken == 3)
  }

  @Test("neither writes nor acknowledges an entry that comes after a second of silence")
  func late() {
    for _ in 0..<2 { deliver() }
    pass(1)
    pass(1)
    #expect(reader.isEnded)
    deliver()
    list.settle(isTaken: true)
    #expect(reader.entries == 2 && list.taken == 2)
  }

  @Test("ignores an entry that comes after the list is settled")
  func settled() {
    deliver()
    list.settle(isTaken: false)
    deliver()
    #expect(reader.entries == 1 && !reader.isEnded && list.taken == 0)
  }

  @Test("whose peer leaves while it is connecting gives its connection up")
  func leftWhileConnecting() {
    list.settle(isTaken: false)
    #expect(broker.settle(at: time.now))
  }
}
