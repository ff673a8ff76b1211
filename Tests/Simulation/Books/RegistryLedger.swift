/// Changes of the registry: in which order the broker has them, and what has become of them.
struct RegistryLedger {
  /// Confirmed to the producer.
  var accepted: Set<String> = []
  /// The broker has confirmed an answer.
  var answered: Set<String> = []
  private var orders: [String: RegistryOrder] = [:]
  /// Repeated ones included.
  private var queue: [String] = []

  mutating func expect(_ order: RegistryOrder) { orders[order.id] = order }

  mutating func enqueued(_ id: String?) { if let id { queue.append(id) } }

  /// Lost before it was confirmed: the last of its copies.
  mutating func dropped(_ id: String?) { if let place = queue.lastIndex(where: { $0 == id }) { queue.remove(at: place) } }

  /// One token of an installation's took another one's place.
  struct Move: Hashable { var token, newToken: String }

  /// What feedback says.
  var moves: Set<Move> = []

  /// What it has to say, by the order of the queue.
  var expectedMoves: Set<Move> {
    var tokens: [Int: String] = [:]
    var moves: Set<Move> = []
    for order in queue.compactMap({ orders[$0] }) where order.operation == .move {
      if let token = tokens.updateValue(order.token, forKey: order.device), token != order.token {
        moves.insert(Move(token: token, newToken: order.token))
      }
    }
    return moves
  }

  /// The last change of each device in the order of the queue: it decides what the device is.
  var last: [RegistryOrder] {
    var last: [Int: RegistryOrder] = [:]
    for order in queue.compactMap({ orders[$0] }) { last[order.device] = order }
    return last.values.sorted { $0.device < $1.device }
  }
}
