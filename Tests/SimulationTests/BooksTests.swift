import AMQP
import Testing

@testable import BrokerModel
@testable import Simulation

@Suite("The books of a simulated fleet")
struct BooksTests {
  @Test("expect a push to be sent at once where nothing befalls the fleet, nor has a moment ago")
  func calm() {
    var calm = Calm()
    #expect(!calm.holds(at: 1, for: 2) && calm.holds(at: 3, for: 2))
    calm.note(.brokerCrash, from: 20, for: 10)
    calm.note(.goAway, from: 60, for: 5)
    calm.fewGoAways(since: 60)
    #expect(
      calm.holds(at: 17, for: 2) && !calm.holds(at: 19, for: 2) && !calm.holds(at: 34, for: 2) && calm.holds(at: 35, for: 2))
    #expect(!calm.holds(at: 66, for: 2) && calm.holds(at: 67, for: 2))
    calm.note(.pathDead, from: 90, for: 0)
    #expect(calm.holds(at: 87, for: 2) && !calm.holds(at: 88, for: 2) && !calm.holds(at: 95, for: 2))
  }

  @Test("expect what has waited for the broker to be sent soon after its return, and what comes after a GOAWAY as soon")
  func latest() {
    var calm = Calm()
    #expect(calm.latest(for: 0) == 3 && calm.latest(for: 2) == 4)
    calm.note(.brokerCrash, from: 20, for: 10)
    calm.note(.brokerFrozen, from: 34, for: 6)
    #expect(
      calm.latest(for: 17) == 19 && calm.latest(for: 19) == 45 && calm.latest(for: 41) == 45 && calm.latest(for: 45) == 47)
    calm.note(.goAway, from: 60, for: 5)
    #expect(calm.latest(for: 65) == 77)
    calm.fewGoAways(since: 60)
    #expect(
      calm.latest(for: 57) == 59 && calm.latest(for: 61) == nil && calm.latest(for: 65) == 67 && calm.latest(for: 70) == 72)
    calm.note(.pathDead, from: 90, for: 0)
    #expect(calm.latest(for: 87) == 89 && calm.latest(for: 88) == nil && calm.latest(for: 1_000) == nil)
    #expect(Calm(isKnown: false).latest(for: 10) == nil)
    var unconfirmed = Calm()
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
