import Wire

struct StreamSlot {
  /// 0 while the slot is free.
  var streamID: Int32 = 0
  /// Neighbours in order of submission, which is also the order of deadlines. In a free slot, `next` is the next free slot.
  var previous: Int32 = -1
  var next: Int32 = -1
  var tag = 0
  /// `distantFuture` until the session next learns the time.
  var deadline = MonotonicTime.distantFuture
  var template: HeaderTemplate?
  /// Empty once it is completely framed.
  var body: [UInt8] = []
  var bodySent = 0
  /// True after the HEADERS frame was passed to the transport.
  var isSent = false
  /// True after all final headers of the response arrived.
  var isHeaded = false
  /// True if the response is complete, or no more of it is awaited.
  var isAnswered = false
  var response = Response()
}

/// The open streams of a session: slots with a free list, linked in order of submission. All requests have the same timeout, so
/// the first one in the list times out first.
struct StreamTable {
  private(set) var slots: [StreamSlot] = []
  /// Header values of each slot's request until it is framed. The storage stays with the slot.
  private var values: [HeaderValues] = []
  private(set) var count = 0
  var unsentBytes = 0
  private(set) var first: Int32 = -1
  private var last: Int32 = -1
  private var firstFree: Int32 = -1
  /// First slot in the list without a deadline. All later slots have none either.
  private var firstUnstamped: Int32 = -1

  subscript(index: Int32) -> StreamSlot {
    @inline(__always) _read { yield slots[Int(index)] }
    @inline(__always) _modify { yield &slots[Int(index)] }
  }

  /// True if the slot still belongs to this stream and its response is complete.
  @inline(__always)
  func isAnswered(_ index: Int32, _ streamID: Int32) -> Bool {
    slots[Int(index)].streamID == streamID && slots[Int(index)].isAnswered
  }

  /// Adds a slot at the end and returns its index; the caller sets the stream id. `values` becomes empty, with used storage.
  mutating func add(
    tag: Int, body: consuming [UInt8], template: consuming HeaderTemplate, _ values: inout HeaderValues
  ) -> Int32 {
    let index: Int32
    if firstFree >= 0 {
      index = firstFree
      firstFree = slots[Int(index)].next
    } else {
      index = Int32(slots.count)
      slots.append(StreamSlot())
      self.values.append(HeaderValues())
    }
    swap(&values, &self.values[Int(index)])
    values.removeAll()
    slots[Int(index)].tag = tag
    slots[Int(index)].body = consume body
    slots[Int(index)].template = consume template
    slots[Int(index)].previous = last
    slots[Int(index)].next = -1
    if last >= 0 { slots[Int(last)].next = index } else { first = index }
    last = index
    if firstUnstamped < 0 { firstUnstamped = index }
    unsentBytes += slots[Int(index)].body.count
    count += 1
    return index
  }

  /// Gives access to a slot's header values without a copy.
  @inline(__always)
  mutating func withValues(of index: Int32, _ body: (inout HeaderValues) -> Void) { body(&values[Int(index)]) }

  mutating func remove(_ index: Int32) -> StreamSlot {
    unlink(index)
    var slot = StreamSlot()
    swap(&slot, &slots[Int(index)])
    free(index)
    return slot
  }

  /// Frees the slot of an answered stream, which has no unsent body. Field by field, because moving the whole slot is slow.
  mutating func takeAnswer(_ index: Int32) -> (tag: Int, response: Response) {
    unlink(index)
    var response = Response()
    swap(&response, &slots[Int(index)].response)
    slots[Int(index)].streamID = 0
    slots[Int(index)].template = nil
    if !slots[Int(index)].body.isEmpty { slots[Int(index)].body = [] }
    slots[Int(index)].bodySent = 0
    slots[Int(index)].deadline = .distantFuture
    slots[Int(index)].isSent = false
    slots[Int(index)].isHeaded = false
    slots[Int(index)].isAnswered = false
    free(index)
    return (slots[Int(index)].tag, response)
  }

  private mutating func unlink(_ index: Int32) {
    let (previous, next) = (slots[Int(index)].previous, slots[Int(index)].next)
    if previous >= 0 { slots[Int(previous)].next = next } else { first = next }
    if next >= 0 { slots[Int(next)].previous = previous } else { last = previous }
    if firstUnstamped == index { firstUnstamped = next }
    if !slots[Int(index)].body.isEmpty { unsentBytes -= slots[Int(index)].body.count - slots[Int(index)].bodySent }
  }

  private mutating func free(_ index: Int32) {
    slots[Int(index)].next = firstFree
    firstFree = index
    count -= 1
  }

  mutating func stamp(_ deadline: MonotonicTime) {
    while firstUnstamped >= 0 {
      slots[Int(firstUnstamped)].deadline = deadline
      firstUnstamped = slots[Int(firstUnstamped)].next
    }
  }

  /// Rarely needed: for frames that nghttp2 dropped before their stream existed, and for unsent requests after GOAWAY.
  func firstIndex(where matches: (borrowing StreamSlot) -> Bool) -> Int32? {
    var index = first
    while index >= 0 {
      if matches(slots[Int(index)]) { return index }
      index = slots[Int(index)].next
    }
    return nil
  }
}
