import BrokerModel

/// The unconfirmed publications of each worker, by request. A repeated publication, after a nack or on another connection,
/// counts as the same.
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

  /// Connections of ended processes. The broker may still read from them.
  private var gone: Set<Int> = []

  mutating func published(_ message: Message, _ id: String, by worker: String, on connection: Int) {
    guard !gone.contains(connection) else { return }
    open[worker, default: [:]][id, default: []].insert(Thing(message))
  }

  mutating func confirmed(_ message: Message, _ id: String, to worker: String) {
    open[worker]?[id]?.remove(Thing(message))
  }

  /// The worker's process has ended with its connections. It repeats everything that is redelivered.
  mutating func ended(_ worker: String, connections: some Sequence<Int>) {
    open[worker] = nil
    gone.formUnion(connections)
  }

  /// Number of unconfirmed publications of a request by a worker.
  func unconfirmed(of id: String, by worker: String) -> Int { open[worker]?[id]?.count ?? 0 }
}
