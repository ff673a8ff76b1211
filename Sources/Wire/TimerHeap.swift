/// Identifies a scheduled timer; harmless after the timer has fired or been cancelled.
public struct TimerToken: Hashable, Sendable {
  let slot: Int32
  let generation: UInt32
}

/// Timers ordered by deadline, then by scheduling order. A binary heap whose entries know their place: scheduling and
/// cancelling are O(log n), and a cancelled timer releases its closure at once.
struct TimerHeap {
  private struct Entry {
    var deadline: MonotonicTime
    var sequence: UInt64
    var slot: Int32

    func isBefore(_ other: Entry) -> Bool { deadline == other.deadline ? sequence < other.sequence : deadline < other.deadline }
  }
  private struct Slot {
    var body: (() -> Void)?
    /// Index in `heap`, or the next free slot; -1 for none.
    var place: Int32
    var generation: UInt32
  }

  private var heap: [Entry] = []
  private var slots: [Slot] = []
  private var firstFree: Int32 = -1
  private var nextSequence: UInt64 = 0

  var count: Int { heap.count }
  /// `distantFuture` if there is no timer.
  var nextDeadline: MonotonicTime { heap.first?.deadline ?? .distantFuture }
  var horizon: UInt64 { nextSequence }

  mutating func schedule(at deadline: MonotonicTime, _ body: @escaping () -> Void) -> TimerToken {
    let slot: Int32
    if firstFree >= 0 {
      slot = firstFree
      firstFree = slots[Int(slot)].place
      slots[Int(slot)].body = body
    } else {
      slot = Int32(slots.count)
      slots.append(Slot(body: body, place: -1, generation: 0))
    }
    heap.append(Entry(deadline: deadline, sequence: nextSequence, slot: slot))
    nextSequence += 1
    slots[Int(slot)].place = Int32(heap.count - 1)
    siftUp(heap.count - 1)
    return TimerToken(slot: slot, generation: slots[Int(slot)].generation)
  }

  /// Returns true if the timer was still waiting.
  @discardableResult
  mutating func cancel(_ token: TimerToken) -> Bool {
    let slot = Int(token.slot)
    guard slots.indices.contains(slot), slots[slot].generation == token.generation, slots[slot].body != nil else {
      return false
    }
    _ = remove(at: Int(slots[slot].place))
    return true
  }

  /// Removes the first timer that is due at `now` and was scheduled before `horizon`; the caller runs it. The horizon stops a
  /// timer that reschedules itself without delay from running forever in one turn.
  mutating func popDue(at now: MonotonicTime, before horizon: UInt64) -> (() -> Void)? {
    guard let first = heap.first, first.deadline <= now, first.sequence < horizon else { return nil }
    return remove(at: 0)
  }

  private mutating func remove(at index: Int) -> (() -> Void)? {
    let slot = Int(heap[index].slot)
    let body = slots[slot].body
    slots[slot].body = nil
    slots[slot].generation &+= 1
    slots[slot].place = firstFree
    firstFree = Int32(slot)
    let last = heap.removeLast()
    if index < heap.count {
      place(last, at: index)
      siftDown(index)
      siftUp(Int(slots[Int(last.slot)].place))
    }
    return body
  }

  private mutating func place(_ entry: Entry, at index: Int) {
    heap[index] = entry
    slots[Int(entry.slot)].place = Int32(index)
  }

  private mutating func siftUp(_ start: Int) {
    var index = start
    let entry = heap[index]
    while index > 0 {
      let parent = (index - 1) / 2
      guard entry.isBefore(heap[parent]) else { break }
      place(heap[parent], at: index)
      index = parent
    }
    place(entry, at: index)
  }

  private mutating func siftDown(_ start: Int) {
    var index = start
    let entry = heap[index]
    while true {
      var child = 2 * index + 1
      guard child < heap.count else { break }
      if child + 1 < heap.count, heap[child + 1].isBefore(heap[child]) { child += 1 }
      guard heap[child].isBefore(entry) else { break }
      place(heap[child], at: index)
      index = child
    }
    place(entry, at: index)
  }
}
