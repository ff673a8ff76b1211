import Wire

/// The pushes of a pool that have no result yet, in reused slots. A slot's index is its stream's tag.
struct SlotTable {
  struct Slot {
    var tag: Int
    let account: Int
    let wantsName: Bool
    /// The generation of the provider or access token of the push.
    var generation = 0
    var sentAt = MonotonicTime(nanoseconds: 0)
    /// How often the provider refused its stream.
    var refusals: UInt8 = 0
    /// True if it was sent again because its authorisation was refused.
    var wasReauthorised = false
    fileprivate(set) var isInUse = true
    /// True if no answer is expected any more.
    fileprivate(set) var isOverlooked = false
  }

  /// Counts pushes of one account or of all.
  struct Count {
    fileprivate(set) var all = 0
    fileprivate var overlooked = 0
    /// Excludes pushes whose answer is no longer expected.
    var expected: Int { all - overlooked }
  }

  private(set) var slots: [Slot] = []
  private var free: [Int] = []
  private var total = Count()
  private var accounts = [Count()]

  var count: Int { total.all }
  var expected: Int { total.expected }
  func count(of account: Int) -> Count { accounts[account] }

  mutating func openAccount(_ number: Int) {
    if number == accounts.count { accounts.append(Count()) }
  }

  subscript(index: Int) -> Slot {
    _read { yield slots[index] }
    _modify { yield &slots[index] }
  }

  mutating func take(tag: Int, account: Int, wantsName: Bool) -> Int {
    total.all += 1
    accounts[account].all += 1
    if let index = free.popLast() {
      slots[index] = Slot(tag: tag, account: account, wantsName: wantsName)
      return index
    }
    slots.append(Slot(tag: tag, account: account, wantsName: wantsName))
    return slots.count - 1
  }

  /// Returns the caller's tag.
  mutating func release(_ index: Int) -> Int {
    expect(index)
    slots[index].isInUse = false
    total.all -= 1
    accounts[slots[index].account].all -= 1
    free.append(index)
    return slots[index].tag
  }

  /// Expects no more answers to the pushes sent so far, though answers may come.
  mutating func overlookAll() {
    for index in slots.indices where slots[index].isInUse { slots[index].isOverlooked = true }
    total.overlooked = total.all
    for number in accounts.indices { accounts[number].overlooked = accounts[number].all }
  }

  mutating func expect(_ index: Int) {
    guard slots[index].isOverlooked else { return }
    slots[index].isOverlooked = false
    total.overlooked -= 1
    accounts[slots[index].account].overlooked -= 1
  }
}
