import AMQP
import TestSupport
import Testing

@Suite("Against a broker of its own", .serialized)
struct OwnBrokerTests {
  @Test(
    "After a kill -9 of the broker both machines work again, confirmed messages are there and old tokens are void",
    arguments: BrokerKind.allCases)
  func brokerKilled(_ kind: BrokerKind) throws {
    let broker = try kind.make()
    defer { broker.stop() }
    let clients = try LiveClients(broker.uri)
    let queue = try clients.makeQueue("killed")
    try clients.require("a queue that survives") { broker.isOnDisk(queue: queue) }
    try clients.consume([.init(queue: queue, prefetch: 200)])
    for tag in 0..<500 { clients.publish("", queue, properties(id: "\(tag)"), bytes("\(tag)"), tag: tag) }
    try clients.require("some confirmed") {
      clients.published.confirmedCount >= 100 && clients.consumed.deliveries.count >= 50
    }
    broker.kill9()
    try clients.require("both ended") { clients.allEnded }
    let confirmed = Set(clients.published.confirmed)
    #expect(confirmed.count + clients.published.failed.count == 500)
    let old = clients.consumed.deliveries.map(\.token)
    clients.consumed.deliveries = []
    clients.published.events = []
    clients.consumed.events = []

    try broker.restart()
    clients.connect(clients.publisher)
    clients.connect(clients.consumer!)
    try clients.require("both ready", atMost: 60) { clients.published.isReady && clients.consumed.events.last == .ready }
    for token in old { clients.consumer!.acknowledge(token) }
    clients.consumed.acknowledging = clients.consumer
    // What came together with readiness fills the prefetch until it is acknowledged.
    for delivery in clients.consumed.deliveries { clients.consumer!.acknowledge(delivery.token) }
    try clients.require("everything confirmed is delivered") {
      let arrived = clients.consumed.deliveries.compactMap { Int(String(decoding: $0.body, as: UTF8.self)) }
      return confirmed.isSubset(of: arrived)
    }
    try clients.close()
  }

  @Test(
    "A memory alarm blocks publishing, consuming goes on, and its end lets everything through", arguments: BrokerKind.allCases)
  func memoryAlarm(_ kind: BrokerKind) throws {
    let certificates = try TestCertificates.make()
    let broker = try kind.make(certificates)
    defer { broker.stop() }
    let clients = try LiveClients(broker.tlsURI, ca: certificates.authority)
    let queue = try clients.makeQueue("alarm")
    for tag in 0..<10 { clients.publish("", queue, properties(), bytes("\(tag)"), tag: tag) }
    try clients.require("confirmed") { clients.publisher.unconfirmed == 0 }
    try broker.raiseMemoryAlarm()
    clients.publish("", queue, properties(), bytes("10"), tag: 10)
    try clients.require("blocked") { clients.publisher.isBlocked }
    #expect(!clients.publisher.canPublish && clients.publisher.unconfirmed == 1)
    try clients.consume([.init(queue: queue, prefetch: 5)])
    clients.consumed.acknowledging = clients.consumer
    for delivery in clients.consumed.deliveries { clients.consumer!.acknowledge(delivery.token) }
    try clients.require("consumed despite the alarm") { clients.consumed.deliveries.count == 10 }
    try broker.clearMemoryAlarm()
    try clients.require("unblocked and confirmed") { clients.published.events.last == .confirmed(10) }
    #expect(clients.published.events.contains(.unblocked) && clients.publisher.canPublish)
    try clients.close()
  }
}
