import Wire

/// The pushes a pool has taken and not yet reported back, in reused slots; a slot's index is its stream's tag.
struct SlotTable {
  struct Slot {
    /// The caller's.
    var tag: Int
    /// The number of the ``PoolAccount`` whose push it is.
    let account: Int
    /// The caller wants the provider's name for the message.
    let wantsName: Bool
    /// Of the provider or access token the push went out with.
    var generation = 0
    /// When it was handed to a connection last.
    var sentAt = MonotonicTime(nanoseconds: 0)
    /// How often connection control turned it away.
    var refusals: UInt8 = 0
    /// Sent again once already because its authorisation had run out.
    var wasReauthorised = false
    fileprivate(set) var isInUse = true
    /// Its answer is not expected any more.
    fileprivate(set) var isOverlooked = false
  }

  /// Pushes, of one account or of all.
  struct Count {
    fileprivate(set) var all = 0
    fileprivate var overlooked = 0
    /// Without those whose answer is not expected any more.
    var expected: Int { all - overlooked }
  }

  private(set) var slots: [Slot] = []
  private var free: [Int] = []
  private var total = Count()
  /// By the numbers of accounts.
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

  /// Gives the caller's tag back.
  mutating func release(_ index: Int) -> Int {
    expect(index)
    slots[index].isInUse = false
    total.all -= 1
    accounts[slots[index].account].all -= 1
    free.append(index)
    return slots[index].tag
  }

  /// No answer is expected any more of what has been handed over so far, though one may come.
  mutating func overlookAll() {
    for index in slots.indices where slots[index].isInUse { slots[index].isOverlooked = true }
    total.overlooked = total.all
    for number in accounts.indices { accounts[number].overlooked = accounts[number].all }
  }

  /// An answer is expected again, because the push goes out again.
  mutating func expect(_ index: Int) {
    guard slots[index].isOverlooked else { return }
    slots[index].isOverlooked = false
    total.overlooked -= 1
    accounts[slots[index].account].overlooked -= 1
  }
}
