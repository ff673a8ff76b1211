import Broker

/// A request in the shard's table, for as long as its place is its own.
struct RequestReference: Equatable {
  var index: Int
  var generation: Int
}

/// The requests that a shard has in hand; bounded by the prefetch.
struct InFlightTable {
  private(set) var entries: [InFlight] = []
  private var free: [Int] = []
  private(set) var count = 0

  mutating func insert(from queue: WorkQueue) -> InFlight {
    count += 1
    let entry: InFlight
    if let index = free.popLast() {
      entry = entries[index]
    } else {
      entry = InFlight(index: entries.count)
      entries.append(entry)
    }
    entry.begin(from: queue)
    return entry
  }

  mutating func remove(_ entry: InFlight) {
    entry.end()
    free.append(entry.index)
    count -= 1
  }

  subscript(index: Int) -> InFlight { entries[index] }

  /// The request, unless its place is another one's by now.
  subscript(reference: RequestReference) -> InFlight? {
    let entry = entries[reference.index]
    return entry.generation == reference.generation ? entry : nil
  }
}
