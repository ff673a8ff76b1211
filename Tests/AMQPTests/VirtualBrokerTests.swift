import AMQP
import BrokerModel
import TestSupport
import Testing
import Wire

@Suite("A broker in memory")
struct VirtualBrokerTests {
  @Test("What is published is confirmed, delivered and, once acknowledged, gone")
  func way() throws {
    let clients = try VirtualClients()
    try clients.declare("q")
    let (consumer, recorder) = try clients.consume([.init(queue: "q", prefetch: 3)])
    clients.publish(1...5, to: "q")
    #expect(clients.published.confirmed == [1, 2, 3, 4, 5])
    #expect(recorder.numbers == [1, 2, 3] && recorder.deliveries.allSatisfy { !$0.redelivered })
    #expect(recorder.deliveries[0].properties.messageID == bytes("1") && recorder.counts == [0, 0, 0])
    #expect(clients.broker.depth(of: "q") == .init(ready: 2, unacknowledged: 3, deadLetters: 0, consumers: 1))
    for delivery in recorder.deliveries { consumer.acknowledge(delivery.token) }
    clients.exchange()
    #expect(recorder.numbers == [1, 2, 3, 4, 5])
    for delivery in recorder.deliveries { consumer.acknowledge(delivery.token) }
    clients.advance(by: 60)
    #expect(clients.broker.isQuiet && clients.broker.messages(in: "q").isEmpty)
    #expect(recorder.events == [.ready] && clients.published.end == nil)
  }

  @Test("The fleet's topology can be declared twice, and a queue with other arguments is refused")
  func topology() throws {
    let clients = try VirtualClients()
    let topology = Topology(ladder: [RetryStep(name: "1s", delay: 1000)])
    try clients.declare(topology)
    try clients.declare(topology)
    let other = Command.queueDeclare(name: topology.name("retry.1s"), arguments: ["x-message-ttl": .integer(2000)])
    guard case .failure(.topologyMismatch) = try clients.perform(other) else {
      Issue.record("other arguments were accepted")
      return
    }
  }
}
