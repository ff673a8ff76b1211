import Wire

/// One open stream: the request on its way and the answer as it comes in.
struct StreamSlot {
  /// 0 while the slot is free.
  var streamID: Int32 = 0
  /// Neighbours in order of submission, which is the order of the deadlines; of a free slot, `next` is the next free one.
  var previous: Int32 = -1
  var next: Int32 = -1
  var tag = 0
  /// `distantFuture` until the session next learns the time.
  var deadline = MonotonicTime.distantFuture
  var template: HeaderTemplate?
  /// Empty once all of it is framed.
  var body: [UInt8] = []
  var bodySent = 0
  /// The HEADERS frame has been handed to the transport.
  var isSent = false
  /// The answer is complete.
  var isAnswered = false
  var headerListSize = 0
  var response = Response()
}

/// The open streams of a session: slots with a free list, linked in order of submission.
/// All requests share one timeout, so the first in the list is the first to run out of time.
struct StreamTable {
  private(set) var slots: [StreamSlot] = []
  /// The header values of each slot's request until it is framed; their storage stays with the slot.
  private(set) var values: [HeaderValues] = []
  private(set) var count = 0
  private(set) var first: Int32 = -1
  private var last: Int32 = -1
  private var firstFree: Int32 = -1
  /// First slot in the list without a deadline; all after it have none either.
  private var firstUnstamped: Int32 = -1

  subscript(index: Int32) -> StreamSlot {
    @inline(__always) _read { yield slots[Int(index)] }
    @inline(__always) _modify { yield &slots[Int(index)] }
  }

  /// An index for a new stream, linked at the end of the list; its id is set by the caller.
  mutating func add(
    tag: Int, body: [UInt8], template: HeaderTemplate, _ fill: (inout HeaderValues) -> Void
  ) -> Int32 {
    let index: Int32
    if firstFree >= 0 {
      index = firstFree
      firstFree = slots[Int(index)].next
    } else {
      index = Int32(slots.count)
      slots.append(StreamSlot())
      values.append(HeaderValues())
    }
    values[Int(index)].removeAll()
    fill(&values[Int(index)])
    slots[Int(index)].tag = tag
    slots[Int(index)].body = body
    slots[Int(index)].template = template
    slots[Int(index)].previous = last
    slots[Int(index)].next = -1
    if last >= 0 { slots[Int(last)].next = index } else { first = index }
    last = index
    if firstUnstamped < 0 { firstUnstamped = index }
    count += 1
    return index
  }

  /// Frees the slot and hands out what was in it.
  mutating func remove(_ index: Int32) -> StreamSlot {
    var slot = StreamSlot()
    swap(&slot, &slots[Int(index)])
    if slot.previous >= 0 { slots[Int(slot.previous)].next = slot.next } else { first = slot.next }
    if slot.next >= 0 { slots[Int(slot.next)].previous = slot.previous } else { last = slot.previous }
    if firstUnstamped == index { firstUnstamped = slot.next }
    slots[Int(index)].next = firstFree
    firstFree = index
    count -= 1
    return slot
  }

  /// Gives every stream submitted since the last call its deadline.
  mutating func stamp(_ deadline: MonotonicTime) {
    while firstUnstamped >= 0 {
      slots[Int(firstUnstamped)].deadline = deadline
      firstUnstamped = slots[Int(firstUnstamped)].next
    }
  }

  /// Rare: for frames that nghttp2 gave up before their stream existed, and for `cancel`.
  func firstIndex(where matches: (borrowing StreamSlot) -> Bool) -> Int32? {
    var index = first
    while index >= 0 {
      if matches(slots[Int(index)]) { return index }
      index = slots[Int(index)].next
    }
    return nil
  }
}
