import Wire

/// A queue of timed entries. Entries for the same time keep their order.
struct Agenda<Entry> {
  private var heap: [(time: MonotonicTime, order: Int, entry: Entry)] = []
  private var added = 0

  var deadline: MonotonicTime { heap.first?.time ?? .distantFuture }

  /// Ignores an entry for the distant future.
  mutating func add(_ entry: Entry, at time: MonotonicTime) {
    guard time < .distantFuture else { return }
    added += 1
    heap.append((time, added, entry))
    var child = heap.count - 1
    while child > 0, precedes(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func take(dueAt now: MonotonicTime) -> Entry? {
    guard let first = heap.first, first.time <= now else { return nil }
    let last = heap.removeLast()
    guard !heap.isEmpty else { return first.entry }
    heap[0] = last
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && precedes(child, least) { least = child }
      guard least != parent else { return first.entry }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  mutating func removeAll() { heap.removeAll() }

  private func precedes(_ a: Int, _ b: Int) -> Bool {
    (heap[a].time, heap[a].order) < (heap[b].time, heap[b].order)
  }
}
