/// One consumer of a queue and its unacknowledged deliveries.
final class QueueConsumer {
  let channel: ServerChannel
  let tag: [UInt8]
  let noAck: Bool
  let isExclusive: Bool
  /// Consumers with a higher priority are served first.
  let priority: Int64
  var credit: Int
  /// Gets no more deliveries; removed once nothing is unacknowledged.
  var isCancelled = false
  /// True if another consumer of a single-active-consumer queue is active.
  var isWaiting = false
  /// Unacknowledged deliveries in order, by number.
  private var checkedOut: [(delivery: UInt64, entry: QueueEntry)] = []
  private var deliveries: UInt64 = 0

  init(channel: ServerChannel, tag: [UInt8], noAck: Bool, isExclusive: Bool, priority: Int64, credit: Int) {
    self.channel = channel
    self.tag = tag
    self.noAck = noAck
    self.isExclusive = isExclusive
    self.priority = priority
    self.credit = credit
  }

  var hasRoom: Bool { !isCancelled && credit > 0 }
  var inHand: Int { checkedOut.count }

  /// Returns the number of the delivery.
  func hand(_ entry: QueueEntry) -> UInt64 {
    deliveries += 1
    checkedOut.append((deliveries, entry))
    return deliveries
  }

  /// Removes deliveries, given in ascending order. Ignores unknown ones.
  func take(_ deliveries: [UInt64]) -> [QueueEntry] {
    guard deliveries.count > 1 else {
      guard let delivery = deliveries.first, let index = index(of: delivery) else { return [] }
      return [checkedOut.remove(at: index).entry]
    }
    var wanted = deliveries[...]
    var taken: [QueueEntry] = []
    checkedOut.removeAll { delivery, entry in
      wanted = wanted.drop { $0 < delivery }
      guard wanted.first == delivery else { return false }
      taken.append(entry)
      return true
    }
    return taken
  }

  func takeAll() -> [QueueEntry] {
    defer { checkedOut = [] }
    return checkedOut.map(\.entry)
  }

  private func index(of delivery: UInt64) -> Int? {
    var (low, high) = (0, checkedOut.count)
    while low < high {
      let middle = (low + high) / 2
      if checkedOut[middle].delivery < delivery { low = middle + 1 } else { high = middle }
    }
    return low < checkedOut.count && checkedOut[low].delivery == delivery ? low : nil
  }
}
