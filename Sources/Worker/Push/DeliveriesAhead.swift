import AMQP
import Wire

/// Deliveries of the lanes that were taken before there is room for them, so that those of other applications behind them come through.
///
/// Kept in their order, at some two hundred bytes and the body each; begun as room comes up, or left to the broker unacknowledged.
struct DeliveriesAhead {
  private var deliveries = Ring<(delivery: PackedDelivery, app: Int, queue: WorkQueue)>()
  /// Of each application; -1 stands for none.
  private var counts: [Int: Int] = [:]

  var isEmpty: Bool { deliveries.isEmpty }
  var count: Int { deliveries.count }
  /// Whose turn is next.
  var next: (app: Int, queue: WorkQueue)? { deliveries.first.map { ($0.app, $0.queue) } }

  func contains(_ app: Int) -> Bool { counts[app] != nil }

  mutating func append(_ delivery: consuming Delivery, of app: Int, from queue: WorkQueue) {
    deliveries.append((PackedDelivery(delivery), app, queue))
    counts[app, default: 0] += 1
  }

  mutating func popFirst() -> (delivery: PackedDelivery, queue: WorkQueue)? {
    guard let (delivery, app, queue) = deliveries.popFirst() else { return nil }
    if let count = counts[app], count > 1 { counts[app] = count - 1 } else { counts[app] = nil }
    return (delivery, queue)
  }
}
