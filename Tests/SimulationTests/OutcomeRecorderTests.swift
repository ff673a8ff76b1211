import AMQP
import Testing

@testable import BrokerModel
@testable import Simulation

@Suite("The outcome recorder of a simulated fleet")
struct OutcomeRecorderTests {
  @Test("expect a push to be sent at once where nothing befalls the fleet, nor has a moment ago")
  func calm() {
    var faultFreeTimes = FaultFreeTimes()
    #expect(!faultFreeTimes.holds(at: 1, for: 2) && faultFreeTimes.holds(at: 3, for: 2))
    faultFreeTimes.note(.brokerCrash, from: 20, for: 10)
    faultFreeTimes.note(.goAway, from: 60, for: 5)
    faultFreeTimes.fewGoAways(since: 60)
    #expect(
      faultFreeTimes.holds(at: 17, for: 2) && !faultFreeTimes.holds(at: 19, for: 2) && !faultFreeTimes.holds(at: 34, for: 2)
        && faultFreeTimes.holds(at: 35, for: 2))
    #expect(!faultFreeTimes.holds(at: 66, for: 2) && faultFreeTimes.holds(at: 67, for: 2))
    faultFreeTimes.note(.pathDead, from: 90, for: 0)
    #expect(
      faultFreeTimes.holds(at: 87, for: 2) && !faultFreeTimes.holds(at: 88, for: 2) && !faultFreeTimes.holds(at: 95, for: 2))
  }

  @Test("expect what has waited for the broker to be sent soon after its return, and what comes after a GOAWAY as soon")
  func latest() {
    var faultFreeTimes = FaultFreeTimes()
    #expect(faultFreeTimes.latest(for: 0) == 3 && faultFreeTimes.latest(for: 2) == 4)
    faultFreeTimes.note(.brokerCrash, from: 20, for: 10)
    faultFreeTimes.note(.brokerFrozen, from: 34, for: 6)
    #expect(
      faultFreeTimes.latest(for: 17) == 19 && faultFreeTimes.latest(for: 19) == 45 && faultFreeTimes.latest(for: 41) == 45
        && faultFreeTimes.latest(for: 45) == 47)
    faultFreeTimes.note(.goAway, from: 60, for: 5)
    #expect(faultFreeTimes.latest(for: 65) == 77)
    faultFreeTimes.fewGoAways(since: 60)
    #expect(
      faultFreeTimes.latest(for: 57) == 59 && faultFreeTimes.latest(for: 61) == nil && faultFreeTimes.latest(for: 65) == 67
        && faultFreeTimes.latest(for: 70) == 72)
    faultFreeTimes.note(.pathDead, from: 90, for: 0)
    #expect(
      faultFreeTimes.latest(for: 87) == 89 && faultFreeTimes.latest(for: 88) == nil && faultFreeTimes.latest(for: 1_000) == nil)
    #expect(FaultFreeTimes(isKnown: false).latest(for: 10) == nil)
    var unconfirmed = FaultFreeTimes()
    unconfirmed.note(.outcomesUnconfirmed, from: 20, for: 30)
    unconfirmed.note(.connectionsClosed, from: 40, for: 0)
    #expect(unconfirmed.latest(for: 39) == 55)
    unconfirmed.note(.connectionsClosed, from: 60, for: 0)
    #expect(unconfirmed.latest(for: 61) == 65)
  }

  @Test("allow one push for each copy that was given out")
  func copies() {
    let producer = Client(number: 1, name: "producer")
    let worker = Client(number: 2, name: "worker")
    var copies = Copies()
    copies.published(1, "a", by: producer)
    #expect(copies.mostSends == ["a": 1])
    copies.published(2, "a", by: worker)
    #expect(copies.mostSends == ["a": 2])
    copies.confirmed(2)
    #expect(copies.mostSends == ["a": 1])
    copies.cameBack("a")
    #expect(copies.mostSends == ["a": 2])
    copies.came("a")
    copies.came("a")
    copies.left("a")
    #expect(copies.waiting(of: "a") == 1 && copies.waiting(of: "b") == 0)
  }

  @Test("forget what a process has published when it ends, and what the broker reads of its connections after that")
  func consequences() {
    let result = Message(
      number: 1, exchange: [], routingKey: Array("push.results".utf8), properties: BasicProperties(), encodedProperties: [],
      body: [1])
    var consequences = Consequences()
    consequences.published(result, "a", by: "worker 0", on: 3)
    #expect(consequences.unconfirmed(of: "a", by: "worker 0") == 1)
    consequences.ended("worker 0", connections: [3, 4])
    consequences.published(result, "a", by: "worker 0", on: 4)
    #expect(consequences.unconfirmed(of: "a", by: "worker 0") == 0)
    consequences.published(result, "a", by: "worker 0", on: 5)
    #expect(consequences.unconfirmed(of: "a", by: "worker 0") == 1)
    consequences.confirmed(result, "a", to: "worker 0")
    #expect(consequences.unconfirmed(of: "a", by: "worker 0") == 0)
  }

  @Test("take a device for what the last change in the queue makes of it")
  func changes() {
    var ledger = RegistryLedger()
    for (number, operation) in [RegistryOrder.Operation.subscribe, .unsubscribe, .subscribe].enumerated() {
      ledger.expect(RegistryOrder(number: number, app: 0, device: 1, operation: operation))
    }
    for id in ["change-0", "change-2", "change-1"] { ledger.enqueued(id) }
    #expect(ledger.last.map(\.number) == [1])
    ledger.dropped("change-1")
    #expect(ledger.last.map(\.number) == [2])
    ledger.enqueued("change-0")
    #expect(ledger.last.map(\.number) == [0])
  }
}
