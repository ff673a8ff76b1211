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

  /// Connections that each worker has published on, by their numbers, and those whose process is gone: the broker may read of these later.
  private var connections: [String: Set<Int>] = [:]
  private var gone: Set<Int> = []

  mutating func published(_ message: Message, _ id: String, by worker: String, on connection: Int) {
    guard !gone.contains(connection) else { return }
    connections[worker, default: []].insert(connection)
    open[worker, default: [:]][id, default: []].insert(Thing(message))
  }

  mutating func confirmed(_ message: Message, _ id: String, to worker: String) {
    open[worker]?[id]?.remove(Thing(message))
  }

  /// Its process is gone, and does everything anew that comes back.
  mutating func ended(_ worker: String) {
    open[worker] = nil
    gone.formUnion(connections.removeValue(forKey: worker) ?? [])
  }

  /// How many things of a request a worker has no confirm of.
  func unconfirmed(of id: String, by worker: String) -> Int { open[worker]?[id]?.count ?? 0 }
}
