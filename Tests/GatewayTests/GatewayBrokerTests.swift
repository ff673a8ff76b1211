import AMQP
import Broker
import Logging
import Reactor
import Testing

@testable import Gateway

@Suite("The gateway's connection to the broker")
struct GatewayBrokerTests {
  @Test("leaves no timer of a late answer behind when it ends")
  func late() throws {
    let loop = try EventLoop()
    let address = BrokerAddress(uri: try BrokerURI(parsing: "amqp://guest:guest@127.0.0.1:1/"), tls: nil)
    let broker = GatewayBroker(
      loop: loop, topology: Topology(ladder: []), brokers: [address], log: Log(level: .error), figures: GatewayFigures())
    broker.forget(broker.expectAnswer { _ in Issue.record("an answer") }, after: 600)
    #expect(broker.expected == 1 && loop.time.nextTimer < .distantFuture)
    broker.start()
    for _ in 0..<1_000 where broker.expected > 0 { loop.turn(waitingAtMost: 0.01) }
    // Nor one to connect again.
    broker.close {}
    #expect(broker.expected == 0 && loop.time.nextTimer == .distantFuture)
  }
}
