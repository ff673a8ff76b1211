import AMQP
import Broker
import Reactor
import Testing
import Wire

@Suite("The connection to the broker")
struct BrokerConnectionTests {
  private func time(_ seconds: Double) -> MonotonicTime { MonotonicTime(nanoseconds: 0).advanced(bySeconds: seconds) }

  @Test("a broker that accepts and closes at once is dialled less and less often; after a longer connection it is dialled soon")
  func heldBriefly() throws {
    let loop = try EventLoop()
    let connection = BrokerConnection(
      loop: loop, brokers: [BrokerAddress(uri: try BrokerURI(parsing: "amqp://127.0.0.1"), tls: nil)], name: "test")
    var pauses: [Double] = []
    for round in 0..<8 {
      connection.established(at: time(Double(round)))
      pauses.append(try #require(connection.ended(at: time(Double(round) + 0.1))))
    }
    #expect(pauses[0] <= 0.5 && pauses[4...].allSatisfy { $0 >= 1.5 }, "\(pauses)")
    connection.established(at: time(100))
    #expect(try #require(connection.ended(at: time(111))) <= 0.5)
    connection.stop()
    #expect(connection.ended(at: time(112)) == nil)
  }
}
