/// The changes of the registry in the broker's order, and their outcomes.
struct RegistryLedger {
  /// Changes confirmed to the producer.
  var accepted: Set<String> = []
  /// Changes whose answer the broker has confirmed.
  var answered: Set<String> = []
  private var orders: [String: RegistryOrder] = [:]
  /// Includes repeated changes.
  private var queue: [String] = []

  mutating func expect(_ order: RegistryOrder) { orders[order.id] = order }

  mutating func enqueued(_ id: String?) { if let id { queue.append(id) } }

  /// The broker has lost an unconfirmed copy.
  mutating func dropped(_ id: String?) { if let place = queue.lastIndex(where: { $0 == id }) { queue.remove(at: place) } }

  /// A token of an installation replaced another one.
  struct Move: Hashable { var token, newToken: String }

  /// Replacements reported by feedback.
  var moves: Set<Move> = []

  /// Replacements that feedback must report, from the order of the queue.
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

  /// The last change of each device in the order of the queue. It decides the device's state.
  var last: [RegistryOrder] {
    var last: [Int: RegistryOrder] = [:]
    for order in queue.compactMap({ orders[$0] }) { last[order.device] = order }
    return last.values.sorted { $0.device < $1.device }
  }
}
