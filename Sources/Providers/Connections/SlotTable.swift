/// The pushes a pool has taken and not yet reported back, in reused slots; a slot's index is its stream's tag.
struct SlotTable {
  struct Slot {
    /// The caller's.
    var tag: Int
    /// Of the provider or access token the push went out with.
    var generation = 0
    /// How often connection control turned it away.
    var refusals: UInt8 = 0
    /// Sent again once already because its authorisation had run out.
    var wasReauthorised = false
    /// The caller wants the provider's name for the message.
    var wantsName = false
    var isTaken = true
  }

  private(set) var slots: [Slot] = []
  private var free: [Int] = []

  var count: Int { slots.count - free.count }

  subscript(index: Int) -> Slot {
    _read { yield slots[index] }
    _modify { yield &slots[index] }
  }

  mutating func take(tag: Int) -> Int {
    if let index = free.popLast() {
      slots[index] = Slot(tag: tag)
      return index
    }
    slots.append(Slot(tag: tag))
    return slots.count - 1
  }

  /// Gives the caller's tag back.
  mutating func release(_ index: Int) -> Int {
    slots[index].isTaken = false
    free.append(index)
    return slots[index].tag
  }
}

/// Slots waiting to be sent again, first come first served.
struct SlotQueue {
  private var items: [Int] = []
  private var head = 0

  var count: Int { items.count - head }
  var isEmpty: Bool { head == items.count }

  mutating func append(_ slot: Int) { items.append(slot) }

  mutating func popFirst() -> Int? {
    guard head < items.count else { return nil }
    defer {
      head += 1
      if head == items.count {
        items.removeAll(keepingCapacity: true)
        head = 0
      }
    }
    return items[head]
  }
}
