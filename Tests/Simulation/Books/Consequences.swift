import BrokerModel

/// What each worker has published of each request and has no confirm of. What is published again, after a nack or on another connection, is
/// the same thing.
struct Consequences {
  private struct Thing: Hashable {
    var exchange: [UInt8]
    var routingKey: [UInt8]
    var body: [UInt8]

    init(_ message: Message) {
      exchange = message.exchange
      routingKey = message.routingKey
      body = message.body
    }
  }

  private var open: [String: [String: Set<Thing>]] = [:]

  /// Connections whose process is gone, by their numbers: the broker may read of these later.
  private var gone: Set<Int> = []

  mutating func published(_ message: Message, _ id: String, by worker: String, on connection: Int) {
    guard !gone.contains(connection) else { return }
    open[worker, default: [:]][id, default: []].insert(Thing(message))
  }

  mutating func confirmed(_ message: Message, _ id: String, to worker: String) {
    open[worker]?[id]?.remove(Thing(message))
  }

  /// Its process is gone, with its connections, and does everything anew that comes back.
  mutating func ended(_ worker: String, connections: some Sequence<Int>) {
    open[worker] = nil
    gone.formUnion(connections)
  }

  /// How many things of a request a worker has no confirm of.
  func unconfirmed(of id: String, by worker: String) -> Int { open[worker]?[id]?.count ?? 0 }
}
